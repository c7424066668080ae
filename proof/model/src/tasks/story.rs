//! A way through the states in words.

use super::model::{Action, Queue};

/// One line for each thing that happens.
pub(crate) fn tell(_queue: &Queue, actions: &[Action]) -> Vec<String> {
    actions.iter().map(|action| format!("{action:?}")).collect()
}
