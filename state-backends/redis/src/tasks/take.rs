//! Converts packed values into the rows of the contract.

use std::collections::BTreeMap;

use interval_queue_contract::{Micros, StateError};
use interval_queue_task_contract::{
    Attempt, AttemptEnd, Counted, Cursor, Edge, EdgeState, Json, Keep, Kind, KindRow, LogLine, Nominal,
    OnFailure, Order, Overlap, Policy, PolicyOverride, Presence, Progress, Schedule, Settings, State, Stop,
    Task, TaskId, Token, Unique, Until, WorkerId,
};
use uuid::Uuid;

use super::pack::{Packed, nonsense};

type Taken<T> = Result<T, StateError>;

/// A type that can be read from a packed value.
pub(super) trait Take: Sized {
    fn take(packed: &Packed<'_>) -> Taken<Self>;
}

impl Packed<'_> {
    pub(super) fn to<T: Take>(&self) -> Taken<T> {
        T::take(self)
    }

    /// A field of a table, or `nil`.
    pub(super) fn field(&self, name: &str) -> &Self {
        match self {
            Self::Table(fields) => {
                fields.iter().find(|(of, _)| *of == name.as_bytes()).map_or(&Self::Nil, |(_, field)| field)
            }
            _ => &Self::Nil,
        }
    }

    /// An element of a list, or `nil`.
    pub(super) fn at(&self, n: usize) -> &Self {
        match self {
            Self::List(all) => all.get(n).unwrap_or(&Self::Nil),
            _ => &Self::Nil,
        }
    }

    pub(super) fn get<T: Take>(&self, name: &str) -> Taken<T> {
        self.field(name).to()
    }

    /// A field that is omitted if it is the default.
    pub(super) fn get_or_default<T: Take + Default>(&self, name: &str) -> Taken<T> {
        Ok(self.get::<Option<T>>(name)?.unwrap_or_default())
    }

    pub(super) fn bytes(&self) -> Taken<&[u8]> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(nonsense("a text is missing")),
        }
    }

    pub(super) fn text(&self) -> Taken<&str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| nonsense("a text is not UTF-8"))
    }

    pub(super) fn list<T>(&self, take: impl FnMut(&Self) -> Taken<T>) -> Taken<Vec<T>> {
        match self {
            Self::List(all) => all.iter().map(take).collect(),
            // An empty list is packed as `nil`.
            Self::Nil => Ok(Vec::new()),
            Self::Table(fields) if fields.is_empty() => Ok(Vec::new()),
            _ => Err(nonsense("a list is missing")),
        }
    }
}

/// `nil` and `false` are `None`.
impl<T: Take> Take for Option<T> {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        match packed {
            Packed::Nil | Packed::Flag(false) => Ok(None),
            some => some.to().map(Some),
        }
    }
}

impl<T: Take> Take for Vec<T> {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        packed.list(Packed::to)
    }
}

impl Take for bool {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        match packed {
            Packed::Nil => Ok(false),
            Packed::Flag(flag) => Ok(*flag),
            _ => Err(nonsense("a flag is missing")),
        }
    }
}

impl Take for i64 {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        match packed {
            Packed::Int(number) => Ok(*number),
            _ => Err(nonsense("a number is missing")),
        }
    }
}

macro_rules! number {
    ($($name:ty)*) => {$(
        impl Take for $name {
            fn take(packed: &Packed<'_>) -> Taken<Self> {
                packed.to::<i64>()?.try_into().map_err(|_| nonsense("a number is out of range"))
            }
        }
    )*};
}
number! { u64 u32 i32 usize }

impl Take for Micros {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        packed.to::<u64>()?.try_into().map_err(|_| nonsense("a time is out of range"))
    }
}

impl Take for Uuid {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        Self::from_slice(packed.bytes()?).map_err(|_| nonsense("an id has not 16 bytes"))
    }
}

impl Take for TaskId {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        packed.to().map(Self::new)
    }
}

impl Take for Cursor {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        let name = packed.field("order").text()?;
        let order = Order::ALL.into_iter().find(|order| order.as_str() == name);
        let order = order.ok_or_else(|| nonsense("an order is unknown"))?;
        Ok(Self { order, at: packed.get("at")?, id: packed.get("id")? })
    }
}

impl Take for WorkerId {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        packed.to().map(Self::new)
    }
}

impl Take for String {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        packed.text().map(Into::into)
    }
}

impl Take for Json {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        packed.text().map(Self::stored)
    }
}

macro_rules! name {
    ($($name:ty)*) => {$(
        impl Take for $name {
            fn take(packed: &Packed<'_>) -> Taken<Self> {
                packed.text()?.parse().map_err(|_| nonsense("a name is none"))
            }
        }
    )*};
}
name! { interval_queue_contract::Label interval_queue_task_contract::Key interval_queue_task_contract::Kind interval_queue_task_contract::Tag
interval_queue_task_contract::Traceparent }

/// An element by its number.
fn one_of<T: Copy>(of: &[T], packed: &Packed<'_>) -> Taken<T> {
    of.get(packed.to::<usize>()?).copied().ok_or_else(|| nonsense("there is no such state"))
}

/// In the order of `limits.lua`.
pub(super) const EDGE_STATES: [EdgeState; 6] =
    [EdgeState::New, EdgeState::Open, EdgeState::Held, EdgeState::Met, EdgeState::Failed, EdgeState::Cut];
pub(super) const ON_FAILURES: [OnFailure; 3] = [OnFailure::Cancel, OnFailure::Run, OnFailure::Wait];
pub(super) const STOPS: [Stop; 3] = [Stop::Cancel, Stop::Deadline, Stop::Release];
pub(super) const ENDS: [AttemptEnd; 7] = [
    AttemptEnd::Done,
    AttemptEnd::Error,
    AttemptEnd::Retry,
    AttemptEnd::Released,
    AttemptEnd::Stopped,
    AttemptEnd::Died,
    AttemptEnd::Lost,
];
pub(super) const OVERLAPS: [(&str, Overlap); 3] =
    [("allow", Overlap::Allow), ("skip", Overlap::Skip), ("keep", Overlap::Keep)];

impl Take for State {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        one_of(&Self::ALL, packed)
    }
}

impl Take for OnFailure {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        one_of(&ON_FAILURES, packed)
    }
}

impl Take for Stop {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        one_of(&STOPS, packed)
    }
}

impl Take for Counted {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        let all: Vec<_> = Self::all().collect();
        one_of(&all, packed)
    }
}

/// The two numbers of a token, in the fields of a row.
fn token(row: &Packed<'_>) -> Taken<Token> {
    Ok(Token { incarnation: row.get_or_default("incarnation")?, attempt: row.get_or_default("attempt")? })
}

impl Take for Policy {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        Ok(Self {
            max_attempts: packed.at(0).to()?,
            max_retries: packed.at(1).to()?,
            backoff: packed.at(2).to()?,
            max_backoff: packed.at(3).to()?,
            timeout: packed.at(4).to()?,
        })
    }
}

impl Take for PolicyOverride {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        Ok(Self {
            max_attempts: packed.at(0).to()?,
            max_retries: packed.at(1).to()?,
            backoff: packed.at(2).to()?,
            max_backoff: packed.at(3).to()?,
            timeout: packed.at(4).to()?,
        })
    }
}

/// The policies of kinds.
impl Take for BTreeMap<Kind, PolicyOverride> {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        let Packed::Table(fields) = packed else { return Err(nonsense("the policies of kinds are missing")) };
        fields.iter().map(|(kind, own)| Ok((Packed::Text(kind).to()?, own.to()?))).collect()
    }
}

impl Take for Progress {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        let short = || nonsense("a progress is cut off");
        let (done, rest) = packed.bytes()?.split_first_chunk().ok_or_else(short)?;
        let (total, text) = rest.split_first_chunk().ok_or_else(short)?;
        let (done, total) = (u64::from_be_bytes(*done), u64::from_be_bytes(*total));
        Ok(Self { done, total, text: Packed::Text(text).to()? })
    }
}

/// A list: the time, the token, the number and the text.
impl Take for LogLine {
    fn take(row: &Packed<'_>) -> Taken<Self> {
        Ok(Self {
            at: row.at(0).to()?,
            token: Token { incarnation: row.at(1).to()?, attempt: row.at(2).to()? },
            number: row.at(3).to()?,
            text: row.at(4).to()?,
        })
    }
}

impl Take for Attempt {
    fn take(row: &Packed<'_>) -> Taken<Self> {
        Ok(Self {
            token: token(row)?,
            worker: row.get("worker")?,
            leased: row.get("leased")?,
            ended: row.get("ended")?,
            end: one_of(&ENDS, row.field("how"))?,
            error: row.get("error")?,
        })
    }
}

impl Take for Task {
    fn take(row: &Packed<'_>) -> Taken<Self> {
        task(row, row.get("id")?, row.get("due")?)
    }
}

/// A task from a row without id and `due`.
pub(super) fn task(row: &Packed<'_>, id: TaskId, due: i64) -> Taken<Task> {
    let until = |row: &Packed<'_>| match row.get::<Option<u32>>("name_until") {
        Ok(Some(1)) => Until::Leased,
        _ => Until::Ended,
    };
    let unique = row.get::<Option<_>>("unique")?.map(|name| Unique { name, until: until(row) });
    let schedule = match row.get("schedule")? {
        Some(schedule) => Some(Nominal { schedule, at: row.get("instant")? }),
        None => None,
    };
    Ok(Task {
        id,
        kind: row.get("kind")?,
        priority: row.get_or_default("priority")?,
        key: row.get("key")?,
        ordered: row.get("ordered")?,
        unique,
        holds_name: row.get("holds_name")?,
        weight: row.get::<Option<_>>("weight")?.unwrap_or(1),
        tags: row.get("tags")?,
        deadline: row.get("deadline")?,
        not_before: row.get_or_default("not_before")?,
        policy: row.get::<Option<_>>("policy")?.unwrap_or_default(),
        due,
        added: row.get("added")?,
        position: row.get_or_default("position")?,
        has_edges: row.get("has_edges")?,
        schedule,
        trace: row.get("trace")?,
        state: row.get("state")?,
        holds_key: row.get("holds_key")?,
        unserved: row.get("unserved")?,
        token: token(row)?,
        failures: row.get_or_default("failures")?,
        retries: row.get_or_default("retries")?,
        returns: row.get_or_default("returns")?,
        generation: row.get_or_default("generation")?,
        worker: row.get("worker")?,
        admitted: row.get("admitted")?,
        leased: row.get("leased")?,
        prefetched: row.get("prefetched")?,
        stop: row.get("stop")?,
        progress: row.get("progress")?,
        ended: row.get("ended")?,
        ended_lease_clock: row.get("ended_lease_clock")?,
        notified: row.get("notified")?,
        retained: row.get("retained")?,
        error: row.get("error")?,
        history: row.get("history")?,
    })
}

impl Take for Edge {
    fn take(row: &Packed<'_>) -> Taken<Self> {
        Ok(Self {
            up: row.get("up")?,
            down: row.get("down")?,
            name: row.get("name")?,
            on_failure: row.get("on_failure")?,
            state: one_of(&EDGE_STATES, row.field("state"))?,
            generation: row.get_or_default("generation")?,
        })
    }
}

impl Take for Settings {
    fn take(row: &Packed<'_>) -> Taken<Self> {
        let keep = row.field("keep");
        Ok(Self {
            max_running: row.get("max_running")?,
            key_limit: row.get("key_limit")?,
            ageing: row.get("ageing")?,
            keep: Keep {
                done: keep.at(0).to()?,
                failed: keep.at(1).to()?,
                cancelled: keep.at(2).to()?,
                most_done: keep.at(3).to()?,
                most_failed: keep.at(4).to()?,
                most_cancelled: keep.at(5).to()?,
            },
            max_payload: row.get("max_payload")?,
            policy: row.get("policy")?,
            kinds: row.get_or_default("kinds")?,
        })
    }
}

impl Take for Presence {
    fn take(row: &Packed<'_>) -> Taken<Self> {
        Ok(Self {
            worker: row.get("worker")?,
            label: row.get("label")?,
            sequence: row.get("sequence")?,
            lease: row.get("lease")?,
            ends: row.get("ends")?,
            kinds: row.get("kinds")?,
            version: row.get("version")?,
            since: row.get("since")?,
            seen: row.get("seen")?,
            busy: row.get("busy")?,
            cleared: row.get("cleared")?,
            at_least: row.get("at_least")?,
            room: row.get("room")?,
        })
    }
}

impl Take for KindRow {
    fn take(row: &Packed<'_>) -> Taken<Self> {
        Ok(Self {
            kind: row.get("kind")?,
            paused: row.get("paused")?,
            paused_at: row.get("paused_at")?,
            served_until: row.get("served_until")?,
            open: row.get("open")?,
            needs_rebalancing: row.get("needs_rebalancing")?,
        })
    }
}

impl Take for Schedule {
    fn take(row: &Packed<'_>) -> Taken<Self> {
        let overlap = row.field("overlap").text()?;
        let overlap = OVERLAPS.into_iter().find(|(word, _)| *word == overlap).map(|(_, overlap)| overlap);
        Ok(Self {
            name: row.get("name")?,
            revision: row.get("revision")?,
            incarnation: row.get("incarnation")?,
            definition: row.get("definition")?,
            next: row.get("next")?,
            paused: row.get("paused")?,
            overlap: overlap.ok_or_else(|| nonsense("there is no such overlap"))?,
            last: row.get("last")?,
            kept: row.get("kept")?,
            may_follow: row.get("may_follow")?,
        })
    }
}
