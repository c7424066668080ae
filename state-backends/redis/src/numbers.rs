//! The numbers that go to the scripts and come back: packed as doubles, the only numbers of Lua. Text would
//! cost both sides more than all else.

use interval_queue_contract::{InvalidInput, Micros, Ticket};

/// The largest whole number that a double and all below it hold exactly.
const MOST: u64 = Micros::MAX.get();
const SIZE: usize = size_of::<f64>();

/// Numbers for a script.
#[derive(Debug)]
pub(crate) struct Numbers(Vec<u8>);

impl Default for Numbers {
    fn default() -> Self {
        // A step without ranges.
        Self(Vec::with_capacity(28 * SIZE))
    }
}

impl Numbers {
    pub(crate) fn push(&mut self, number: impl Into<f64>) {
        self.0.extend_from_slice(&number.into().to_le_bytes());
    }

    pub(crate) fn micros(&mut self, micros: Micros) {
        self.push(micros.get() as f64);
    }

    pub(crate) fn ticket(&mut self, ticket: Ticket) {
        self.push(ticket.get() as f64);
    }

    /// A ticket, or -1 for none.
    pub(crate) fn optional_ticket(&mut self, ticket: Option<Ticket>) {
        match ticket {
            Some(ticket) => self.ticket(ticket),
            None => self.push(-1),
        }
    }

    /// A number that Lua must keep exactly.
    ///
    /// # Errors
    ///
    /// It is too large; the error names it.
    pub(crate) fn exact(&mut self, what: &str, value: u64) -> Result<(), InvalidInput> {
        if value > MOST {
            return Err(InvalidInput::new(format!("{what} {value} is out of range: at most {MOST}")));
        }
        self.push(value as f64);
        Ok(())
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Numbers of a script, read one after the other.
#[derive(Debug)]
pub(crate) struct Packed<'a>(&'a [u8]);

impl<'a> Packed<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next number; none if there is no whole number from 0 to 2⁵³ − 1.
    pub(crate) fn whole(&mut self) -> Option<u64> {
        let number = self.next()?;
        // The conversion stops at both ends and drops a fraction.
        let whole = number as u64;
        (whole <= MOST && whole as f64 == number).then_some(whole)
    }

    /// The next number, where any below zero stands for none.
    pub(crate) fn optional(&mut self) -> Option<Option<u64>> {
        let mut ahead = Self(self.0);
        if ahead.next()? < 0.0 {
            self.0 = ahead.0;
            return Some(None);
        }
        self.whole().map(Some)
    }

    /// What comes after the numbers.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    fn next(&mut self) -> Option<f64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(f64::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_exactly_up_to_the_last_that_is_exact() {
        let mut numbers = Numbers::default();
        for number in [0, 1, MOST - 1, MOST] {
            numbers.exact("ticket", number).unwrap();
        }
        assert!(
            numbers.exact("ticket", MOST + 1).unwrap_err().to_string().contains("ticket 9007199254740992")
        );
        numbers.push(-1);
        let mut bytes = numbers.into_bytes();
        bytes.extend_from_slice(b"shard");
        let mut packed = Packed::new(&bytes);
        assert_eq!([(); 3].map(|()| packed.whole()), [Some(0), Some(1), Some(MOST - 1)]);
        assert_eq!(packed.optional(), Some(Some(MOST)));
        assert_eq!(packed.optional(), Some(None));
        assert_eq!(packed.rest(), b"shard");
    }

    #[test]
    fn what_is_no_ticket_and_no_instant_is_none() {
        for number in [-1.0, 0.5, f64::NAN, f64::INFINITY, 9_007_199_254_740_992.0] {
            assert_eq!(Packed::new(&number.to_le_bytes()).whole(), None, "{number}");
        }
        assert_eq!(Packed::new(&[0; 7]).whole(), None);
        assert_eq!(Packed::new(&f64::NAN.to_le_bytes()).optional(), None);
    }
}
