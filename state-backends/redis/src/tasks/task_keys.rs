//! The keys of a queue's tasks: those of its rate limit with suffixes, in the same hash slot.

use interval_queue_contract::QueueName;

use crate::pace::keys::Keys;

const ROWS: &str = ":t";

#[derive(Clone, Debug)]
pub(crate) struct TaskKeys(Keys);

impl TaskKeys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self(Keys::new(prefix))
    }

    /// The `KEYS` of the script: rows, tasks, bodies, edges, index.
    pub(crate) fn of(&self, queue: &QueueName) -> [String; 5] {
        let [pace, _] = self.0.of(queue);
        ["", ":tasks", ":bodies", ":edges", ":index"].map(|what| format!("{pace}{ROWS}{what}"))
    }

    pub(crate) fn channel(&self, queue: &QueueName) -> String {
        let [rows, ..] = self.of(queue);
        rows + ":changes"
    }

    pub(crate) fn pattern(&self) -> String {
        self.0.pattern() + ROWS
    }

    /// `None`: a key of another prefix.
    pub(crate) fn queue(&self, rows: &str) -> Option<QueueName> {
        self.0.queue(rows.strip_suffix(ROWS)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_keys_that_differ_from_the_rates() {
        for prefix in ["interval-queue", "my:app", "{x}%"] {
            let keys = TaskKeys::new(prefix);
            for text in ["mail", "mail:t", "{a}:t", "100%"] {
                let queue = QueueName::new(text).unwrap();
                let of_queue = keys.of(&queue);
                assert_eq!(keys.queue(&of_queue[0]), Some(queue.clone()), "{of_queue:?}");
                assert!(of_queue[1..].iter().all(|key| keys.queue(key).is_none()), "{of_queue:?}");
                assert!(of_queue.iter().all(|key| key.matches(['{', '}']).count() == 2), "{of_queue:?}");
                assert_eq!(Keys::new(prefix).queue(&of_queue[0]), None);
            }
        }
    }
}
