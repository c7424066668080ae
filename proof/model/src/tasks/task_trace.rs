//! A way through the states in words.

use interval_queue_contract::StateErrorKind;
use interval_queue_task_contract::{Outcome, Step, Stepped, Task, TaskId, Token};
use stateright::Model;

use super::{
    member::Wire,
    task_model::{Action, End, Queue},
    task_setup::{LEASE, Once, Requests, Setup, TICK, number},
    task_world::World,
};

/// One line for each thing that happens; times are in leases from the beginning. Time that passes is told with what
/// happens next.
pub(crate) fn tell(queue: &Queue, actions: &[Action]) -> Vec<String> {
    let mut world = World::new(&queue.setup);
    let began = world.now;
    let time = |world: &World| {
        (world.now - began).get() as f64 / TICK.get() as f64 / (LEASE.get() / TICK.get()) as f64
    };
    let mut lines = Vec::new();
    for &action in actions {
        let Some(next) = queue.next_state(&world, action) else { continue };
        let line = line(&queue.setup, &world, &next, action);
        lines.extend(line.map(|line| format!("at {}: {line}", time(&world))));
        world = next;
    }
    let tasks: Vec<_> = world.stored.tasks.values().map(task).collect();
    lines.push(format!("at {}: {}", time(&world), tasks.join(", ")));
    lines
}

fn name(n: usize) -> char {
    ['A', 'B', 'C', 'D'].get(n).copied().unwrap_or('?')
}

fn line(setup: &Setup, before: &World, after: &World, action: Action) -> Option<String> {
    Some(match action {
        Action::Pass => return None,
        Action::Act(n) => {
            let name = name(n);
            let mut unanswered = before.clone();
            unanswered.act(&Setup { requests: Requests::Slow, ..setup.clone() }, n, true);
            let Wire::Sent(sent) = &unanswered.members[n].wire else {
                return Some(format!("{name} looks what is to do"));
            };
            match &after.members[n].wire {
                Wire::Answered(_, answer) => {
                    format!("{name} sends {}; the store answers: {}", step(sent), answered(answer))
                }
                _ => format!("{name} sends {}", step(sent)),
            }
        }
        Action::Doubt(n) => format!("{} finds that its lease has ended", name(n)),
        Action::Arrive(n) => match &after.members[n].wire {
            Wire::Answered(_, answer) => format!("the store answers {}: {}", name(n), answered(answer)),
            _ => return None,
        },
        Action::Receive(n) => format!("{} gets the answer{}", name(n), starts(before, after, n)),
        Action::ReceiveLate(n) => {
            format!("{} gets an answer it waited for no more{}", name(n), starts(before, after, n))
        }
        Action::TimeOut(n) => match &before.members[n].wire {
            Wire::Sent(_) => format!("{} waits no more; its request is still on its way", name(n)),
            _ => format!("the answer to {} is lost", name(n)),
        },
        Action::Double(n) => format!("the request of {} is on its way twice", name(n)),
        Action::Stray(n, _) => format!("a request that {} waits for no more arrives", name(n)),
        Action::Start(n) => format!("{}{}", name(n), starts(before, after, n)),
        Action::End(n, task, end) => {
            let end = match end {
                End::Done => "is done",
                End::Stopped => "ends as it was told",
                End::Once(which) => match &setup.once[which] {
                    Once::End(outcome) => ends(outcome),
                    Once::Within(_) => "ends within a transaction",
                    Once::Unheard(_) => "ends within a transaction, and nobody hears of it",
                    _ => return None,
                },
            };
            format!("the run of task {task} at {} {end}", name(n))
        }
        Action::Crash(n) => format!("{} dies", name(n)),
        Action::Stop(n) => format!("{} is told to stop", name(n)),
        Action::Once(which) => match &setup.once[which] {
            Once::Add(task) => format!("task {} is added", number(task.id)),
            Once::Verb(verb, task) => format!("somebody wants to {} task {task}", verb.as_str()),
            Once::Change(change) => format!("somebody says: {change:?}"),
            Once::End(_) | Once::Within(_) | Once::Unheard(_) => return None,
        },
    })
}

fn starts(before: &World, after: &World, n: usize) -> String {
    let runs = |world: &World| {
        world.members[n].worker.held.running.iter().map(|(id, run)| (*id, run.token)).collect::<Vec<_>>()
    };
    let known = runs(before);
    let new = runs(after).into_iter().filter(|run| !known.contains(run));
    let new: Vec<_> = new.map(token).collect();
    if new.is_empty() { String::new() } else { format!(" and starts {}", new.join(" and ")) }
}

fn ends(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "is done",
        Outcome::Error(_) => "errs",
        Outcome::Retry(..) => "is to be run again",
        Outcome::Failed(_) => "fails for good",
        Outcome::Released => "is given back",
        _ => "was not begun",
    }
}

fn token((id, token): (TaskId, Token)) -> String {
    format!("attempt {} of task {}", token.attempt, number(id))
}

fn step(step: &Step) -> String {
    let mut said = vec![format!("step {}", step.sequence)];
    let completed = step.complete.iter();
    said.extend(completed.map(|completion| {
        format!("{} {}", token((completion.id, completion.token)), ends(&completion.outcome))
    }));
    if let Some(holding) = &step.held {
        let held: Vec<_> = holding.iter().copied().map(token).collect();
        said.push(if held.is_empty() {
            "holds nothing".into()
        } else {
            format!("holds {}", held.join(" and "))
        });
    }
    if step.want > 0 {
        said.push(format!("wants {}", step.want));
    }
    if step.ahead > 0 {
        said.push(format!("takes {} ahead", step.ahead));
    }
    said.join(", ")
}

fn answered(answer: &Result<Stepped, StateErrorKind>) -> String {
    let Ok(stepped) = answer else { return "refused".into() };
    let mut said = Vec::new();
    if stepped.resync {
        said.push("say what you hold".into());
    }
    said.extend(stepped.lost.iter().map(|id| format!("task {} is not yours", number(*id))));
    said.extend(stepped.stop.iter().map(|(id, stop)| format!("{} task {}", stop.as_str(), number(*id))));
    said.extend(
        stepped
            .leased
            .iter()
            .map(|leased| format!("{} is leased to you", token((leased.task.id, leased.task.token)))),
    );
    if said.is_empty() { "heard".into() } else { said.join(", ") }
}

fn task(x: &Task) -> String {
    let failures = if x.failures == 1 { "failure" } else { "failures" };
    format!("task {} is {} after {} {failures}", number(x.id), x.state, x.failures)
}
