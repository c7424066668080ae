//! Commands as the script gets them: a table whose only field is the kind of the command.

use interval_queue_contract::{Micros, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Change, Command, Fire, Follow, Imported, Json, Kind, NewTask, PolicyOverride, Read, Step, TaskId, When,
};
use serde::Serialize;

use super::pack::pack;

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Sent<'a> {
    Add { tasks: Vec<New<'a>>, age: Micros, sequence: u32 },
    Step(&'a Step),
    Change(&'a Change),
    Fire(&'a Fire),
    Import(&'a [Imported]),
    Follow(&'a Follow),
    Read(&'a Read),
}

/// Most new tasks have only a kind and a payload.
#[derive(Serialize)]
#[serde(untagged)]
enum New<'a> {
    Plain(TaskId, &'a Kind, &'a Json),
    Other(&'a NewTask),
}

impl<'a> From<&'a NewTask> for New<'a> {
    fn from(task: &'a NewTask) -> Self {
        let is_plain = task.priority == 0
            && task.key.is_none()
            && task.unique.is_none()
            && task.not_before == When::default()
            && task.deadline.is_none()
            && task.policy == PolicyOverride::default()
            && task.weight == 1
            && task.tags.is_empty()
            && task.trace.is_none()
            && task.edges.is_empty();
        match is_plain {
            true => Self::Plain(task.id, &task.kind, &task.payload),
            false => Self::Other(task),
        }
    }
}

/// # Errors
///
/// The command breaks a bound, or is of a kind that this version does not know.
pub(super) fn packed(command: &Command) -> Result<Vec<u8>, StateError> {
    command.check()?;
    let sent = match command {
        Command::Add(add) => {
            let tasks = add.tasks.iter().map(New::from).collect();
            Sent::Add { tasks, age: add.age, sequence: add.sequence }
        }
        Command::Step(step) => Sent::Step(step),
        Command::Change(change) => Sent::Change(change),
        Command::Fire(fire) => Sent::Fire(fire),
        Command::Import(tasks) => Sent::Import(tasks),
        Command::Follow(follow) => Sent::Follow(follow),
        Command::Read(read) => Sent::Read(read),
        _ => {
            let text = "this version of interval-queue-redis does not know the command: upgrade it";
            return Err(StateError::new(StateErrorKind::Unsupported, text));
        }
    };
    Ok(pack(&sent)?)
}
