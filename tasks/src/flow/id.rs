//! Flow ids, and the tags by which tasks belong to a flow.

use interval_queue::{InvalidInput, contract::name::check_some};
use interval_queue_task_contract::{MAX_TAG, Selector, Tag, Task, TaskId};

const FLOW_PREFIX: &str = "flow:";
const NAME_PREFIX: &str = "name:";
const MAX_NAME: usize = MAX_TAG - FLOW_PREFIX.len();

interval_queue::contract::name! {
    /// A flow's id: 1 to 95 bytes of printable text without white space at its ends. Each task of
    /// the flow has the tag `flow:` with this text.
    FlowId, |text| check_some("flow", text, MAX_NAME)
}

impl FlowId {
    /// The task's flow. `None`: it has none.
    pub fn of(task: &Task) -> Option<Self> {
        marked(&task.tags, FLOW_PREFIX).and_then(|id| Self::new(id).ok())
    }

    /// Selects the flow's stored tasks.
    #[allow(clippy::expect_used, clippy::missing_panics_doc, reason = "printable and short, as was checked")]
    pub fn selector(&self) -> Selector {
        let tag = Tag::new(self.tag()).expect("a tag of a flow");
        Selector { tags: vec![tag], ..Selector::default() }
    }

    #[allow(clippy::expect_used, reason = "a UUID is printable and short")]
    pub(super) fn of_last(id: TaskId) -> Self {
        Self::new(id.to_string()).expect("a UUID is printable")
    }

    /// In a flow whose task ids are derived from names.
    pub(super) fn id_of(&self, name: &str) -> TaskId {
        // Unambiguous: neither contains a newline.
        TaskId::named(&format!("flow\n{self}\n{name}"))
    }

    pub(super) fn tag(&self) -> String {
        format!("{FLOW_PREFIX}{self}")
    }
}

/// The task's name in its [flow](crate::Flow). `None`: it has no flow.
pub fn name_in_flow(task: &Task) -> Option<&str> {
    name_of(&task.tags)
}

pub(crate) fn name_of(tags: &[Tag]) -> Option<&str> {
    marked(tags, NAME_PREFIX)
}

fn marked<'a>(tags: &'a [Tag], mark: &str) -> Option<&'a str> {
    tags.iter().find_map(|tag| tag.as_str().strip_prefix(mark))
}

pub(super) fn name_tag(name: &str) -> Result<String, InvalidInput> {
    check_some("name of a task in a flow", name, MAX_NAME)?;
    Ok(format!("{NAME_PREFIX}{name}"))
}
