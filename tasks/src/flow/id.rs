//! What names a flow, and how its tasks say that they belong to it.

use interval_queue::{InvalidInput, contract::name::check_some};
use interval_queue_task_contract::{MAX_TAG, Selector, Tag, Task};

/// Marks the tag that says of which flow a task is.
const FLOW: &str = "flow:";
/// Marks the tag that says what a task is called in its flow.
const NAME: &str = "name:";
/// What is left of a tag.
const MAX_NAME: usize = MAX_TAG - FLOW.len();

interval_queue::contract::name! {
    /// Names a flow: 1 to 95 bytes of printable text that neither begins nor ends with white space. Each of its tasks
    /// has the tag `flow:` with this text.
    FlowId, |text| check_some("flow", text, MAX_NAME)
}

impl FlowId {
    /// The flow that a task belongs to; none: to none.
    pub fn of(task: &Task) -> Option<Self> {
        marked(task, FLOW).and_then(|id| Self::new(id).ok())
    }

    /// Its tasks, as far as they are stored.
    #[allow(clippy::expect_used, clippy::missing_panics_doc, reason = "printable and short, as was checked")]
    pub fn selector(&self) -> Selector {
        let tag = Tag::new(self.tag()).expect("a tag of a flow");
        Selector { tag: Some(tag), ..Selector::default() }
    }

    pub(super) fn tag(&self) -> String {
        format!("{FLOW}{self}")
    }
}

/// What a task is called in its [flow](crate::Flow); none: it belongs to none.
pub fn name_in_flow(task: &Task) -> Option<&str> {
    marked(task, NAME)
}

fn marked<'a>(task: &'a Task, mark: &str) -> Option<&'a str> {
    task.tags.iter().find_map(|tag| tag.as_str().strip_prefix(mark))
}

/// The tag of a task that is called so.
pub(super) fn name_tag(name: &str) -> Result<String, InvalidInput> {
    check_some("name of a task in a flow", name, MAX_NAME)?;
    Ok(format!("{NAME}{name}"))
}
