//! The handlers: each run goes as the plan states.

use std::time::Duration;

use interval_queue_task_contract::{TaskId, Token};
use interval_queue_tasks::{Context, Json, TaskError};

use super::{
    actor::Service,
    ids,
    task_execution::Begun,
    task_plan::{Ends, Run},
};
use crate::{process::Process, service::locked};

#[derive(Default)]
pub(super) struct Tally {
    begun: Begun,
    /// When, and of which task of the plan.
    pub(super) starts: Vec<(Duration, usize)>,
}

struct Going {
    process: Process,
    id: TaskId,
    token: Token,
}

impl Going {
    fn notified(&self) {
        self.process.world.inside(|inside| inside.tasks.monitor.notified(self.id, self.token));
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let world = &self.process.world;
        let now = world.now();
        let (at, stopped) = self
            .process
            .condition(|condition| (condition.present(now), condition.stopped.map(|(_, until)| until)));
        let began = world.began();
        let (at, stopped) = (at.saturating_duration_since(began), stopped.map(|until| until - began));
        world.note(|| format!("{} ends {} at {}", self.process.name(), ids::short(self.id), self.token));
        let judged = world.inside(|inside| inside.tasks.monitor.ended(self.id, self.token, at, stopped));
        world.judged(judged);
    }
}

pub(super) async fn run(service: Service, context: Context) -> Result<Json, TaskError> {
    // By its payload: another task may have been replaced by this one.
    let Ok(number) = context.payload().as_str().parse() else {
        return Err(TaskError::permanent("not of this plan"));
    };
    let run = begin(&service, number);
    let going = going(&service, &context, &run);
    if run.tells {
        context.progress(1, 2, "half of it");
    }
    if let Ends::Strays(longer) = run.ends {
        return stray(&service, going, run.takes, longer).await;
    }
    let takes = async {
        match run.ends {
            Ends::Hangs => std::future::pending().await,
            _ => service.process.sleep(run.takes).await,
        }
    };
    if run.listens {
        tokio::select! {
            biased;
            () = context.cancelled() => {
                going.notified();
                return Err(TaskError::released());
            }
            () = takes => {}
        }
    } else {
        takes.await;
    }
    match run.ends {
        Ends::Error => Err(TaskError::failed("it went wrong")),
        Ends::Permanent => Err(TaskError::permanent("it never will")),
        Ends::Retry(after) => Err(TaskError::retry_after(after)),
        // Calls no panic hook.
        Ends::Panic => std::panic::resume_unwind(Box::new("on purpose")),
        Ends::Released => Err(TaskError::released()),
        Ends::Done | Ends::Hangs | Ends::Strays(_) => Ok(Json::default()),
    }
}

/// Work of its own, which cannot be stopped.
async fn stray(
    service: &Service,
    going: Going,
    takes: Duration,
    longer: Duration,
) -> Result<Json, TaskError> {
    let (done, is_done) = tokio::sync::oneshot::channel();
    let process = service.process.clone();
    service.process.run(async move {
        process.sleep(takes).await;
        let is_awaited = done.send(()).is_ok();
        if !is_awaited {
            process.sleep(longer).await;
        }
        drop(going);
    });
    let _ = is_done.await;
    Ok(Json::default())
}

fn begin(service: &Service, number: usize) -> Run {
    let world = &service.process.world;
    let at = world.now() - world.began();
    let mut tally = locked(&service.tally);
    tally.starts.push((at, number));
    let begun = tally.begun.entry(number).or_default();
    let runs = &service.plan.tasks[number].runs;
    let run = runs.get(*begun).or(runs.last()).copied();
    *begun += 1;
    run.unwrap_or(Run { takes: Duration::ZERO, tells: false, listens: true, ends: Ends::Done })
}

fn going(service: &Service, context: &Context, run: &Run) -> Going {
    let process = service.process.clone();
    let world = &process.world;
    let (id, token) = (context.id(), context.token());
    world.note(|| format!("{} begins {} at {token}", process.name(), ids::short(id)));
    let at = world.now() - world.began();
    let is_stray = matches!(run.ends, Ends::Strays(_));
    let (judged, leased_at) = world.inside(|inside| {
        inside.tasks.monitor.began(id, token, (is_stray, run.listens && !is_stray), at);
        let leased_at = inside.tasks.monitor.leased_at(id, token);
        (inside.tasks.kept(&service.queue).judge.begins(context.task()), leased_at)
    });
    world.judged(judged);
    world.starts_at_rate(&process, &service.queue, leased_at);
    Going { process, id, token }
}
