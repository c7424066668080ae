//! Values of the columns of SQL stores: how each type of a field is written and read.

use std::borrow::Cow;

use interval_queue_contract::{Label, Micros};
use serde::{
    Serialize,
    de::{DeserializeOwned, IntoDeserializer},
};
use uuid::Uuid;

use crate::{
    Attempt, Counted, EdgeState, Event, Following, Json, Key, Kind, LogLine, OnFailure, Overlap,
    PolicyOverride, Progress, RebalanceCursor, Settings, State, Stop, Tag, TaskId, Traceparent, Until,
    WorkerId,
};

/// The value of a column. `None`: NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'v> {
    /// A number. Unsigned ones of 64 bits are stored as signed ones.
    Int(Option<i64>),
    /// A flag.
    Truth(bool),
    /// A text.
    Text(Option<Cow<'v, str>>),
    /// A UUID.
    Id(Option<Uuid>),
    /// A JSON text.
    Json(Option<Cow<'v, str>>),
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// [`Value::Int`]
    Int,
    /// [`Value::Truth`]
    Truth,
    /// [`Value::Text`]
    Text,
    /// [`Value::Id`]
    Id,
    /// [`Value::Json`]
    Json,
}

/// Reads the columns of a row in their order.
#[allow(clippy::missing_errors_doc, reason = "a column of another type, or `bad` of its value")]
pub trait RowReader<'r>: Sized {
    /// An error that names the row and the column.
    type Error;

    /// The next column, a number. `None`: NULL.
    fn int(&mut self) -> Result<Option<i64>, Self::Error>;
    /// The next column, a flag.
    fn truth(&mut self) -> Result<bool, Self::Error>;
    /// The next column, a text, or JSON as a text. `None`: NULL.
    fn text(&mut self) -> Result<Option<&'r str>, Self::Error>;
    /// The next column, a UUID. `None`: NULL.
    fn id(&mut self) -> Result<Option<Uuid>, Self::Error>;
    /// An error about the column read last. `what`: what its value is.
    fn bad(&self, what: &str) -> Self::Error;

    /// The next column as a field.
    fn read<F: Field>(&mut self) -> Result<F, Self::Error> {
        F::read(self)
    }
}

/// A type of fields that are columns.
pub trait Field: Sized {
    /// The type of the column.
    const TYPE: ColumnType;
    /// The value of the column.
    fn value(&self) -> Value<'_>;
    /// Reads the column.
    #[allow(clippy::missing_errors_doc, reason = "as the reader")]
    fn read<'r, R: RowReader<'r>>(reader: &mut R) -> Result<Self, R::Error>;
}

/// The text of a value as JSON. Never fails: keys are texts, and there are no other errors.
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// An instant as a signed number.
pub fn micros(at: Micros) -> i64 {
    at.get().cast_signed()
}

/// A field that must not be NULL, and the same field that may be.
macro_rules! field {
    ($type:ty: $kind:ident, |$value:ident| $stored:expr, |$read:ident| $parsed:expr) => {
        impl Field for $type {
            const TYPE: ColumnType = ColumnType::$kind;
            fn value(&self) -> Value<'_> {
                let $value = self;
                Value::$kind(Some($stored))
            }
            fn read<'r, R: RowReader<'r>>(reader: &mut R) -> Result<Self, R::Error> {
                reader.read::<Option<Self>>()?.ok_or_else(|| reader.bad("not set"))
            }
        }

        impl Field for Option<$type> {
            const TYPE: ColumnType = ColumnType::$kind;
            fn value(&self) -> Value<'_> {
                Value::$kind(self.as_ref().map(|$value| $stored))
            }
            fn read<'r, R: RowReader<'r>>(reader: &mut R) -> Result<Self, R::Error> {
                let Some($read) = field!(next $kind reader)? else { return Ok(None) };
                $parsed.map(Some).map_err(|what| reader.bad(&what))
            }
        }
    };
    (next Int $reader:ident) => { $reader.int() };
    (next Id $reader:ident) => { $reader.id() };
    (next $kind:ident $reader:ident) => { $reader.text() };
}

macro_rules! fields {
    (numbers: $($type:ty),*) => { $(field!(
        $type: Int, |number| i64::from(*number), |number| <$type>::try_from(number).map_err(|_| "out of range".to_owned())
    );)* };
    (ids: $($type:ident),*) => { $(field!($type: Id, |id| id.uuid(), |id| always($type::new(id)));)* };
    (names: $($type:ident $what:literal),*) => { $(field!(
        $type: Text, |name| Cow::Borrowed(name.as_str()),
        |text| text.parse().map_err(|_| concat!("no ", $what).to_owned())
    );)* };
    (words: $($type:ident),*) => { $(field!(
        $type: Text, |word| Cow::Borrowed(word.as_str()), |text| word(text).map_err(|error| format!("not known: {error}"))
    );)* };
    (json: $($type:ty),*) => { $(field!(
        $type: Json, |value| Cow::Owned(to_json(value)),
        |text| from_json(text)
    );)* };
    (or_empty: $($type:ty),*) => { $(
        /// NULL: empty.
        impl Field for $type {
            const TYPE: ColumnType = ColumnType::Json;
            fn value(&self) -> Value<'_> {
                Value::Json((!self.is_empty()).then(|| to_json(self).into()))
            }
            fn read<'r, R: RowReader<'r>>(reader: &mut R) -> Result<Self, R::Error> {
                let parsed = reader.text()?.map(from_json).transpose();
                parsed.map(Option::unwrap_or_default).map_err(|what| reader.bad(&what))
            }
        }
    )* };
}

fields!(numbers: i64, i32, u32, u8);
fields!(ids: TaskId, WorkerId);
fields!(names: Key "name", Kind "kind", Label "label", State "state", Traceparent "traceparent",
    OnFailure "action on a failure");
fields!(words: EdgeState, Overlap, Stop, Until);
fields!(json: Settings, RebalanceCursor, Following, Progress, Event, Vec<Kind>);
fields!(or_empty: PolicyOverride, Vec<Tag>, Vec<Attempt>, Vec<LogLine>);
field!(u64: Int, |number| number.cast_signed(), |number| always(number.cast_unsigned()));
field!(Micros: Int, |at| micros(*at), |number| u64::try_from(number)
    .ok()
    .and_then(|number| Micros::try_from(number).ok())
    .ok_or_else(|| "no time in microseconds".to_owned()));
field!(Counted: Text, |counted| Cow::Borrowed(counted.as_str()), |text| Counted::of_str(text)
    .ok_or_else(|| "not counted".to_owned()));
field!(Json: Json, |json| Cow::Borrowed(json.as_str()), |text| always(Json::stored(text)));
field!(String: Text, |text| Cow::Borrowed(text.as_str()), |text| always(text.to_owned()));

/// A value that cannot be wrong.
fn always<T>(value: T) -> Result<T, String> {
    Ok(value)
}

impl Field for bool {
    const TYPE: ColumnType = ColumnType::Truth;
    fn value(&self) -> Value<'_> {
        Value::Truth(*self)
    }
    fn read<'r, R: RowReader<'r>>(reader: &mut R) -> Result<Self, R::Error> {
        reader.truth()
    }
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("not as it should be: {error}"))
}

/// The variant of an enum with this name.
fn word<T: DeserializeOwned>(text: &str) -> Result<T, serde::de::value::Error> {
    T::deserialize(IntoDeserializer::into_deserializer(text))
}
