//! Reads the columns of a row in order. Errors name the row and the column.

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_task_contract::field::RowReader;
use tokio_postgres::{Row, types::FromSql};
use uuid::Uuid;

/// Reads a row, starting at its first column.
pub(super) struct Reader<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> Reader<'r> {
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

    /// The value read last, as a text. Reading checked its type.
    fn shown(&self) -> String {
        let at = self.next - 1;
        let number = |_| self.row.try_get::<_, Option<i64>>(at).map(|number| number.map(|it| it.to_string()));
        let text = self.row.try_get::<_, Option<&str>>(at).map(|text| text.map(|it| format!("{it:?}")));
        let shown = text.or_else(number).ok().flatten().unwrap_or_else(|| "NULL".to_owned());
        shown.chars().take(60).collect()
    }
}

impl<'r> RowReader<'r> for Reader<'r> {
    type Error = StateError;

    fn int(&mut self) -> Result<Option<i64>, StateError> {
        self.take()
    }

    fn truth(&mut self) -> Result<bool, StateError> {
        self.take()
    }

    fn text(&mut self) -> Result<Option<&'r str>, StateError> {
        self.take()
    }

    fn id(&mut self) -> Result<Option<Uuid>, StateError> {
        self.take()
    }

    fn bad(&self, what: &str) -> StateError {
        // The message of a parser may contain the whole value.
        let what: String =
            what.chars().take(200).map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
        let text = format!("column {}: {} is {what}", self.column(), self.shown());
        StateError::new(StateErrorKind::Damaged, text)
    }
}
