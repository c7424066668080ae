//! The packed form of commands and replies: MessagePack, as the server's `cmsgpack` writes and
//! reads it.

use interval_queue_contract::{StateError, StateErrorKind};

/// Packs a value.
#[derive(Debug, Default)]
pub(crate) struct Packer(Vec<u8>);

/// The fields of a table being packed. Omitted fields are `nil` in the script.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    packer: &'a mut Packer,
    count: u32,
}

impl Packer {
    pub(crate) fn bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.0.push(if flag { 0xc3 } else { 0xc2 });
    }

    pub(crate) fn int(&mut self, number: impl Into<i64>) {
        let number = number.into();
        if (0..128).contains(&number) {
            self.0.push(number as u8);
        } else {
            self.0.push(0xd3);
            self.0.extend(number.to_be_bytes());
        }
    }

    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        match text.len() {
            size @ 0..32 => self.0.push(0xa0 | size as u8),
            size => self.sized(0xdb, size),
        }
        self.0.extend(text);
    }

    pub(crate) fn list<T>(
        &mut self,
        of: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        mut pack: impl FnMut(&mut Self, T),
    ) {
        let of = of.into_iter();
        self.sized(0xdd, of.len());
        of.for_each(|one| pack(self, one));
    }

    pub(crate) fn table(&mut self, fill: impl FnOnce(&mut Fields<'_>)) {
        self.sized(0xdf, 0);
        let at = self.0.len();
        let mut fields = Fields { packer: self, count: 0 };
        fill(&mut fields);
        let count = fields.count;
        self.0[at - 4..at].copy_from_slice(&count.to_be_bytes());
    }

    fn sized(&mut self, what: u8, size: usize) {
        self.0.push(what);
        // No sent value is that large.
        self.0.extend(u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes());
    }
}

impl Fields<'_> {
    /// Starts a field, whose value follows.
    pub(crate) fn field(&mut self, name: &str) -> &mut Packer {
        self.count += 1;
        self.packer.text(name);
        self.packer
    }

    pub(crate) fn int(&mut self, name: &str, number: impl Into<i64>) {
        self.field(name).int(number);
    }

    pub(crate) fn text(&mut self, name: &str, text: impl AsRef<[u8]>) {
        self.field(name).text(text);
    }

    /// A `false` flag is omitted.
    pub(crate) fn flag(&mut self, name: &str, flag: bool) {
        if flag {
            self.field(name).flag(true);
        }
    }

    pub(crate) fn some_int(&mut self, name: &str, number: Option<impl Into<i64>>) {
        if let Some(number) = number {
            self.int(name, number);
        }
    }

    pub(crate) fn some_text(&mut self, name: &str, text: Option<impl AsRef<[u8]>>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }
}

/// A value packed by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packed<'a> {
    Nil,
    Flag(bool),
    Int(i64),
    Text(&'a [u8]),
    List(Vec<Packed<'a>>),
    Table(Vec<(&'a [u8], Packed<'a>)>),
}

/// Maximum depth of a reply.
const MAX_DEPTH: u32 = 16;
/// Maximum elements preallocated, whatever the size field claims.
const PREALLOCATED: usize = 64;

impl<'a> Packed<'a> {
    /// Reads the one value packed in these bytes.
    ///
    /// # Errors
    ///
    /// They are no such value, or have trailing bytes.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, StateError> {
        let mut rest = bytes;
        match read(&mut rest, MAX_DEPTH) {
            Some(packed) if rest.is_empty() => Ok(packed),
            _ => Err(nonsense("it is not packed as it should be")),
        }
    }
}

pub(super) fn take<'a>(rest: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(size)?;
    *rest = left;
    Some(taken)
}

pub(super) fn number(rest: &mut &[u8], size: usize) -> Option<u64> {
    Some(take(rest, size)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

fn read<'a>(rest: &mut &'a [u8], deeper: u32) -> Option<Packed<'a>> {
    let deeper = deeper.checked_sub(1)?;
    let what = take(rest, 1)?[0];
    let text = |rest: &mut &'a [u8], size: usize| Some(Packed::Text(take(rest, size)?));
    let sized = |rest: &mut &'a [u8], size: usize| usize::try_from(number(rest, size)?).ok();
    Some(match what {
        0..=0x7f => Packed::Int(what.into()),
        0x80..=0x8f => table(rest, usize::from(what & 15), deeper)?,
        0x90..=0x9f => list(rest, usize::from(what & 15), deeper)?,
        0xa0..=0xbf => text(rest, usize::from(what & 31))?,
        0xc0 => Packed::Nil,
        0xc2 | 0xc3 => Packed::Flag(what == 0xc3),
        0xcb => whole(f64::from_bits(number(rest, 8)?))?,
        0xca => whole(f32::from_bits(number(rest, 4)? as u32).into())?,
        0xcc..=0xcf => Packed::Int(i64::try_from(number(rest, 1 << (what - 0xcc))?).ok()?),
        0xd0 => Packed::Int((number(rest, 1)? as i8).into()),
        0xd1 => Packed::Int((number(rest, 2)? as i16).into()),
        0xd2 => Packed::Int((number(rest, 4)? as i32).into()),
        0xd3 => Packed::Int(number(rest, 8)? as i64),
        0xd9..=0xdb => {
            let size = sized(rest, 1 << (what - 0xd9))?;
            text(rest, size)?
        }
        0xdc | 0xdd => {
            let size = sized(rest, 2 << (what - 0xdc))?;
            list(rest, size, deeper)?
        }
        0xde | 0xdf => {
            let size = sized(rest, 2 << (what - 0xde))?;
            table(rest, size, deeper)?
        }
        0xe0..=0xff => Packed::Int((what as i8).into()),
        _ => return None,
    })
}

/// A Lua number that was packed as a float.
fn whole<'a>(number: f64) -> Option<Packed<'a>> {
    let whole = number as i64;
    (whole as f64 == number).then_some(Packed::Int(whole))
}

fn list<'a>(rest: &mut &'a [u8], size: usize, deeper: u32) -> Option<Packed<'a>> {
    let mut all = Vec::with_capacity(size.min(PREALLOCATED));
    for _ in 0..size {
        all.push(read(rest, deeper)?);
    }
    Some(Packed::List(all))
}

fn table<'a>(rest: &mut &'a [u8], size: usize, deeper: u32) -> Option<Packed<'a>> {
    let mut all = Vec::with_capacity(size.min(PREALLOCATED));
    for _ in 0..size {
        let Packed::Text(name) = read(rest, deeper)? else { return None };
        all.push((name, read(rest, deeper)?));
    }
    Some(Packed::Table(all))
}

/// The error of an answer that no script of this version gives.
pub(crate) fn nonsense(what: &str) -> StateError {
    let text =
        format!("redis gave an answer that makes no sense: {what}; does another program use the keys?");
    StateError::new(StateErrorKind::Foreign, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [i64; 12] =
        [0, 1, 127, 128, 255, 65_536, -1, -32, -33, -(1 << 40), (1 << 53) - 1, i64::MIN];

    fn packed() -> Vec<u8> {
        let mut packer = Packer::default();
        packer.table(|fields| {
            fields.field("numbers").list(NUMBERS, Packer::int);
            fields.field("texts").list([0, 31, 32, 70_000], |packer, size| packer.text(vec![b'\0'; size]));
            fields.flag("is so", true);
            fields.flag("is not", false);
            fields.some_text("none", None::<&str>);
            fields.field("empty").table(|_| {});
        });
        packer.bytes()
    }

    #[test]
    fn packed_values_are_read_back() {
        let bytes = packed();
        let Packed::Table(fields) = Packed::read(&bytes).unwrap() else { panic!("{bytes:?}") };
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [&b"numbers"[..], b"texts", b"is so", b"empty"]);
        assert_eq!(fields[0].1, Packed::List(NUMBERS.map(Packed::Int).to_vec()));
        let Packed::List(texts) = &fields[1].1 else { panic!("{:?}", fields[1]) };
        let sizes: Vec<_> =
            texts.iter().map(|text| matches!(text, Packed::Text(text) if text.len() > 30)).collect();
        assert_eq!(sizes, [false, true, true, true]);
        assert_eq!((&fields[2].1, &fields[3].1), (&Packed::Flag(true), &Packed::Table(Vec::new())));
    }

    #[test]
    fn truncated_or_trailing_bytes_are_refused() {
        let mut bytes = packed();
        for end in (0..bytes.len()).step_by(97) {
            assert!(Packed::read(&bytes[..end]).is_err(), "{end}");
        }
        bytes.push(0);
        assert!(Packed::read(&bytes).is_err());
        let deep = [vec![0x91; 40], vec![0]].concat();
        assert!(Packed::read(&deep).is_err(), "no reply lies so deep");
        assert!(Packed::read(&[0xdd, 0xff, 0xff, 0xff, 0xff]).is_err(), "it says that it is long");
    }
}
