//! `schedule`: tasks that are added again and again.
//!
//! `schedule_args` is the command line, `schedule_list` prints schedules, `schedule_words` formats
//! rules and times.

mod schedule_args;
mod schedule_list;
mod schedule_words;

use interval_queue_tasks::TaskQueue;

pub(crate) use self::schedule_args::ScheduleArgs;
use self::schedule_args::{Action, Add, One};
use crate::{
    args::Target,
    clock::time_of_day,
    exit::{Failure, USAGE, print, print_as_it_is, report},
    tasks::{Tasks, open_queue},
};

pub(crate) async fn run(schedule: ScheduleArgs) -> Result<(), Failure> {
    match &schedule.action {
        Action::Add(new) => add(new).await,
        Action::List(list) => schedule_list::list(list).await,
        Action::Pause(One { target, name }) => {
            Ok(existing(target).await?.pause_schedule(name.as_str()).await?)
        }
        Action::Resume(One { target, name }) => {
            Ok(existing(target).await?.resume_schedule(name.as_str()).await?)
        }
        Action::Remove(One { target, name }) => {
            Ok(existing(target).await?.remove_schedule(name.as_str()).await?)
        }
        Action::Run(One { target, name }) => {
            print(&existing(target).await?.run_schedule(name.as_str()).await?.id().to_string())
        }
    }
}

async fn add(add: &Add) -> Result<(), Failure> {
    let schedule = add
        .schedule()
        .ok_or_else(|| Failure::new(USAGE, "no rule is given: give --every, --cron or --after-end"))?;
    let most = usize::from(add.next);
    let next = schedule.preview(time_of_day(), most)?;
    let next = if add.dry_run {
        next
    } else {
        let queue = open_queue(&add.target).await?;
        queue.set_schedule(schedule).await?;
        // Next runs by the clock of the store.
        let stored = queue.schedules().await?.into_iter().find(|stored| stored.name == add.name);
        if stored.as_ref().is_some_and(|stored| stored.paused) {
            report(&format!("{} is paused: `interval-queue schedule resume` ends it", add.name));
        }
        stored.map_or(Vec::new(), |stored| stored.next_runs(most))
    };
    let lines: String =
        next.into_iter().map(|at| format!("{}\n", schedule_words::time(at, add.zone()))).collect();
    print_as_it_is(lines.as_bytes())
}

/// Opens a queue only if it exists.
async fn existing(target: &Target) -> Result<TaskQueue, Failure> {
    let tasks = Tasks::open(target).await?;
    tasks.now().await?;
    open_queue(target).await
}
