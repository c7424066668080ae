//! Derived commands.

use interval_queue_task_contract::{Change, ChangeTasks, Command};

pub(super) fn dry_run(command: &Command) -> Option<Command> {
    match command {
        Command::Change(Change::Tasks(change)) if !change.dry_run => {
            Some(Command::Change(Change::Tasks(ChangeTasks { dry_run: true, ..change.clone() })))
        }
        _ => None,
    }
}
