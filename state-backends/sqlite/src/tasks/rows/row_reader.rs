//! Reads the values of a row in order. Errors name the row and the column.

use std::str::FromStr;

use interval_queue_contract::{Micros, StateError, StateErrorKind};
use rusqlite::{Row, types::ValueRef};
use serde::{Serialize, de::DeserializeOwned};

use crate::store::Fault;

pub(super) struct RowReader<'r> {
    row: &'r Row<'r>,
    next: usize,
}

impl<'r> RowReader<'r> {
    pub(super) fn of(row: &'r Row<'r>) -> Self {
        Self { row, next: 0 }
    }

    fn take(&mut self) -> Result<ValueRef<'r>, Fault> {
        self.next += 1;
        Ok(self.row.get_ref(self.next - 1)?)
    }

    /// The error names the last column that was read.
    pub(super) fn bad(&self, what: &str) -> Fault {
        let statement: &rusqlite::Statement<'_> = self.row.as_ref();
        let column = statement.column_name(self.next - 1).unwrap_or("?");
        let shown = match self.row.get_ref(self.next - 1) {
            Ok(ValueRef::Integer(number)) => number.to_string(),
            Ok(ValueRef::Text(text)) => {
                let text = String::from_utf8_lossy(text);
                format!("{:?}", text.chars().take(40).collect::<String>())
            }
            Ok(ValueRef::Null) => "NULL".to_owned(),
            _ => "its value".to_owned(),
        };
        // A parser may quote the whole value.
        let what: String =
            what.chars().take(200).map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
        let text = format!("column {column}: {shown} is {what}");
        Fault::Refused(StateError::new(StateErrorKind::Damaged, text))
    }

    pub(super) fn int(&mut self) -> Result<i64, Fault> {
        match self.take()? {
            ValueRef::Integer(number) => Ok(number),
            _ => Err(self.bad("no number")),
        }
    }

    pub(super) fn truth(&mut self) -> Result<bool, Fault> {
        Ok(self.int()? != 0)
    }

    /// Checks the range of the type.
    pub(super) fn number<T: TryFrom<i64>>(&mut self) -> Result<T, Fault> {
        let number = self.int()?;
        T::try_from(number).map_err(|_| self.bad("out of range"))
    }

    pub(super) fn micros(&mut self) -> Result<Micros, Fault> {
        self.some_micros()?.ok_or_else(|| self.bad("no time"))
    }

    pub(super) fn some_micros(&mut self) -> Result<Option<Micros>, Fault> {
        match self.take()? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => {
                let micros = u64::try_from(number).ok().and_then(|number| Micros::try_from(number).ok());
                micros.map(Some).ok_or_else(|| self.bad("no time in microseconds"))
            }
            _ => Err(self.bad("no time in microseconds")),
        }
    }

    pub(super) fn some_text(&mut self) -> Result<Option<&'r str>, Fault> {
        match self.take()? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => std::str::from_utf8(text).map(Some).map_err(|_| self.bad("no text")),
            _ => Err(self.bad("no text")),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'r str, Fault> {
        self.some_text()?.ok_or_else(|| self.bad("no text"))
    }

    /// `what`: the problem that an error states.
    pub(super) fn some<T: FromStr>(&mut self, what: &str) -> Result<Option<T>, Fault> {
        self.some_text()?.map(|text| text.parse().map_err(|_| self.bad(what))).transpose()
    }

    /// NULL is an error.
    pub(super) fn named<T: FromStr>(&mut self, what: &str) -> Result<T, Fault> {
        self.some(what)?.ok_or_else(|| self.bad(what))
    }

    pub(super) fn some_number<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, Fault> {
        match self.take()? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => T::try_from(number).map(Some).map_err(|_| self.bad("out of range")),
            _ => Err(self.bad("no number")),
        }
    }

    pub(super) fn some_json<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Fault> {
        let parsed = self.some_text()?.map(serde_json::from_str).transpose();
        parsed.map_err(|error| self.bad(&format!("not as it should be: {error}")))
    }

    /// NULL: the default.
    pub(super) fn json<T: DeserializeOwned + Default>(&mut self) -> Result<T, Fault> {
        Ok(self.some_json()?.unwrap_or_default())
    }

    /// Reads a JSON string, such as the name of an enum's variant.
    pub(super) fn word<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Fault> {
        let word = |text: &str| {
            let text: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
                serde::de::IntoDeserializer::into_deserializer(text);
            T::deserialize(text)
        };
        let parsed = self.some_text()?.map(word).transpose();
        parsed.map_err(|error| self.bad(&format!("not known: {error}")))
    }
}

pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Large numbers become negative, and are restored when read.
pub(super) fn wide(number: u64) -> i64 {
    number as i64
}
