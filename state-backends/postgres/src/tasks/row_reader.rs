//! Reads the values of a row in order. Errors name the row and the column.

use std::{fmt::Debug, str::FromStr};

use interval_queue_contract::{Micros, StateError, StateErrorKind};
use serde::de::DeserializeOwned;
use tokio_postgres::{Row, types::FromSql};
use uuid::Uuid;

pub(super) struct RowReader<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> RowReader<'r> {
    pub(super) fn of(row: &'r Row) -> Self {
        Self { row, next: 0 }
    }

    fn take<T: FromSql<'r>>(&mut self) -> Result<T, StateError> {
        self.next += 1;
        self.row.try_get(self.next - 1).map_err(|error| {
            let text = format!("column {} is not what it should be", self.column());
            StateError::new(StateErrorKind::Foreign, text).with_source(error)
        })
    }

    fn column(&self) -> &'r str {
        self.row.columns().get(self.next - 1).map_or("?", |column| column.name())
    }

    /// The error names the last column that was read.
    pub(super) fn bad(&self, shown: &dyn Debug, what: &str) -> StateError {
        let shown: String = format!("{shown:?}").chars().take(60).collect();
        // A parser may quote the whole value.
        let what: String =
            what.chars().take(200).map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
        let text = format!("column {}: {shown} is {what}", self.column());
        StateError::new(StateErrorKind::Damaged, text)
    }

    pub(super) fn int(&mut self) -> Result<i64, StateError> {
        self.take()
    }

    pub(super) fn truth(&mut self) -> Result<bool, StateError> {
        self.take()
    }

    /// Checks the range of the type.
    pub(super) fn number<T: TryFrom<i64>>(&mut self) -> Result<T, StateError> {
        let number = self.int()?;
        T::try_from(number).map_err(|_| self.bad(&number, "out of range"))
    }

    pub(super) fn some_number<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, StateError> {
        let Some(number) = self.take::<Option<i64>>()? else { return Ok(None) };
        T::try_from(number).map(Some).map_err(|_| self.bad(&number, "out of range"))
    }

    pub(super) fn micros(&mut self) -> Result<Micros, StateError> {
        self.some_micros()?.ok_or_else(|| self.bad(&(), "no time"))
    }

    pub(super) fn some_micros(&mut self) -> Result<Option<Micros>, StateError> {
        let Some(number) = self.take::<Option<i64>>()? else { return Ok(None) };
        let micros = u64::try_from(number).ok().and_then(|number| Micros::try_from(number).ok());
        micros.map(Some).ok_or_else(|| self.bad(&number, "no time in microseconds"))
    }

    pub(super) fn id(&mut self) -> Result<Uuid, StateError> {
        self.take()
    }

    pub(super) fn some_id(&mut self) -> Result<Option<Uuid>, StateError> {
        self.take()
    }

    pub(super) fn some_text(&mut self) -> Result<Option<&'r str>, StateError> {
        self.take()
    }

    pub(super) fn text(&mut self) -> Result<&'r str, StateError> {
        self.take()
    }

    /// `what`: the problem that an error states.
    pub(super) fn some<T: FromStr>(&mut self, what: &str) -> Result<Option<T>, StateError> {
        let Some(text) = self.some_text()? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.bad(&text, what))
    }

    /// NULL is an error.
    pub(super) fn named<T: FromStr>(&mut self, what: &str) -> Result<T, StateError> {
        self.some(what)?.ok_or_else(|| self.bad(&(), what))
    }

    pub(super) fn some_json<T: DeserializeOwned>(&mut self) -> Result<Option<T>, StateError> {
        let Some(text) = self.some_text()? else { return Ok(None) };
        let parsed = serde_json::from_str(text);
        parsed.map(Some).map_err(|error| self.bad(&text, &format!("not as it should be: {error}")))
    }

    /// NULL: the default.
    pub(super) fn json<T: DeserializeOwned + Default>(&mut self) -> Result<T, StateError> {
        Ok(self.some_json()?.unwrap_or_default())
    }

    /// Reads a JSON string, such as the name of an enum's variant.
    pub(super) fn word<T: DeserializeOwned>(&mut self) -> Result<Option<T>, StateError> {
        let Some(text) = self.some_text()? else { return Ok(None) };
        let word: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
            serde::de::IntoDeserializer::into_deserializer(text);
        T::deserialize(word).map(Some).map_err(|error| self.bad(&text, &format!("not known: {error}")))
    }
}

pub(super) fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    // Never fails: the values are names, numbers and texts.
    serde_json::to_string(value).unwrap_or_default()
}

/// Large numbers become negative, and are restored when read.
pub(super) fn wide(number: u64) -> i64 {
    number as i64
}

pub(super) fn micros(at: Micros) -> i64 {
    wide(at.get())
}
