//! Rules of stored tasks that are wrong on purpose: a simulation that finds no fault in them proves
//! nothing.

use interval_queue_contract::{Micros, StateError, StateErrorKind};
use interval_queue_memory::Tables;
use interval_queue_task_contract::{
    AttemptEnd, Change, Command, Leased, MAX_HELD, Order, Presence, Queue, Reply, Rows, State, Step, Task,
    Verb, rules,
};

use super::task_store::Rules;

/// One way in which the rules can be wrong.
#[derive(Clone, Copy, Debug)]
pub struct Sabotage {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What is wrong.
    pub what: &'static str,
    /// The rules.
    pub rules: Rules,
}

/// All of them.
pub const SABOTAGES: [Sabotage; 12] = [
    sabotage("no-fence", "any token completes a task, from any worker", no_fence),
    sabotage("no-sequence", "a step that arrives again is carried out again", no_sequence),
    sabotage("no-restate", "what a worker says that it holds is not believed", no_restate),
    sabotage("no-hand-over", "a key that gets free goes to nobody", no_hand_over),
    sabotage("ends-not-told", "nobody downstream hears of an end", ends_not_notified),
    sabotage("deaths-not-counted", "a run whose worker died is no failure", deaths_not_counted),
    sabotage("no-limit", "as many run as like", no_limit),
    sabotage("retry-needs-name", "a task whose name is taken cannot be retried", retry_needs_name),
    sabotage(
        "old-tokens",
        "a token does not tell when it was given out, so that a store that was rolled back gives it out again",
        old_tokens,
    ),
    sabotage("no-forgiveness", "silence of all counts against each", no_forgiveness),
    sabotage("short-lease", "a lease ends after half of its time", short_lease),
    sabotage("no-order", "the least urgent task is leased first", no_order),
];

const fn sabotage(name: &'static str, what: &'static str, rules: Rules) -> Sabotage {
    Sabotage { name, what, rules }
}

type Applied = Result<Reply, StateError>;

fn all(tables: &mut Tables) -> Result<Vec<Task>, StateError> {
    Ok(tables.tasks.values().cloned().collect())
}

fn change_presence(
    tables: &mut Tables,
    step: &Step,
    change: impl FnOnce(Presence) -> Presence,
) -> Result<(), StateError> {
    match tables.presence(step.worker)? {
        Some(presence) => tables.put_presence(&change(presence)),
        None => Ok(()),
    }
}

fn no_fence(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    if let Command::Step(step) = command {
        for completion in &step.complete {
            if let Some(x) = tables.task(completion.id)?.filter(|x| x.state == State::Leased) {
                tables.put(&x, &Task { worker: Some(step.worker), token: completion.token, ..x.clone() })?;
            }
        }
    }
    rules::apply(tables, now, command)
}

fn no_sequence(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    if let Command::Step(step) = command {
        change_presence(tables, step, |was| Presence {
            sequence: was.sequence.min(step.sequence - 1),
            ..was
        })?;
    }
    rules::apply(tables, now, command)
}

fn no_restate(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    let mut command = command.clone();
    if let Command::Step(step) = &mut command
        && let Some(holding) = &mut step.held
    {
        let completed: Vec<_> = step.complete.iter().map(|completion| completion.id).collect();
        let held = tables.held_by(step.worker, MAX_HELD)?.into_iter().filter(|x| !completed.contains(&x.id));
        holding.extend(held.map(|x| (x.id, x.token)));
        holding.sort();
        holding.dedup();
    }
    rules::apply(tables, now, &command)
}

fn no_hand_over(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    let before = all(tables)?;
    let reply = rules::apply(tables, now, command)?;
    let ended =
        |key: &_| before.iter().any(|was| was.key.as_ref() == Some(key) && was.state == State::Leased);
    for was in before.iter().filter(|was| was.state == State::Blocked && was.key.as_ref().is_some_and(ended))
    {
        if let Some(x) = tables.task(was.id)?.filter(|x| x.state == State::Ready) {
            tables.put(&x, &Task { state: State::Blocked, holds_key: false, ..x.clone() })?;
            tables.count(&x.kind, interval_queue_task_contract::Counted::Now(State::Ready), -1)?;
            tables.count(&x.kind, interval_queue_task_contract::Counted::Now(State::Blocked), 1)?;
        }
    }
    Ok(reply)
}

fn ends_not_notified(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    let reply = rules::apply(tables, now, command)?;
    for x in tables.unnotified(u32::MAX)? {
        tables.put(&x, &Task { notified: true, ..x.clone() })?;
    }
    Ok(reply)
}

fn deaths_not_counted(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    let before = all(tables)?;
    let mut reply = rules::apply(tables, now, command)?;
    for was in before.iter().filter(|was| was.state == State::Leased) {
        if let Some(x) = tables.task(was.id)?.filter(|x| x.failures > was.failures && !x.state.is_ended())
            && x.history.last().is_some_and(|last| last.end == AttemptEnd::Died)
        {
            tables.put(&x, &Task { failures: was.failures, ..x.clone() })?;
            if let Reply::Stepped(stepped) = &mut reply {
                let again = stepped.leased.iter_mut().filter(|leased| leased.task.id == x.id);
                again.for_each(|leased| leased.task.failures = was.failures);
            }
        }
    }
    Ok(reply)
}

fn no_limit(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    let limit = tables.queue()?.and_then(|queue| queue.settings.max_running);
    let (Command::Step(_), Some(limit)) = (command, limit) else { return rules::apply(tables, now, command) };
    set_limit(tables, None)?;
    let reply = rules::apply(tables, now, command);
    set_limit(tables, Some(limit))?;
    reply
}

fn set_limit(tables: &mut Tables, limit: Option<u32>) -> Result<(), StateError> {
    match tables.queue()? {
        Some(mut queue) => {
            queue.settings.max_running = limit;
            tables.put_queue(&queue)
        }
        None => Ok(()),
    }
}

fn retry_needs_name(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    if let Command::Change(Change::Tasks(change)) = command
        && change.verb == Verb::Retry
    {
        let found =
            tables.select(&change.selector, change.after.unwrap_or(Order::Oldest.start()), change.limit)?;
        for x in found.iter().filter(|x| change.verb.acts_on(x.state)) {
            if let Some(unique) = &x.unique
                && tables.by_name(&unique.name)?.is_some()
            {
                return Err(StateError::new(StateErrorKind::Conflict, "its name is taken"));
            }
        }
    }
    rules::apply(tables, now, command)
}

fn old_tokens(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    let mut reply = rules::apply(tables, now, command)?;
    if let Reply::Stepped(stepped) = &mut reply {
        for Leased { task, .. } in &mut stepped.leased {
            let was = task.clone();
            task.token.incarnation = Micros::ZERO;
            tables.put(&was, task)?;
        }
    }
    Ok(reply)
}

fn no_forgiveness(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    if let Some(queue) = tables.queue()? {
        let lease_clock = queue.lease_clock + (now - queue.seen);
        tables.put_queue(&Queue { lease_clock, seen: queue.seen.max(now), ..queue })?;
    }
    rules::apply(tables, now, command)
}

fn short_lease(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    let reply = rules::apply(tables, now, command)?;
    if let Command::Step(step) = command {
        let half = Micros::new(step.lease.get() / 2);
        change_presence(tables, step, |is| Presence { ends: is.ends - half, ..is })?;
    }
    Ok(reply)
}

fn no_order(tables: &mut Tables, now: Micros, command: &Command) -> Applied {
    let Command::Step(step) = command else { return rules::apply(tables, now, command) };
    let ready: Vec<_> = all(tables)?.into_iter().filter(|x| x.state == State::Ready).collect();
    for x in &ready {
        tables.put(x, &Task { due: -x.due, ..x.clone() })?;
    }
    let mut reply = rules::apply(tables, now, &Command::Step(step.clone()));
    if let Ok(Reply::Stepped(stepped)) = &mut reply {
        stepped.leased.iter_mut().for_each(|leased| leased.task.due = -leased.task.due);
    }
    for was in &ready {
        if let Some(x) = tables.task(was.id)? {
            tables.put(&x, &Task { due: was.due, ..x.clone() })?;
        }
    }
    reply
}
