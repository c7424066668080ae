//! Flow ids, and the tags by which tasks belong to a flow.

use interval_queue::{InvalidInput, contract::name::check_some};
use interval_queue_task_contract::{MAX_TAG, Selector, Tag, Task};

/// Prefix of the tag with the flow's id.
const FLOW_PREFIX: &str = "flow:";
/// Prefix of the tag with the task's name in its flow.
const NAME_PREFIX: &str = "name:";
/// Bytes that the prefix leaves of a tag.
const MAX_NAME: usize = MAX_TAG - FLOW_PREFIX.len();

interval_queue::contract::name! {
    /// A flow's id: 1 to 95 bytes of printable text without white space at its ends. Each task of
    /// the flow has the tag `flow:` with this text.
    FlowId, |text| check_some("flow", text, MAX_NAME)
}

impl FlowId {
    /// The task's flow. `None`: it has none.
    pub fn of(task: &Task) -> Option<Self> {
        marked(task, FLOW_PREFIX).and_then(|id| Self::new(id).ok())
    }

    /// Selects the flow's stored tasks.
    #[allow(clippy::expect_used, clippy::missing_panics_doc, reason = "printable and short, as was checked")]
    pub fn selector(&self) -> Selector {
        let tag = Tag::new(self.tag()).expect("a tag of a flow");
        Selector { tags: vec![tag], ..Selector::default() }
    }

    pub(super) fn tag(&self) -> String {
        format!("{FLOW_PREFIX}{self}")
    }
}

/// The task's name in its [flow](crate::Flow). `None`: it has no flow.
pub fn name_in_flow(task: &Task) -> Option<&str> {
    marked(task, NAME_PREFIX)
}

fn marked<'a>(task: &'a Task, mark: &str) -> Option<&'a str> {
    task.tags.iter().find_map(|tag| tag.as_str().strip_prefix(mark))
}

pub(super) fn name_tag(name: &str) -> Result<String, InvalidInput> {
    check_some("name of a task in a flow", name, MAX_NAME)?;
    Ok(format!("{NAME_PREFIX}{name}"))
}
