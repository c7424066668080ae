//! Commands on stored tasks from bytes: mostly plausible, on few tasks of few workers, with numbers
//! at all ends of their ranges.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use interval_queue::{
    MaxRunning,
    contract::{Label, Micros, OnExisting},
    task_contract::{
        Add, Change, ChangeTasks, Command, Completion, Cursor, Fire, Follow, FreeCapacity, Json, Keep, Key,
        Kind, MAX_DELAY, MAX_LEASE, MIN_LEASE, Mark, NewEdge, NewSchedule, NewTask, OnConflict, OnFailure,
        Order, Outcome, Overlap, Policy, PolicyOverride, Progress, Read, Selector, Settings, SettingsChange,
        State, Step, Tag, TaskId, Token, Unique, Until, Verb, When, WorkerId,
    },
};
use uuid::Uuid;

/// Issued leases, and the state of the schedule.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) leased: Vec<(WorkerId, TaskId, Token)>,
    pub(crate) revision: u64,
    pub(crate) next: Option<Micros>,
    sequence: u64,
}

/// Some break a bound.
pub(crate) fn command(u: &mut Unstructured<'_>, seen: &mut Seen, now: Micros) -> Result<Command> {
    Ok(match u.int_in_range(0..=16)? {
        0..=4 => Command::Add(add(u, now)?),
        5..=11 => Command::Step(step(u, seen)?),
        12..=13 => Command::Change(change(u, now)?),
        14 => Command::Fire(fire(u, seen, now)?),
        15 => {
            let after = some(u, |u| Ok(Mark { number: number(u)?, at: micros(u)? }))?;
            Command::Follow(Follow { after, most: few(u)? })
        }
        _ => Command::Read(read(u)?),
    })
}

fn number(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match u.int_in_range(0..=5)? {
        0..=2 => u.int_in_range(0..=5)?,
        3 => Micros::MAX.get() - u.int_in_range(0..=5)?,
        4 => 1_000_000 + u.int_in_range(0..=3_000_000)?,
        _ => u.arbitrary()?,
    })
}

fn few(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=9)? {
        0 => u.arbitrary()?,
        1 => 0,
        _ => u.int_in_range(1..=4)?,
    })
}

fn micros(u: &mut Unstructured<'_>) -> Result<Micros> {
    number(u).map(Micros::new)
}

fn within(u: &mut Unstructured<'_>, least: Micros, most: Micros) -> Result<Micros> {
    Ok(match u.int_in_range(0..=9)? {
        0 => least,
        1 => most,
        2 => micros(u)?,
        _ => micros(u)?.clamp(least, most),
    })
}

/// Mostly seconds, now and then anywhere, also back.
pub(crate) fn tick(u: &mut Unstructured<'_>, now: Micros) -> Result<Micros> {
    let step = Micros::new(u.int_in_range(0..=20_000_000)?);
    Ok(match u.int_in_range(0..=15)? {
        0 => micros(u)?,
        1 => now - step,
        2 => now + Micros::from_millis(3_600_000) + step,
        3 => now + Micros::from_millis(15 * 24 * 3_600_000) + step,
        4..=6 => now,
        _ => now + step,
    })
}

fn some<T>(u: &mut Unstructured<'_>, of: impl Fn(&mut Unstructured<'_>) -> Result<T>) -> Result<Option<T>> {
    if u.ratio(1, 3)? { of(u).map(Some) } else { Ok(None) }
}

fn several<T>(
    u: &mut Unstructured<'_>,
    most: usize,
    mut of: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    (0..u.int_in_range(0..=most)?).map(|_| of(u)).collect()
}

fn task_id(u: &mut Unstructured<'_>) -> Result<TaskId> {
    Ok(TaskId::new(Uuid::from_u128(u.int_in_range(1..=12)?)))
}

fn worker(u: &mut Unstructured<'_>) -> Result<WorkerId> {
    Ok(WorkerId::new(Uuid::from_u128(u.int_in_range(1..=3)?)))
}

fn kind(u: &mut Unstructured<'_>) -> Result<Kind> {
    Ok(Kind::new(*u.choose(&["default", "send", "Straße"])?).unwrap())
}

fn key(u: &mut Unstructured<'_>) -> Result<Key> {
    Ok(Key::new(*u.choose(&["!", "k", "ß"])?).unwrap())
}

fn json(u: &mut Unstructured<'_>) -> Result<Json> {
    Ok(Json::new(*u.choose(&[
        "null",
        "1",
        "{\"a\": [\"b\"]}",
        "\"0123456789012345678901234567890123456789\"",
    ])?)
    .unwrap())
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.int_in_range(0..=3)? {
        0 => String::new(),
        1 => "ß".repeat(2_049),
        _ => (*u.choose(&["no", "a\0b", "\u{1b}[31m\n"])?).to_owned(),
    })
}

fn when(u: &mut Unstructured<'_>, now: Micros) -> Result<When> {
    Ok(match u.int_in_range(0..=4)? {
        0 => When::At(micros(u)?),
        1 => When::At(now + micros(u)?),
        2 => When::After(within(u, Micros::ZERO, MAX_DELAY)?),
        _ => When::After(Micros::new(u.int_in_range(0..=5_000_000)?)),
    })
}

fn own_policy(u: &mut Unstructured<'_>) -> Result<PolicyOverride> {
    let PolicyOverride { max_attempts, max_retries, backoff, max_backoff, timeout } = policy(u)?.into();
    Ok(PolicyOverride {
        max_attempts: max_attempts.filter(|_| u.arbitrary().unwrap_or(true)),
        max_retries: max_retries.filter(|_| u.arbitrary().unwrap_or(true)),
        backoff: backoff.filter(|_| u.arbitrary().unwrap_or(true)),
        max_backoff: max_backoff.filter(|_| u.arbitrary().unwrap_or(true)),
        timeout,
    })
}

fn policy(u: &mut Unstructured<'_>) -> Result<Policy> {
    let max_backoff = within(u, Micros::ZERO, MAX_DELAY)?;
    Ok(Policy {
        max_attempts: few(u)?,
        max_retries: few(u)?,
        backoff: if u.ratio(1, 5)? { micros(u)? } else { micros(u)?.min(max_backoff) },
        max_backoff,
        timeout: some(u, micros)?,
    })
}

fn new_task(u: &mut Unstructured<'_>, now: Micros) -> Result<NewTask> {
    let mut task = NewTask::new(task_id(u)?, json(u)?);
    task.kind = kind(u)?;
    if u.ratio(2, 3)? {
        task.priority = if u.ratio(1, 8)? { u.arbitrary()? } else { u.int_in_range(-100..=100)? };
        task.key = some(u, key)?;
        task.ordered = task.key.is_some() && u.arbitrary()? || u.ratio(1, 20)?;
        task.unique =
            some(u, |u| Ok(Unique { name: key(u)?, until: *u.choose(&[Until::Ended, Until::Leased])? }))?;
        task.on_conflict =
            *u.choose(&[OnConflict::Keep, OnConflict::Keep, OnConflict::Replace, OnConflict::Refuse])?;
        task.not_before = if u.arbitrary()? { when(u, now)? } else { When::default() };
        task.deadline = some(u, |u| when(u, now))?;
        task.policy = if u.arbitrary()? { own_policy(u)? } else { PolicyOverride::default() };
        task.weight = few(u)?.max(u.int_in_range(0..=1)?);
        task.tags = several(u, 2, tag)?;
        task.edges = several(u, 3, edge)?;
    }
    Ok(task)
}

fn edge(u: &mut Unstructured<'_>) -> Result<NewEdge> {
    let on_failure = *u.choose(&[OnFailure::Cancel, OnFailure::Run, OnFailure::Wait])?;
    Ok(NewEdge { up: task_id(u)?, name: some(u, key)?, on_failure })
}

fn add(u: &mut Unstructured<'_>, now: Micros) -> Result<Add> {
    let age = if u.ratio(1, 6)? { micros(u)? } else { Micros::ZERO };
    Ok(Add { tasks: several(u, 4, |u| new_task(u, now))?.into(), sequence: 0, age })
}

fn outcome(u: &mut Unstructured<'_>) -> Result<Outcome> {
    Ok(match u.int_in_range(0..=8)? {
        0..=2 => Outcome::Done(json(u)?),
        3 => Outcome::Error(text(u)?),
        4 => Outcome::Retry(micros(u)?, text(u)?),
        5 => Outcome::Failed(text(u)?),
        6 => Outcome::Released,
        7 => Outcome::Unable(text(u)?),
        _ => Outcome::Exchanged,
    })
}

/// Mostly a lease that was issued once.
fn lease(u: &mut Unstructured<'_>, leased: &[(WorkerId, TaskId, Token)]) -> Result<(TaskId, Token)> {
    if leased.is_empty() || u.ratio(1, 6)? {
        return Ok((task_id(u)?, Token { incarnation: micros(u)?, attempt: few(u)? }));
    }
    let (_, id, token) = *u.choose(leased)?;
    Ok((id, token))
}

fn step(u: &mut Unstructured<'_>, seen: &mut Seen) -> Result<Step> {
    let mut step = Step::first(worker(u)?, several(u, 3, kind)?, Micros::from_millis(30_000));
    step.label = Label::default();
    if u.ratio(3, 4)? {
        step.kinds = ["Straße", "default", "send"].map(|kind| Kind::new(kind).unwrap()).to_vec();
        step.kinds.sort();
    }
    seen.sequence += 1;
    step.sequence = if u.ratio(1, 8)? { number(u)? } else { seen.sequence };
    step.acknowledged = if u.ratio(1, 8)? { number(u)? } else { step.sequence.saturating_sub(1) };
    if u.ratio(1, 5)? {
        step.lease = within(u, MIN_LEASE, MAX_LEASE)?;
    }
    let of_this: Vec<_> = seen.leased.iter().copied().filter(|(who, ..)| *who == step.worker).collect();
    step.complete = several(u, 3, |u| {
        let (id, token) = lease(u, &of_this)?;
        Ok(Completion { id, token, outcome: outcome(u)? })
    })?;
    step.held = some(u, |u| several(u, 3, |u| lease(u, &seen.leased)))?;
    step.progress = several(u, 1, |u| {
        let (id, token) = lease(u, &of_this)?;
        Ok((id, token, Progress { done: u.arbitrary()?, total: u.arbitrary()?, text: text(u)? }))
    })?;
    step.want = few(u)?;
    step.at_least = if u.ratio(1, 6)? { Some(u.arbitrary()?) } else { None };
    step.free_capacity =
        if u.ratio(1, 6)? { Some(FreeCapacity { weight: few(u)?, empty: u.arbitrary()? }) } else { None };
    Ok(step)
}

fn settings(u: &mut Unstructured<'_>) -> Result<SettingsChange> {
    let max_running = match u.int_in_range(0..=3)? {
        0 => MaxRunning::AtMost(few(u)?),
        1 => MaxRunning::Unlimited,
        _ => MaxRunning::Keep,
    };
    let day = Settings::default().ageing;
    Ok(SettingsChange {
        max_running,
        key_limit: some(u, few)?,
        ageing: some(u, |u| within(u, Micros::ZERO, day * 366))?,
        keep: some(u, |u| {
            let (done, failed, cancelled) = (micros(u)?, micros(u)?, micros(u)?);
            Ok(Keep { done, failed, cancelled, most_done: some(u, few)?, ..Keep::default() })
        })?,
        max_payload: some(u, |u| Ok(if u.arbitrary()? { few(u)? } else { 40 }))?,
        policy: some(u, policy)?,
        kinds: if u.ratio(1, 6)? { [(kind(u)?, own_policy(u)?)].into() } else { BTreeMap::new() },
    })
}

fn selector(u: &mut Unstructured<'_>) -> Result<Selector> {
    Ok(Selector {
        ids: several(u, 3, task_id)?,
        kinds: several(u, 1, kind)?,
        states: several(u, 2, |u| Ok(*u.choose(&State::ALL)?))?,
        key: if u.ratio(1, 6)? { Some(key(u)?) } else { None },
        unique: if u.ratio(1, 6)? { Some(key(u)?) } else { None },
        id_suffix: if u.ratio(1, 6)? { Some(text(u)?) } else { None },
        tags: if u.ratio(1, 6)? { vec![tag(u)?] } else { Vec::new() },
        schedule: if u.ratio(1, 6)? { Some(key(u)?) } else { None },
        worker: if u.ratio(1, 6)? { Some(worker(u)?) } else { None },
        error: if u.ratio(1, 6)? { Some(text(u)?) } else { None },
        payload: if u.ratio(1, 6)? { Some(text(u)?) } else { None },
        added_from: if u.ratio(1, 6)? { Some(micros(u)?) } else { None },
        added_before: if u.ratio(1, 6)? { Some(micros(u)?) } else { None },
        ended_from: if u.ratio(1, 6)? { Some(micros(u)?) } else { None },
        ended_before: if u.ratio(1, 6)? { Some(micros(u)?) } else { None },
    })
}

fn cursor(u: &mut Unstructured<'_>) -> Result<Cursor> {
    let order = *u.choose(&Order::ALL)?;
    Ok(if u.arbitrary()? { Cursor { order, at: micros(u)?, id: task_id(u)? } } else { order.start() })
}

fn change(u: &mut Unstructured<'_>, now: Micros) -> Result<Change> {
    Ok(match u.int_in_range(0..=11)? {
        0 => Change::Open(
            settings(u)?,
            *u.choose(&[OnExisting::Replace, OnExisting::Keep, OnExisting::Fail, OnExisting::Reset])?,
        ),
        1 => Change::Set(settings(u)?),
        2 => Change::Pause,
        3 => Change::Resume,
        4 => Change::Kind(kind(u)?, u.arbitrary()?),
        5 => Change::Key(key(u)?, some(u, few)?),
        6 => Change::Schedule(NewSchedule {
            name: key(u)?,
            definition: json(u)?,
            next: some(u, |u| Ok(if u.arbitrary()? { now } else { micros(u)? }))?,
            paused: u.ratio(1, 5)?,
            overlap: *u.choose(&[Overlap::Allow, Overlap::Skip, Overlap::Keep])?,
        }),
        7 => Change::Unschedule(key(u)?),
        8 => Change::DeclareLost(WorkerId::new(uuid::Uuid::from_u128(u.arbitrary()?))),
        _ => Change::Tasks(ChangeTasks {
            selector: selector(u)?,
            verb: match u.int_in_range(0..=9)? {
                0 => Verb::Cancel,
                1 => Verb::Retry,
                2 => Verb::Release,
                3 => Verb::Delay(micros(u)?),
                4 => Verb::Priority(u.arbitrary()?),
                5 => Verb::Tag(tag(u)?),
                6 => Verb::Untag(tag(u)?),
                7 => Verb::Link(edge(u)?),
                8 => Verb::Unlink(task_id(u)?),
                _ => Verb::Purge,
            },
            after: some(u, cursor)?,
            watermark: some(u, micros)?,
            limit: if u.ratio(1, 4)? { few(u)? } else { 1_000 },
            dry_run: u.ratio(1, 4)?,
        }),
    })
}

fn tag(u: &mut Unstructured<'_>) -> Result<Tag> {
    Ok(Tag::new(*u.choose(&["red", "grün"])?).unwrap())
}

fn fire(u: &mut Unstructured<'_>, seen: &Seen, now: Micros) -> Result<Fire> {
    let from = if u.ratio(1, 4)? { micros(u)? } else { seen.next.unwrap_or(now) };
    Ok(Fire {
        schedule: key(u)?,
        revision: if u.ratio(1, 4)? { number(u)? } else { seen.revision },
        from,
        made: several(u, 2, |u| Ok((if u.arbitrary()? { from } else { micros(u)? }, new_task(u, now)?)))?,
        next: some(u, |u| Ok(from + Micros::new(1) + micros(u)?))?,
    })
}

fn read(u: &mut Unstructured<'_>) -> Result<Read> {
    Ok(match u.int_in_range(0..=9)? {
        0 => Read::Overview,
        1 => Read::Tasks(several(u, 4, task_id)?),
        2 => Read::Page { selector: selector(u)?, after: cursor(u)?, limit: few(u)?, bodies: u.arbitrary()? },
        3 => Read::Inputs { down: task_id(u)?, after: some(u, task_id)? },
        4 => Read::Workers,
        5 => Read::Schedules,
        6 => Read::Times { kind: kind(u)?, from: micros(u)? },
        7 => Read::Upcoming(few(u)?),
        8 => Read::Downstreams { up: task_id(u)?, after: some(u, task_id)? },
        _ => Read::Ready(several(u, 3, kind)?),
    })
}
