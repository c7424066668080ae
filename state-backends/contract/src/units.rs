//! Microseconds and tickets. Both are exact in a double, Lua's only number.

use std::{
    fmt,
    ops::{Add, Mul, Sub},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::InvalidInput;

/// Exact in every store.
const LARGEST: u64 = (1 << 53) - 1;

/// `new` caps a number above the limit; parsing rejects it.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $too_large:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "u64", into = "u64")]
        pub struct $name(u64);

        impl $name {
            /// The largest: 2⁵³ − 1.
            pub const MAX: Self = Self(LARGEST);

            /// This number, at most `MAX`.
            pub const fn new(number: u64) -> Self {
                if number > LARGEST { Self::MAX } else { Self(number) }
            }

            /// The number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl From<$name> for u64 {
            fn from(number: $name) -> u64 {
                number.0
            }
        }

        impl TryFrom<u64> for $name {
            type Error = InvalidInput;
            fn try_from(number: u64) -> Result<Self, InvalidInput> {
                if number > LARGEST {
                    return Err(InvalidInput::new(format!($too_large, number, LARGEST)));
                }
                Ok(Self(number))
            }
        }
    };
}

number! {
    /// Microseconds: an instant on the store's clock, or a duration. Arithmetic saturates at zero
    /// and at [`Micros::MAX`] (285 years).
    Micros, "{} µs is out of range: at most {}"
}

impl Micros {
    /// No time; the epoch of the store's clock.
    pub const ZERO: Self = Self(0);

    /// `millis` milliseconds, at most [`Micros::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        Self::new(millis.saturating_mul(1000))
    }

    /// Rounds **up** to microseconds, so that an interval is never shortened.
    pub fn from_duration(duration: Duration) -> Self {
        Self::new(u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX))
    }

    /// The length as a [`Duration`].
    pub const fn to_duration(self) -> Duration {
        Duration::from_micros(self.0)
    }
}

impl Add for Micros {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.0.saturating_add(other.0))
    }
}

impl Sub for Micros {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Micros {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self::new(self.0.saturating_mul(times))
    }
}

number! {
    /// A place in the queue: unique and rising. [`Ticket::NONE`] comes before the first.
    Ticket, "ticket {} is out of range: at most {}"
}

impl Ticket {
    /// No ticket yet.
    pub const NONE: Self = Self(0);
    /// The ticket `count` places later, at most [`Ticket::MAX`].
    pub const fn after(self, count: u64) -> Self {
        Self::new(self.0.saturating_add(count))
    }

    /// Number of places after `other`; zero if before it.
    pub const fn behind(self, other: Self) -> u64 {
        self.0.saturating_sub(other.0)
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_a_microsecond_are_rounded_up() {
        assert_eq!(Micros::from_duration(Duration::from_nanos(1)), Micros::new(1));
        assert_eq!(Micros::from_duration(Duration::from_nanos(1000)), Micros::new(1));
        assert_eq!(Micros::from_duration(Duration::from_nanos(1001)), Micros::new(2));
        assert_eq!(Micros::from_duration(Duration::MAX), Micros::MAX);
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Micros::MAX + Micros::new(1), Micros::MAX);
        assert_eq!(Micros::ZERO - Micros::new(1), Micros::ZERO);
        assert_eq!(Micros::MAX * u64::MAX, Micros::MAX);
        assert_eq!(Ticket::MAX.after(1), Ticket::MAX);
        assert_eq!(Ticket::new(1).behind(Ticket::new(2)), 0);
    }

    #[test]
    fn numbers_that_a_double_cannot_hold_are_refused_when_read() {
        assert!(serde_json::from_str::<Micros>("9007199254740992").is_err());
        assert!(serde_json::from_str::<Ticket>("9007199254740992").is_err());
        assert!(serde_json::from_str::<Ticket>("-1").is_err());
        assert!(serde_json::from_str::<Ticket>("1.5").is_err());
    }
}
