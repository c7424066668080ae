//! [`Template`]: the tasks that a schedule adds at an instant.

use std::collections::HashSet;

use interval_queue::InvalidInput;
use interval_queue_task_contract::{NewTask, OnConflict, TaskId, When};

use crate::{
    Task,
    error::Error,
    flow::{Flow, name_of},
};

/// Idle workers read all schedules.
const MAX_TASKS: usize = 100;

/// The tasks that a [schedule](crate::Schedule) adds at each instant: a [`Task`], or a [`Flow`] of
/// up to 100 tasks.
///
/// Each instant makes a flow of its own, whose [id](crate::FlowId) is the id of its last task. The
/// id of the given flow is ignored.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "a schedule has one")]
pub enum Template {
    /// One task.
    Task(Task),
    /// Tasks that wait for each other, added all or none.
    Flow(Flow),
}

impl From<Task> for Template {
    fn from(task: Task) -> Self {
        Self::Task(task)
    }
}

impl From<Flow> for Template {
    fn from(flow: Flow) -> Self {
        Self::Flow(flow)
    }
}

impl Template {
    /// Each after its upstreams, with placeholders as ids; at least one. `has_one_end`: only the
    /// last task may be without a downstream.
    pub(super) fn finish(self, has_one_end: bool) -> Result<Vec<NewTask>, Error> {
        let tasks = match self {
            Self::Task(task) => vec![NewTask { id: TaskId::FIRST, ..task.finish()? }],
            Self::Flow(flow) => flow.into_template()?,
        };
        let many = tasks.len();
        if !(1..=MAX_TASKS).contains(&many) {
            let text = format!(
                "{many} tasks in the flow of a schedule: give 1 to {MAX_TASKS}, and add further ones from a handler"
            );
            return Err(Error::invalid(text));
        }
        let mut earlier = HashSet::new();
        for task in &tasks {
            check(task, &earlier)?;
            earlier.insert(task.id);
        }
        let upstreams: HashSet<TaskId> =
            tasks.iter().flat_map(|task| &task.edges).map(|edge| edge.up).collect();
        let ends: Vec<&NewTask> = tasks.iter().filter(|task| !upstreams.contains(&task.id)).collect();
        if let [one, other, ..] = ends[..]
            && has_one_end
        {
            let text = format!(
                "{} and {} are both last: let one task of the flow wait for all others, or let instants overlap",
                shown(one),
                shown(other)
            );
            return Err(Error::invalid(text));
        }
        Ok(tasks)
    }
}

/// At every instant. `earlier`: earlier tasks of its flow.
fn check(task: &NewTask, earlier: &HashSet<TaskId>) -> Result<(), InvalidInput> {
    let wrong = |text: &str| Err(InvalidInput::new(format!("{} {text}", shown(task))));
    if let Some(edge) = task.edges.iter().find(|edge| !earlier.contains(&edge.up)) {
        let up = edge.up;
        return wrong(&format!(
            "waits for task {up}: give the schedule a flow, and name a task of that flow"
        ));
    }
    if task.on_conflict == OnConflict::Refuse {
        return wrong("cannot refuse: keep or replace the one that has its unique name");
    }
    if matches!(task.not_before, When::At(_)) || matches!(task.deadline, Some(When::At(_))) {
        return wrong("takes no time of the clock: give a delay, or a deadline within some time");
    }
    Ok(())
}

fn shown(task: &NewTask) -> String {
    match name_of(&task.tags) {
        Some(name) => format!("task {name:?} of a schedule's flow"),
        None => "the task of a schedule".into(),
    }
}
