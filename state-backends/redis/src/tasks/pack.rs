//! Packs commands as the MessagePack that the server's `cmsgpack` reads: it knows no binary data, so
//! bytes are strings. A field that is `None` or `false` is absent.

use interval_queue_contract::{InvalidInput, Micros};
use serde::{
    Serialize, Serializer,
    de::value::Error,
    ser::{
        Error as _, Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
        SerializeTuple, SerializeTupleVariant,
    },
};

/// A command can have many of these structs, so they are lists of their fields.
const LISTS: [&str; 6] = ["Completion", "Token", "Unique", "Nominal", "NewEdge", "LogLine"];
/// Fields are absent also if they are 0 or empty.
const SPARSE: [&str; 2] = ["NewTask", "Task"];

/// # Errors
///
/// Names the number that Lua cannot represent.
pub(super) fn pack(value: &impl Serialize) -> Result<Vec<u8>, InvalidInput> {
    let mut packer = Packer::default();
    value.serialize(&mut packer).map_err(|error| InvalidInput::new(error.to_string()))?;
    Ok(packer.bytes)
}

type Done = Result<(), Error>;

#[derive(Debug, Default)]
struct Packer {
    bytes: Vec<u8>,
    /// Whether the last value was a `Some`.
    is_some: bool,
}

impl Packer {
    fn put<const N: usize>(&mut self, marker: u8, number: [u8; N]) -> Done {
        self.bytes.push(marker);
        self.bytes.extend(number);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Done {
        match text.len() {
            size @ 0..32 => self.bytes.push(0xa0 | size as u8),
            // No sent value is larger than 4 GiB.
            size => self.put(0xdb, u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes())?,
        }
        self.bytes.extend(text);
        Ok(())
    }

    /// The value follows.
    fn variant(&mut self, name: &str) -> Result<&mut Self, Error> {
        self.bytes.push(0x81);
        self.text(name.as_bytes())?;
        Ok(self)
    }

    fn list(&mut self, size: usize) -> Result<Compound<'_>, Error> {
        match size {
            0..16 => self.bytes.push(0x90 | size as u8),
            _ => self.put(0xdd, u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes())?,
        }
        Ok(Compound { packer: self, table: None, count: 0, is_sparse: false })
    }

    fn table(&mut self, is_sparse: bool) -> Result<Compound<'_>, Error> {
        let table = Some(self.bytes.len());
        self.put(0xde, [0, 0])?;
        Ok(Compound { packer: self, table, count: 0, is_sparse })
    }
}

macro_rules! integers {
    ($($name:ident $type:ty)*) => {$(
        fn $name(self, number: $type) -> Done {
            self.serialize_i64(number.into())
        }
    )*};
}

impl<'a> Serializer for &'a mut Packer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    fn serialize_bool(self, flag: bool) -> Done {
        self.bytes.push(if flag { 0xc3 } else { 0xc2 });
        Ok(())
    }

    integers! { serialize_i8 i8 serialize_i16 i16 serialize_i32 i32 serialize_u8 u8 serialize_u16 u16 serialize_u32 u32 }

    fn serialize_i64(self, number: i64) -> Done {
        match number {
            0..128 => self.bytes.push(number as u8),
            _ => self.put(0xd3, number.to_be_bytes())?,
        }
        Ok(())
    }

    fn serialize_u64(self, number: u64) -> Done {
        if number > Micros::MAX.get() {
            let most = Micros::MAX.get();
            return Err(Error::custom(format!("{number} is out of range: at most {most}")));
        }
        self.serialize_i64(number.cast_signed())
    }

    fn serialize_f32(self, number: f32) -> Done {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Done {
        self.put(0xcb, number.to_be_bytes())
    }

    fn serialize_char(self, char: char) -> Done {
        self.serialize_str(char.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Done {
        self.text(text.as_bytes())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Done {
        self.text(bytes)
    }

    fn serialize_none(self) -> Done {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(&mut *self)?;
        self.is_some = true;
        Ok(())
    }

    fn serialize_unit(self) -> Done {
        self.bytes.push(0xc0);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Done {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        value.serialize(self.variant(variant)?)
    }

    fn serialize_seq(self, size: Option<usize>) -> Result<Compound<'a>, Error> {
        self.list(size.ok_or_else(|| Error::custom("a list has no size"))?)
    }

    fn serialize_tuple(self, size: usize) -> Result<Compound<'a>, Error> {
        self.list(size)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        Err(Error::custom(format!("{name} has fields without names")))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        size: usize,
    ) -> Result<Compound<'a>, Error> {
        self.variant(variant)?.list(size)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>, Error> {
        self.table(false)
    }

    fn serialize_struct(self, name: &'static str, size: usize) -> Result<Compound<'a>, Error> {
        match LISTS.contains(&name) {
            true => self.list(size),
            false => self.table(SPARSE.contains(&name)),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, Error> {
        self.variant(variant)?.table(false)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

struct Compound<'a> {
    packer: &'a mut Packer,
    /// Where the table begins. `None`: a list.
    table: Option<usize>,
    count: u16,
    is_sparse: bool,
}

impl Compound<'_> {
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut *self.packer)
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        let begin = self.packer.bytes.len();
        if self.table.is_some() {
            self.packer.text(name.as_bytes())?;
        }
        let at = self.packer.bytes.len();
        self.packer.is_some = false;
        self.value(value).map_err(|error| Error::custom(format!("{name} {error}")))?;
        let is_absent = match self.packer.bytes[at..] {
            [0xc0 | 0xc2] => true,
            // A number, a list, a text or a table.
            [0 | 0x90 | 0xa0] | [0xde, 0, 0] => self.is_sparse && !self.packer.is_some,
            _ => false,
        };
        match self.table.is_some() && is_absent {
            true => self.packer.bytes.truncate(begin),
            false => self.count += 1,
        }
        Ok(())
    }

    fn finish(self) -> Done {
        if let Some(at) = self.table {
            self.packer.bytes[at + 1..at + 3].copy_from_slice(&self.count.to_be_bytes());
        }
        Ok(())
    }
}

macro_rules! compounds {
    ($($trait:ident $method:ident ($($name:ident)?);)*) => {$(
        impl $trait for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Done {
                compounds!(self value $($name)?)
            }

            fn end(self) -> Done {
                self.finish()
            }
        }
    )*};
    ($self:ident $value:ident) => { $self.value($value) };
    ($self:ident $value:ident $name:ident) => { $self.field($name, $value) };
}

compounds! {
    SerializeSeq serialize_element ();
    SerializeTuple serialize_element ();
    SerializeTupleVariant serialize_field ();
    SerializeStruct serialize_field (name);
    SerializeStructVariant serialize_field (name);
}

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        self.count += 1;
        self.value(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.value(value)
    }

    fn end(self) -> Done {
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use interval_queue_task_contract::{Json, NewTask, Step, TaskId, When, WorkerId};
    use serde::de::IgnoredAny;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn numbers_and_texts_of_every_size_are_read_back() {
        let numbers =
            [0, 1, 127, 128, 255, 65_536, -1, -32, -33, -(1 << 40), (1 << 53) - 1, i64::MIN].to_vec();
        let texts = [0, 31, 32, 70_000].map(|size| "\0".repeat(size)).to_vec();
        let bytes = pack(&(numbers.clone(), texts.clone(), vec![true; 20])).unwrap();
        let read: (Vec<i64>, Vec<String>, Vec<bool>) = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!(read, (numbers, texts, vec![true; 20]));
    }

    fn fields(value: &impl Serialize) -> Vec<String> {
        let bytes = pack(value).unwrap();
        let fields: BTreeMap<String, IgnoredAny> = rmp_serde::from_slice(&bytes).unwrap();
        fields.into_keys().collect()
    }

    #[test]
    fn absent_values_are_left_out_and_empty_ones_of_a_task_too() {
        let mut task = NewTask::new(TaskId::FIRST, Json::default());
        assert_eq!(fields(&task), ["id", "kind", "not_before", "on_conflict", "payload", "weight"]);
        (task.priority, task.ordered, task.deadline) = (-1, true, Some(When::At(Micros::ZERO)));
        let more = [
            "deadline",
            "id",
            "kind",
            "not_before",
            "on_conflict",
            "ordered",
            "payload",
            "priority",
            "weight",
        ];
        assert_eq!(fields(&task), more);
        let mut step = Step::first(WorkerId::new(Uuid::nil()), [], Micros::ZERO);
        assert!(fields(&step).contains(&"held".into()), "an empty list of held tasks says something");
        step.held = None;
        let rest = [
            "acknowledged",
            "ahead",
            "complete",
            "kinds",
            "label",
            "lease",
            "log",
            "progress",
            "sequence",
            "want",
            "worker",
        ];
        assert_eq!(fields(&step), rest);
    }

    #[test]
    fn a_number_that_lua_cannot_represent_is_named() {
        let step = Step { sequence: 1 << 53, ..Step::first(WorkerId::new(Uuid::nil()), [], Micros::ZERO) };
        let error = pack(&step).unwrap_err().to_string();
        assert_eq!(error, "sequence 9007199254740992 is out of range: at most 9007199254740991");
    }
}
