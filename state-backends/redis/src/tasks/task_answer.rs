//! Decodes the script's answer: a reply, or why the command has changed nothing.

use std::collections::BTreeMap;

use interval_queue_contract::{Micros, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Added, Change, Command, Cursor, Day, Edge, Input, Inputs, Json, Key, Kind, Leased, LogLine, OnFailure,
    Page, Policy, PolicyOverride, Presence, Read, Refusal, Reply, Settings, State, Stepped, Stored, Task,
    TaskId, Times, Token, Took, Why, Worker,
};
use redis::Value;
use rmp_serde::{Deserializer, RawRef};
use serde::Deserialize;
use uuid::Uuid;

use super::{fault::Fault, row};

type Taken<T> = Result<T, StateError>;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer<T> {
    Reply(T),
    Refusal(Refusal),
    Fault(Fault),
}

const MAX_DEPTH: usize = 16;

pub(super) fn unpacked<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Taken<T> {
    let mut deserializer = Deserializer::from_read_ref(bytes);
    deserializer.set_max_depth(MAX_DEPTH);
    T::deserialize(&mut deserializer).map_err(|error| nonsense(&error.to_string()))
}

fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Taken<T> {
    match unpacked(bytes)? {
        Answer::Reply(reply) => Ok(reply),
        Answer::Refusal(refusal) => Err(refusal.into()),
        Answer::Fault(fault) => Err(fault.into()),
    }
}

/// No script of this version gives such an answer.
pub(super) fn nonsense(what: &str) -> StateError {
    // It may quote the answer.
    let what = what.replace(char::is_control, " ");
    let text =
        format!("redis gave an answer that makes no sense: {what}; does another program use the keys?");
    StateError::new(StateErrorKind::Foreign, text)
}

/// Decodes the answer to `command`.
///
/// # Errors
///
/// The script refused the command, or its answer is invalid.
pub fn reply(command: &Command, answer: Value) -> Taken<Reply> {
    let Value::BulkString(bytes) = answer else { return Err(nonsense("it is not packed")) };
    let bytes = &bytes[..];
    Ok(match command {
        Command::Add(_) | Command::Import(_) => {
            Reply::Added(read::<Vec<RawRef<'_>>>(bytes)?.iter().map(added).collect::<Taken<_>>()?)
        }
        Command::Step(_) => Reply::Stepped(stepped(read(bytes)?)?),
        Command::Change(Change::Recount) => Reply::Recounted(read(bytes)?),
        Command::Change(Change::Tasks(_)) => Reply::Touched(read(bytes)?),
        Command::Change(_) => Reply::Changed(read(bytes)?),
        Command::Fire(_) => Reply::Fired(read(bytes)?),
        Command::Follow(_) => Reply::Followed(read(bytes)?),
        Command::Read(of) => match of {
            Read::Clock => Reply::Clock(read(bytes)?),
            Read::Overview => Reply::Overview(read(bytes)?),
            Read::Tasks(_) => {
                let tasks: Vec<Option<Parts>> = read(bytes)?;
                Reply::Tasks(tasks.into_iter().map(|task| task.map(stored)).collect())
            }
            Read::Page { .. } => {
                let (tasks, next, miscounted): (Vec<Parts>, Option<Cursor>, bool) = read(bytes)?;
                Reply::Page(Page { tasks: tasks.into_iter().map(stored).collect(), next, miscounted })
            }
            Read::Count { .. } => Reply::Count(read(bytes)?),
            Read::Inputs { .. } => {
                let (inputs, next): (Vec<InputParts>, _) = read(bytes)?;
                Reply::Inputs(Inputs { inputs: inputs.into_iter().map(input).collect(), next })
            }
            Read::Downstreams { .. } => Reply::Downstreams(read(bytes)?),
            Read::Workers => Reply::Workers(read::<Vec<_>>(bytes)?.into_iter().map(worker).collect()),
            Read::Schedules => Reply::Schedules(read(bytes)?),
            Read::Times { .. } => Reply::Times(Times::of(took(bytes)?)),
            Read::Days { .. } => Reply::Days(Day::of(took(bytes)?)),
            Read::Upcoming(_) => Reply::Upcoming(read(bytes)?),
            Read::KeyLimit(_) => Reply::KeyLimit(read(bytes)?),
            Read::Ready(_) => Reply::Ready(read(bytes)?),
            _ => return Err(nonsense("nothing was asked")),
        },
        _ => return Err(nonsense("nothing was asked")),
    })
}

/// A letter and an id.
fn added(packed: &RawRef<'_>) -> Taken<Added> {
    let of = |(letter, id): (&u8, &[u8])| {
        let id = TaskId::new(Uuid::from_slice(id).ok()?);
        match letter {
            b'n' => Some(Added::New(id)),
            b'a' => Some(Added::Again(id)),
            b'k' => Some(Added::Kept(id)),
            b'r' => Some(Added::Replaced(id)),
            _ => None,
        }
    };
    packed.as_bytes().split_first().and_then(of).ok_or_else(|| nonsense("the outcome of an added task"))
}

/// The reply without leased tasks; their ids, rows, and payloads unless in the row; the policies;
/// the time.
type SteppedParts<'a> = (Stepped, Vec<RawRef<'a>>, Policy, Option<BTreeMap<Kind, PolicyOverride>>, Micros);

fn stepped((stepped, leased, policy, kinds, now): SteppedParts<'_>) -> Taken<Stepped> {
    let settings = Settings { policy, kinds: kinds.unwrap_or_default(), ..Settings::default() };
    let one = |parts: &[RawRef<'_>]| {
        let id = Uuid::from_slice(parts[0].as_bytes()).map_err(|_| nonsense("the id of a task"))?;
        let (task, payload) = row::task(TaskId::new(id), parts[1].as_bytes())?;
        let payload = match (payload, parts[2].as_str()) {
            (Some(payload), _) => payload,
            (None, Some(text)) => Json::stored(text),
            (None, None) => return Err(nonsense("a payload")),
        };
        let (policy, deadline) = (settings.policy_of(&task), task.deadline.map(|deadline| deadline - now));
        Ok(Leased { task, payload, policy, deadline })
    };
    Ok(Stepped { leased: leased.chunks_exact(3).map(one).collect::<Taken<_>>()?, ..stepped })
}

/// Task, payload, result, log, upstreams, downstreams, and why it does not run.
type Parts = (Task, Option<String>, Option<String>, Vec<LogLine>, Vec<Edge>, Vec<Edge>, Option<Why>);

fn stored((task, payload, result, log, upstreams, downstreams, why): Parts) -> Stored {
    let (payload, result) = (payload.map(Json::stored), result.map(Json::stored));
    Stored { task, payload, result, log, upstreams, downstreams, why, undecoded: None }
}

type InputParts = (Option<Key>, TaskId, OnFailure, State, Option<String>);

fn input((name, up, on_failure, state, result): InputParts) -> Input {
    Input { name, up, on_failure, state, result: result.map(Json::stored) }
}

fn worker((presence, alive_for, holds): (Presence, Option<Micros>, Vec<(TaskId, Token)>)) -> Worker {
    Worker { presence, alive_for, holds }
}

/// Hours, cells and numbers.
fn took(bytes: &[u8]) -> Taken<Vec<(Took, u64)>> {
    let rows: Vec<(u32, u8, u64)> = read(bytes)?;
    Ok(rows.into_iter().map(|(hour, cell, number)| (Took { hour, cell }, number)).collect())
}

#[cfg(test)]
mod tests {
    use interval_queue_task_contract::Token;

    use super::*;

    #[test]
    fn answers_that_no_script_gives_are_refused() {
        let token = Token { incarnation: Micros::new(1 << 40), attempt: 7 };
        let bytes = super::super::pack::pack(&vec![token; 20]).unwrap();
        assert_eq!(unpacked::<Vec<Token>>(&bytes).unwrap(), vec![token; 20]);
        for end in 0..bytes.len() {
            assert!(unpacked::<Vec<Token>>(&bytes[..end]).is_err(), "{end}");
        }
        assert!(unpacked::<Vec<Token>>(&[0xdd, 0xff, 0xff, 0xff, 0xff]).is_err(), "its size is wrong");
        // An unknown field whose value is too deep.
        let deep = [&b"\x81\xa1x"[..], &[0x91; 40], &[0]].concat();
        let error = unpacked::<Token>(&deep).unwrap_err();
        assert!(error.to_string().contains("makes no sense: depth limit exceeded"), "{error}");
    }
}
