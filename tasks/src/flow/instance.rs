//! Templates of flows, which schedules store, and the flows that are made of them.

use std::collections::HashMap;

use interval_queue_task_contract::{NewEdge, NewTask, Tag, TaskId};

use super::{Flow, FlowId, id::name_of};
use crate::error::Error;

impl Flow {
    /// Each after its upstreams. Equal flows make equal templates: ids are derived from names.
    pub(crate) fn into_template(self) -> Result<Vec<NewTask>, Error> {
        let flow = Self { id: FlowId::of_last(TaskId::FIRST), is_named: true, ..self };
        flow.into_tasks()?.into_iter().map(crate::Task::finish).collect()
    }
}

/// The last task gets the id `last`; the flow's id is its text.
pub(crate) fn instance(template: &[NewTask], last: TaskId) -> Vec<NewTask> {
    let (flow, template_flow) = (FlowId::of_last(last), FlowId::of_last(TaskId::FIRST));
    let mut ids = HashMap::with_capacity(template.len());
    let mut tasks = template.to_vec();
    let count = tasks.len();
    for (n, task) in tasks.iter_mut().enumerate() {
        let id = match name_of(&task.tags) {
            Some(name) if n + 1 < count => flow.id_of(name),
            _ => last,
        };
        ids.insert(task.id, id);
        task.id = id;
        for NewEdge { up, .. } in &mut task.edges {
            *up = ids.get(up).copied().unwrap_or(*up);
        }
        if let (Some(tag), Ok(own)) =
            (task.tags.iter_mut().find(|tag| tag.as_str() == template_flow.tag()), Tag::new(flow.tag()))
        {
            *tag = own;
        }
    }
    tasks
}
