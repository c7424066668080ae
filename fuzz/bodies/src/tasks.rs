//! The rules of stored tasks: whatever is asked, one command after the other, a reply, and rows as
//! good as those before.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use interval_queue::{
    contract::Micros,
    task_contract::{
        Command, Counted, Kind, MAX_ERROR, MAX_HISTORY, MAX_PAGE, Order, Read, Reply, Selector, State,
        Stored, Task, rules,
    },
};
use interval_queue_memory::Tables;

use crate::{
    promise::{Verdict, refuses},
    task_commands::{Seen, command, tick},
};

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    play(&mut Unstructured::new(bytes)).unwrap_or(Verdict::Refused)
}

fn play(u: &mut Unstructured<'_>) -> Result<Verdict> {
    let mut tables = Tables::default();
    let mut now = Micros::new(1_750_000_000_000_000);
    let mut seen = Seen::default();
    let mut verdict = Verdict::Refused;
    for _ in 0..24 {
        if u.is_empty() {
            break;
        }
        now = tick(u, now)?;
        let command = command(u, &mut seen, now)?;
        // A small budget now and then leaves much to the next steps.
        let share = if u.ratio(1, 3)? { 1 } else { 100 };
        let before = picture(&tables, now);
        let reply = rules::apply_with_budget(&mut tables, now, share, &command);
        let _ = tables.finish(reply.is_ok());
        let after = picture(&tables, now);
        match reply {
            Ok(reply) => {
                verdict = Verdict::Read;
                if command.is_read() {
                    assert_eq!(before, after, "{command:?} changed something");
                }
                remember(&mut seen, &command, &reply);
                after.iter().for_each(is_sound);
            }
            Err(error) => {
                assert_eq!(before, after, "{error} changed something: {command:?}");
                let _ = refuses(&error, &[0; 300]);
            }
        }
    }
    Ok(verdict)
}

/// Empty if there is no queue.
fn picture(tables: &Tables, now: Micros) -> Vec<Reply> {
    let mut tables = tables.clone();
    let mut look = |read| rules::apply(&mut tables, now, &Command::Read(read)).ok();
    let Some(overview) = look(Read::Overview) else { return Vec::new() };
    let all = Selector::states(State::ALL);
    let page =
        look(Read::Page { selector: all, after: Order::Oldest.start(), limit: MAX_PAGE, bodies: true })
            .unwrap();
    let Reply::Page(found) = &page else { panic!("{page:?} to a page") };
    let ids = found.tasks.iter().map(|stored| stored.task.id).collect();
    let others = [Read::Tasks(ids), Read::Workers, Read::Schedules].map(|read| look(read).unwrap());
    let counts = counts(&overview, &found.tasks);
    assert!(counts.is_ok(), "{}", counts.unwrap_err());
    [overview, page].into_iter().chain(others).collect()
}

/// Counts equal the stored tasks.
fn counts(overview: &Reply, tasks: &[Stored]) -> std::result::Result<(), String> {
    let Reply::Overview(overview) = overview else { return Err(format!("{overview:?} to an overview")) };
    let mut real: BTreeMap<(Kind, State), u64> = BTreeMap::new();
    for stored in tasks {
        *real.entry((stored.task.kind.clone(), stored.task.state)).or_default() += 1;
    }
    let notified = overview.counts.iter().filter_map(|(kind, counted, number)| match counted {
        Counted::Now(state) => Some(((kind.clone(), *state), *number)),
        _ => None,
    });
    let notified: BTreeMap<_, _> = notified.collect();
    if notified == real { Ok(()) } else { Err(format!("T10: {notified:?} are told, and there are {real:?}")) }
}

fn is_sound(look: &Reply) {
    let Reply::Page(page) = look else { return };
    for Stored { task: x, .. } in &page.tasks {
        let is_ended = x.state.is_ended();
        assert!(x.state != State::Leased || x.worker.is_some() && x.leased.is_some(), "T2: {x:?}");
        assert_eq!(is_ended, x.ended.is_some(), "T3: {x:?}");
        assert!(!is_ended || !x.holds_key && !x.holds_name && !x.unserved && x.stop.is_none(), "T6: {x:?}");
        assert!(x.key.is_some() || !x.holds_key && !x.unserved, "T6: {x:?}");
        assert!(
            !matches!(x.state, State::Ready | State::Leased) || x.key.is_none() || x.holds_key,
            "T6: {x:?}"
        );
        assert!(x.error.as_ref().is_none_or(|error| error.len() <= MAX_ERROR + 100), "{x:?}");
        assert!(x.history.len() <= MAX_HISTORY && x.due.unsigned_abs() < 1 << 54, "T4: {x:?}");
        let written = serde_json::to_string(x).unwrap();
        assert_eq!(serde_json::from_str::<Task>(&written).unwrap(), *x);
    }
}

/// Records ids and names for later commands.
fn remember(seen: &mut Seen, command: &Command, reply: &Reply) {
    match (command, reply) {
        (Command::Step(step), Reply::Stepped(stepped)) => {
            for leased in &stepped.leased {
                let lease = (step.worker, leased.task.id, leased.task.token);
                assert!(!seen.leased.contains(&lease), "T2: {lease:?} was given before");
                seen.leased.push(lease);
            }
            for due in &stepped.schedules {
                (seen.revision, seen.next) = (due.schedule.revision, Some(due.at));
            }
        }
        (Command::Add(add), Reply::Added(added)) => assert_eq!(add.tasks.len(), added.len()),
        (Command::Step(_) | Command::Add(_), other) => panic!("{other:?} to {command:?}"),
        _ => {}
    }
}
