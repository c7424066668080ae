//! Reads the columns of a row in order. Errors name the row and the column.

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_task_contract::field::RowReader;
use rusqlite::{Row, types::ValueRef};
use uuid::Uuid;

use crate::store::Fault;

/// Reads a row, starting at its first column.
pub(super) struct Reader<'r> {
    row: &'r Row<'r>,
    next: usize,
}

impl<'r> Reader<'r> {
    pub(super) fn of(row: &'r Row<'r>) -> Self {
        Self { row, next: 0 }
    }

    fn take(&mut self) -> Result<ValueRef<'r>, Fault> {
        self.next += 1;
        Ok(self.row.get_ref(self.next - 1)?)
    }
}

impl<'r> RowReader<'r> for Reader<'r> {
    type Error = Fault;

    fn int(&mut self) -> Result<Option<i64>, Fault> {
        match self.take()? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(number) => Ok(Some(number)),
            _ => Err(self.bad("no number")),
        }
    }

    fn truth(&mut self) -> Result<bool, Fault> {
        Ok(self.read::<i64>()? != 0)
    }

    fn text(&mut self) -> Result<Option<&'r str>, Fault> {
        match self.take()? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => std::str::from_utf8(text).map(Some).map_err(|_| self.bad("no text")),
            _ => Err(self.bad("no text")),
        }
    }

    fn id(&mut self) -> Result<Option<Uuid>, Fault> {
        self.text()?.map(|text| text.parse().map_err(|_| self.bad("no id"))).transpose()
    }

    fn bad(&self, what: &str) -> Fault {
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
}
