//! Orders of pages of tasks, and positions in them.

use std::{cmp::Ordering, fmt, str::FromStr};

use interval_queue_contract::{InvalidInput, Micros};
use serde::{Deserialize, Serialize};

use crate::{Task, TaskId};

/// The order of the tasks of a page; of tasks of the same instant, by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// By the time of adding, earliest first. The default.
    #[default]
    Oldest,
    /// By the time of adding, latest first.
    Newest,
    /// Ended tasks alone, by the time of their end, latest first.
    Ended,
}

impl Order {
    /// All orders.
    pub const ALL: [Self; 3] = [Self::Oldest, Self::Newest, Self::Ended];

    /// Name in cursors and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Oldest => "oldest",
            Self::Newest => "newest",
            Self::Ended => "ended",
        }
    }

    /// Where the order begins: before all its tasks.
    pub fn start(self) -> Cursor {
        match self {
            Self::Oldest => Cursor { order: self, at: Micros::ZERO, id: TaskId::FIRST },
            Self::Newest | Self::Ended => Cursor { order: self, at: Micros::MAX, id: TaskId::LAST },
        }
    }

    /// The position of a task. `None`: the order does not include it.
    pub fn position(self, task: &Task) -> Option<Cursor> {
        let at = match self {
            Self::Oldest | Self::Newest => task.added,
            Self::Ended => task.ended?,
        };
        Some(Cursor { order: self, at, id: task.id })
    }
}

/// A position in an order of tasks: a page begins after it. It stays valid when its task is gone.
///
/// As text: order, microseconds since 1970, id:
/// `newest.1767225600000000.01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cursor {
    /// The order.
    pub order: Order,
    /// The time of the task before it.
    pub at: Micros,
    /// The id of the task before it.
    pub id: TaskId,
}

impl Cursor {
    /// The first `most` of these tasks after this position, for stores without an index.
    #[doc(hidden)]
    pub fn first_after(self, tasks: impl IntoIterator<Item = Task>, most: u32) -> Vec<Task> {
        let positioned = tasks.into_iter().filter_map(|task| Some((self.order.position(&task)?, task)));
        let mut tasks: Vec<_> = positioned.filter(|&(position, _)| self < position).collect();
        tasks.sort_by_key(|&(position, _)| position);
        tasks.into_iter().map(|(_, task)| task).take(most as usize).collect()
    }

    pub(crate) fn just_before(task: &Task) -> Self {
        let order = Order::Oldest;
        match task.id.before() {
            Some(id) => Self { order, at: task.added, id },
            None => Self { order, at: task.added - Micros::new(1), id: TaskId::LAST },
        }
    }
}

impl From<Order> for Cursor {
    fn from(order: Order) -> Self {
        order.start()
    }
}

impl Ord for Cursor {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_time = (self.at, self.id).cmp(&(other.at, other.id));
        let in_order = if self.order == Order::Oldest { by_time } else { by_time.reverse() };
        self.order.cmp(&other.order).then(in_order)
    }
}

impl PartialOrd for Cursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.order.as_str(), self.at.get(), self.id)
    }
}

impl FromStr for Cursor {
    type Err = InvalidInput;

    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        let read = || {
            let (order, rest) = text.split_once('.')?;
            let (at, id) = rest.split_once('.')?;
            let order = Order::ALL.into_iter().find(|one| one.as_str() == order)?;
            Some(Self { order, at: Micros::new(at.parse().ok()?), id: id.parse().ok()? })
        };
        read().ok_or_else(|| {
            InvalidInput::new(format!(
                "{text:?} is no cursor: give the one that the previous page ended with, as in \
                 newest.1767225600000000.01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_text_is_read_back() {
        for order in Order::ALL {
            let cursor = Cursor { order, at: Micros::new(7), id: TaskId::named("x") };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
            assert!(order.start() < cursor);
        }
    }

    #[test]
    fn invalid_cursor_text_is_named() {
        for text in
            ["", "newest", "newest.1", "sideways.1.01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d", "newest.-1.x"]
        {
            let error = text.parse::<Cursor>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("previous page"), "{error}");
        }
    }
}
