//! How a queue of stored tasks stands, why nothing runs, and how fast it is.

use std::{collections::BTreeMap, time::Duration};

use indicatif::{HumanCount, HumanFloatCount};
use interval_queue::{
    Micros, Snapshot,
    task_contract::{Counted, Kind, Overview, State, Task, Worker},
};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::{
    ask::Tasks,
    json, words,
    workers::{is_alive, run, runs},
};
use crate::{
    args::Target,
    duration::show,
    exit::{Failure, print},
    table::{named, room, table},
};

/// A queue, and who works on it.
struct Look {
    overview: Overview,
    workers: Vec<Worker>,
    pace: Option<Snapshot>,
    /// The run that began first.
    longest: Option<Task>,
}

impl Look {
    fn is_alive(&self, worker: &Worker) -> bool {
        is_alive(worker, self.overview.at)
    }

    fn alive(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|worker| self.is_alive(worker))
    }

    fn is_served(&self, kind: &Kind) -> bool {
        self.alive().any(|worker| worker.presence.kinds.contains(kind))
    }
}

/// What is counted, of one kind or of all.
pub(crate) type Counts = BTreeMap<Counted, u64>;

/// How the tasks of a queue stood, for whoever shows them again and again.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// The store's clock.
    pub(crate) at: Micros,
    pub(crate) counts: Counts,
    /// Why nothing runs, in a word and in words; or that something does.
    pub(crate) word: &'static str,
    pub(crate) reason: String,
    /// How long the first of those that are ready waits.
    pub(crate) oldest: Option<Micros>,
    /// How many workers live.
    pub(crate) workers: u64,
    /// What they run, with their names, that which began first before others: of each at most a hundred.
    pub(crate) runs: Vec<(Task, String)>,
    /// The most urgent of those that are ready, in the order in which they are leased.
    pub(crate) line: Vec<Task>,
}

/// So many tasks of the line are shown to whoever looks again and again.
const IN_LINE: u32 = 20;

impl Standing {
    /// That of a queue; none: it has no tasks.
    pub(crate) async fn find(tasks: &Tasks) -> Result<Option<Self>, Failure> {
        let Some(overview) = tasks.look().await? else { return Ok(None) };
        // Of an empty queue there is nothing to say of workers but how many there are.
        let counts = total(&overview);
        let is_empty = left(&counts) == 0;
        let is_line = in_state(&counts, State::Ready) > 0;
        let mut line = if is_line { tasks.line(IN_LINE).await? } else { Vec::new() };
        let workers = if is_empty { Vec::new() } else { tasks.workers().await? };
        let found = runs(tasks, &workers).await?;
        // What was leased between the looks runs.
        line.retain(|task| found.iter().all(|run| run.id != task.id));
        let look = Look { overview, workers, pace: None, longest: None };
        let label = |task: &Task| {
            let worker = look.workers.iter().find(|worker| Some(worker.presence.worker) == task.worker);
            worker.map_or(String::new(), |worker| words::line(worker.presence.label.as_str()))
        };
        let (word, reason) = reason(&look);
        let runs =
            found.into_iter().map(|task| (label(&task), task)).map(|(label, task)| (task, label)).collect();
        Ok(Some(Self {
            at: look.overview.at,
            counts,
            word,
            reason,
            oldest: look.overview.oldest.map(|oldest| look.overview.at - oldest),
            workers: look.overview.workers,
            runs,
            line,
        }))
    }

    /// How many there are in this state.
    pub(crate) fn in_state(&self, state: State) -> u64 {
        in_state(&self.counts, state)
    }

    /// How fast they ended since this look, and the share of all that has ended.
    pub(crate) fn pace_since(&self, before: (Micros, &Counts)) -> Option<String> {
        Rate::between(before, (self.at, &self.counts)).map(|rate| rate_in_words(rate, left(&self.counts)))
    }

    /// Which share of all that was ever added has ended.
    pub(crate) fn share(&self) -> Option<String> {
        share(&self.counts)
    }

    /// Each state in which there are some, with how many.
    pub(crate) fn in_words(&self) -> String {
        states(&self.counts)
    }
}

pub(super) fn total(overview: &Overview) -> Counts {
    let mut counts = Counts::new();
    for (_, counted, count) in &overview.counts {
        *counts.entry(*counted).or_default() += count;
    }
    counts
}

fn in_state(counts: &Counts, state: State) -> u64 {
    counts.get(&Counted::Now(state)).copied().unwrap_or(0)
}

fn ever(counts: &Counts, counted: Counted) -> u64 {
    counts.get(&counted).copied().unwrap_or(0)
}

/// How many have not ended.
pub(super) fn left(counts: &Counts) -> u64 {
    State::ALL.into_iter().filter(|state| !state.is_ended()).map(|state| in_state(counts, state)).sum()
}

/// The states in which there are some.
fn states(counts: &Counts) -> String {
    let some =
        State::ALL.into_iter().map(|state| (state, in_state(counts, state))).filter(|(_, count)| *count > 0);
    let some: Vec<_> = some.map(|(state, count)| format!("{} {state}", HumanCount(count))).collect();
    if some.is_empty() { "none".into() } else { some.join(", ") }
}

/// What can be said of the rate after two looks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rate {
    /// How much time was between the looks, by the store's clock.
    over: Duration,
    /// How many ended in it, and how many were added.
    ended: u64,
    added: u64,
}

impl Rate {
    fn between((first, a): (Micros, &Counts), (second, b): (Micros, &Counts)) -> Option<Self> {
        let over = (second - first).to_duration();
        let since = |counted| ever(b, counted).saturating_sub(ever(a, counted));
        let ended = since(Counted::EverDone) + since(Counted::EverFailed) + since(Counted::EverCancelled);
        (!over.is_zero()).then_some(Self { over, ended, added: since(Counted::EverAdded) })
    }

    fn per_second(self) -> f64 {
        self.ended as f64 / self.over.as_secs_f64()
    }

    /// How long it takes to the end at this rate, if nothing more is added.
    fn to_end(self, left: u64) -> Option<Duration> {
        let seconds = left as f64 / self.per_second();
        Duration::try_from_secs_f64(seconds.round()).ok().filter(|_| self.ended > 0 && left > 0)
    }
}

/// Why nothing runs, in one word and in words; or that something does.
fn reason(look: &Look) -> (&'static str, String) {
    let Look { overview, pace, .. } = look;
    let counts = total(overview);
    let count = |state| in_state(&counts, state);
    let kinds = |kinds: &[Kind]| {
        kinds.iter().map(|kind| format!("{:?}", kind.as_str())).collect::<Vec<_>>().join(", ")
    };
    let of_kinds = |kinds: &[Kind], states: &[State]| {
        let fits = |kind: &Kind, counted: &Counted| {
            kinds.contains(kind) && states.iter().any(|state| *counted == Counted::Now(*state))
        };
        let of_these = overview.counts.iter().filter(|(kind, counted, _)| fits(kind, counted));
        of_these.map(|(.., count)| count).sum::<u64>()
    };
    let waiting = [State::Added, State::Ready, State::Keyed];
    let candidates: u64 = waiting.into_iter().map(count).sum();
    let paused: Vec<Kind> =
        overview.kinds.iter().filter(|row| row.paused).map(|row| row.kind.clone()).collect();
    let mut unserved: Vec<Kind> = overview.counts.iter().map(|(kind, ..)| kind.clone()).collect();
    unserved.dedup();
    unserved.retain(|kind| !look.is_served(kind) && of_kinds(std::slice::from_ref(kind), &waiting) > 0);
    if left(&counts) == 0 {
        return ("empty", "empty: no task waits".into());
    }
    if overview.paused {
        let running = if count(State::Leased) > 0 { "; what runs goes on" } else { "" };
        return ("paused", format!("paused: `interval-queue resume` ends it{running}"));
    }
    if count(State::Leased) > 0 {
        let limit = overview.settings.max_running.filter(|limit| count(State::Leased) >= (*limit).into());
        let limit = limit.map_or(String::new(), |limit| format!(", {limit} at most"));
        return ("running", format!("{} run{limit}", HumanCount(count(State::Leased))));
    }
    if look.alive().next().is_none() {
        return ("no_worker", "no worker is there: `interval-queue work` is one".into());
    }
    if candidates > 0 && of_kinds(&unserved, &waiting) == candidates {
        return ("unserved", format!("no worker serves the kind {}", kinds(&unserved)));
    }
    if candidates > 0 && of_kinds(&paused, &waiting) == candidates {
        return ("kind_paused", format!("the kind {} is paused", kinds(&paused)));
    }
    if let Some(pace) = pace.as_ref().filter(|_| candidates > 0) {
        let held = pace.record.held_until - pace.at;
        if pace.record.paused {
            return ("pace_paused", "the pace is paused: `interval-queue resume` ends it".into());
        }
        if held > Micros::ZERO {
            return ("pace_held", format!("the pace is held for another {}", show(held)));
        }
        if count(State::Ready) > 0 {
            return ("pace", format!("the next slot of the pace is waited for: {}", pace.standing()));
        }
    }
    if count(State::Ready) + count(State::Added) > 0 {
        return ("next", "nothing is in the way: a worker with room takes the next one".into());
    }
    if let (Some(next), 0) = (overview.next, count(State::Keyed)) {
        return ("time", format!("all wait for their time: the first one in {}", show(next - overview.at)));
    }
    match (count(State::Keyed), count(State::Waiting)) {
        (1.., _) => ("key", "all wait for their keys: `interval-queue tasks list --state keyed`".into()),
        _ => ("upstreams", "all wait for other tasks: `interval-queue tasks list --state waiting`".into()),
    }
}

/// Of what workers run, what began first: of each worker a hundred tasks are looked at.
pub(super) async fn longest(tasks: &Tasks, workers: &[Worker]) -> Result<Option<Task>, Failure> {
    Ok(runs(tasks, workers).await?.into_iter().next())
}

/// Prints how the queue stands.
pub(super) async fn tell(
    target: &Target,
    tasks: &Tasks,
    over: Duration,
    as_json: bool,
) -> Result<(), Failure> {
    let first = tasks.look().await?.ok_or_else(|| tasks.missing())?;
    let (overview, rate) = if over.is_zero() || left(&total(&first)) == 0 {
        (first, None)
    } else {
        sleep(over).await;
        let second = tasks.look().await?.ok_or_else(|| tasks.missing())?;
        let rate = Rate::between((first.at, &total(&first)), (second.at, &total(&second)));
        (second, rate)
    };
    let workers = tasks.workers().await?;
    let longest = longest(tasks, &workers).await?;
    let look = Look { overview, workers, pace: target.look().await?, longest };
    let queue = tasks.queue.as_str();
    if as_json {
        return print(&format!("{:#}", object(queue, &look, rate)));
    }
    print(&text(queue, &look, rate, room()))
}

fn text(queue: &str, look: &Look, rate: Option<Rate>, room: usize) -> String {
    let overview = &look.overview;
    let counts = total(overview);
    let mut lines = vec![
        named("queue", queue, room),
        named("tasks", &states(&counts), room),
        named("runs", &reason(look).1, room),
    ];
    if let Some(oldest) = overview.oldest {
        lines.push(named("oldest", &oldest_in_words(overview.at - oldest), room));
    }
    if let Some(longest) = &look.longest {
        lines.push(named("longest", &run(longest, overview.at), room));
    }
    if let Some(rate) = rate {
        let hint = if rate.ended == 0 { "; --over looks for longer" } else { "" };
        lines.push(named("rate", &format!("{}{hint}", rate_in_words(rate, left(&counts))), room));
    }
    if let Some(share) = share(&counts) {
        lines.push(named("ended", &share, room));
    }
    let mut page = lines.join("\n");
    let rows = rows(overview);
    if rows.len() > 1 {
        page += &format!("\n\n{}", table(["KIND", "TASKS", "EVER DONE", "EVER FAILED"], &rows, room));
    }
    let rows: Vec<_> = look.workers.iter().map(|worker| row(look, worker)).collect();
    match rows.as_slice() {
        [] => page += "\nworkers  none is known",
        rows => page += &format!("\n\n{}", table(["WORKER", "ID", "KINDS", "HAS", "LEASE LEFT"], rows, room)),
    }
    page
}

fn share(counts: &Counts) -> Option<String> {
    let added = ever(counts, Counted::EverAdded);
    let ended = added.saturating_sub(left(counts));
    let share = (ended as f64 / added as f64 * 100.0).floor();
    (added > 0).then(|| format!("{share}% of the {} that were ever added", HumanCount(added)))
}

fn rate_in_words(rate: Rate, left: u64) -> String {
    let over = show(Duration::from_millis(u64::try_from(rate.over.as_millis()).unwrap_or(u64::MAX)));
    if rate.ended == 0 {
        return format!("none ended in the last {over}");
    }
    let per_second = HumanFloatCount((rate.per_second() * 100.0).round() / 100.0);
    let mut text = format!("{per_second} ended per second, in the last {over}");
    if rate.added > 0 {
        text += &format!(", while {} were added", HumanCount(rate.added));
    } else if let Some(to_end) = rate.to_end(left) {
        text += &format!("; at this rate all have ended in {}, if nothing more is added", show(to_end));
    }
    text
}

pub(super) fn oldest_in_words(age: Micros) -> String {
    format!("the first of those that are ready was added {} ago", show(age))
}

/// A row for each kind.
fn rows(overview: &Overview) -> Vec<[String; 4]> {
    let mut kinds: BTreeMap<&Kind, Counts> = BTreeMap::new();
    for (kind, counted, count) in &overview.counts {
        kinds.entry(kind).or_default().insert(*counted, *count);
    }
    let row = |(kind, counts): (&Kind, Counts)| {
        let number = |counted| HumanCount(ever(&counts, counted)).to_string();
        [kind.to_string(), states(&counts), number(Counted::EverDone), number(Counted::EverFailed)]
    };
    kinds.into_iter().map(row).collect()
}

fn row(look: &Look, worker: &Worker) -> [String; 5] {
    let presence = &worker.presence;
    let kinds: Vec<_> = presence.kinds.iter().map(ToString::to_string).collect();
    let left = match worker.alive_for.filter(|_| look.is_alive(worker)) {
        Some(left) => show(left),
        None => format!("gone; last seen {}", words::time(presence.seen)),
    };
    let holds = worker.holds.len();
    let holds = if holds < 100 { holds.to_string() } else { "100 or more".into() };
    [presence.label.to_string(), presence.worker.to_string(), kinds.join(", "), holds, left]
}

pub(super) fn counts_json(counts: &Counts) -> Value {
    let by_name: Map<_, _> = Counted::all()
        .map(|counted| (counted.as_str().to_owned(), json!(counts.get(&counted).copied().unwrap_or(0))))
        .collect();
    Value::Object(by_name)
}

fn object(queue: &str, look: &Look, rate: Option<Rate>) -> Value {
    let Look { overview, workers, .. } = look;
    let counts = total(overview);
    let (standing, why) = reason(look);
    let mut kinds: BTreeMap<&Kind, Counts> = BTreeMap::new();
    for (kind, counted, count) in &overview.counts {
        kinds.entry(kind).or_default().insert(*counted, *count);
    }
    let kinds = kinds.iter().map(|(kind, counts)| {
        let row = overview.kinds.iter().find(|row| row.kind == **kind);
        json!({
            "kind": kind,
            "paused": row.is_some_and(|row| row.paused),
            "served": look.is_served(kind),
            "counts": counts_json(counts),
        })
    });
    let since = |at: Option<Micros>| at.map(|at| (overview.at - at).get());
    json!({
        "queue": queue,
        "paused": overview.paused,
        "standing": standing,
        "reason": why,
        "left": left(&counts),
        "counts": counts_json(&counts),
        "kinds": kinds.collect::<Vec<_>>(),
        "oldest_ready_us": since(overview.oldest),
        "longest_run": look.longest.as_ref().map(json::row),
        "next_in_us": overview.next.map(|at| (at - overview.at).get()),
        "rate": rate.map(|rate| json!({
            "over_us": u64::try_from(rate.over.as_micros()).unwrap_or(u64::MAX),
            "ended": rate.ended,
            "added": rate.added,
        })),
        "max_running": overview.settings.max_running,
        "workers": workers.iter().map(|worker| json::worker(worker, look.is_alive(worker))).collect::<Vec<_>>(),
    })
}

/// How many there are in each state.
pub(crate) fn counted(overview: &Overview) -> String {
    let paused = if overview.paused { "paused; " } else { "" };
    format!("{paused}{}", states(&total(overview)))
}

#[cfg(test)]
mod tests {
    use interval_queue::task_contract::{KindRow, Settings};

    use super::*;

    fn overview(at: u64, counts: &[(Counted, u64)]) -> Overview {
        let counts = counts.iter().map(|(counted, count)| (Kind::default(), *counted, *count)).collect();
        Overview {
            at: Micros::new(at),
            settings: Settings::default(),
            paused: false,
            counts,
            workers: 0,
            kinds: Vec::<KindRow>::new(),
            unserved: Vec::new(),
            oldest: None,
            next: None,
        }
    }

    #[test]
    fn the_rate_is_what_was_seen_and_no_more() {
        let first = overview(1_000_000, &[(Counted::EverDone, 10), (Counted::EverAdded, 100)]);
        let counts = [(Counted::EverDone, 25), (Counted::EverFailed, 5), (Counted::EverAdded, 100)];
        let second = overview(3_000_000, &counts);
        let between = |first: &Overview, second: &Overview| {
            Rate::between((first.at, &total(first)), (second.at, &total(second)))
        };
        let rate = between(&first, &second).unwrap();
        assert_eq!(rate, Rate { over: Duration::from_secs(2), ended: 20, added: 0 });
        let words = rate_in_words(rate, 70);
        assert_eq!(
            words,
            "10 ended per second, in the last 2s; at this rate all have ended in 7s, if nothing more is added"
        );
        let more = Rate { added: 3, ..rate };
        assert_eq!(rate_in_words(more, 70), "10 ended per second, in the last 2s, while 3 were added");
        let none = Rate { ended: 0, ..rate };
        assert_eq!(rate_in_words(none, 70), "none ended in the last 2s");
        assert_eq!(none.to_end(70), None);
        assert_eq!(between(&first, &first), None, "no time has passed");
    }

    #[test]
    fn why_nothing_runs_begins_with_what_comes_first() {
        let now = |state| Counted::Now(state);
        let word =
            |overview: Overview| reason(&Look { overview, workers: Vec::new(), pace: None, longest: None }).0;
        assert_eq!(word(overview(0, &[(now(State::Done), 3)])), "empty");
        assert_eq!(word(overview(0, &[(now(State::Ready), 3)])), "no_worker");
        let paused = |counts: &[_]| Overview { paused: true, ..overview(0, counts) };
        assert_eq!(word(paused(&[(now(State::Leased), 1)])), "paused");
        assert_eq!(word(overview(0, &[(now(State::Leased), 1), (now(State::Ready), 1)])), "running");
    }
}
