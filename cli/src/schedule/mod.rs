//! `schedule`: tasks that are added again and again.

mod schedule_args;
mod schedule_list;
mod schedule_words;

pub(crate) use self::schedule_args::ScheduleArgs;
use self::schedule_args::{Action, Add, One};
use crate::{
    clock::time_of_day,
    exit::{Failure, USAGE, print, print_as_it_is, report},
};

pub(crate) async fn run(schedule: ScheduleArgs) -> Result<(), Failure> {
    match &schedule.action {
        Action::Add(new) => add(new).await,
        Action::List(list) => schedule_list::list(list).await,
        Action::Pause(One { target, name }) => {
            Ok(target.tasks_for_long().await?.pause_schedule(name.as_str()).await?)
        }
        Action::Resume(One { target, name }) => {
            Ok(target.tasks_for_long().await?.resume_schedule(name.as_str()).await?)
        }
        Action::Remove(One { target, name }) => {
            Ok(target.tasks_for_long().await?.remove_schedule(name.as_str()).await?)
        }
        Action::Run(One { target, name }) => {
            print(&target.tasks_for_long().await?.run_schedule(name.as_str()).await?.id().to_string())
        }
    }
}

async fn add(add: &Add) -> Result<(), Failure> {
    let schedule = add
        .schedule(add.template()?)
        .ok_or_else(|| Failure::new(USAGE, "no rule is given: give --every, --cron or --after-end"))?;
    let most = usize::from(add.next);
    let next = schedule.preview(time_of_day(), most)?;
    let next = if add.dry_run {
        next
    } else {
        let queue = add.target.created_tasks().await?;
        queue.set_schedule(schedule).await?;
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
