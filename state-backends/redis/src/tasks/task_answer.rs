//! Decodes the script's answer: a packed list of the reply, or a refusal that changed nothing.

use interval_queue_contract::{Micros, StateError};
use interval_queue_task_contract::{
    Added, Change, Command, Corrected, Day, DueSchedule, Event, Fired, Followed, Input, Inputs, Leased, Mark,
    Overview, Page, PausedKey, Read, Recounted, Reply, Settings, Stepped, Stop, Stored, Tally, TaskId, Times,
    Token, Took, Touched, Why, Worker,
};
use redis::Value;

use super::{
    pack::{Packed, nonsense},
    row,
    take::{STOPS, Take},
    task_refusal,
};

type Taken<T> = Result<T, StateError>;

/// Decodes the answer to `command`.
///
/// # Errors
///
/// The script refused the command, or its answer is invalid.
pub fn reply(command: &Command, answer: Value) -> Result<Reply, StateError> {
    let Value::BulkString(bytes) = answer else { return Err(nonsense("it is not packed")) };
    let packed = Packed::read(&bytes)?;
    let refused = packed.field("refusal");
    if *refused != Packed::Nil {
        return Err(task_refusal::read(refused, command).unwrap_or_else(|error| error));
    }
    let reply = packed.at(0);
    Ok(match command {
        Command::Add(_) | Command::Import(_) => Reply::Added(reply.list(added)?),
        Command::Step(_) => Reply::Stepped(stepped(reply)?),
        Command::Change(Change::Recount) => Reply::Recounted(Recounted {
            corrected: reply.field("corrected").list(corrected)?,
            dropped: reply.get("dropped")?,
            more: reply.get("more")?,
        }),
        Command::Change(Change::Tasks(_)) => Reply::Touched(Touched {
            ids: reply.get("ids")?,
            kept: reply.get("kept")?,
            asked: reply.get("asked")?,
            taken: reply.field("taken").list(|pair| Ok((pair.at(0).to()?, pair.at(1).to()?)))?,
            next: reply.get("next")?,
            watermark: reply.get("watermark")?,
        }),
        Command::Change(_) => Reply::Changed(reply.to()?),
        Command::Fire(_) => Reply::Fired(match reply.text()? {
            "made" => Fired::Made,
            "skipped" => Fired::Skipped,
            "kept" => Fired::Kept,
            _ => Fired::Stale,
        }),
        Command::Follow(_) => Reply::Followed(Followed {
            events: reply.get("events")?,
            mark: Mark { number: reply.get("number")?, at: reply.get("at")? },
            missed: reply.get("missed")?,
        }),
        Command::Read(read) => read_reply(read, reply)?,
        _ => return Err(nonsense("nothing was asked")),
    })
}

fn read_reply(read: &Read, reply: &Packed<'_>) -> Taken<Reply> {
    Ok(match read {
        Read::Clock => Reply::Clock(reply.to()?),
        Read::Overview => Reply::Overview(Box::new(overview(reply)?)),
        Read::Tasks(_) => Reply::Tasks(reply.to()?),
        Read::Page { .. } => Reply::Page(Page {
            tasks: reply.get("tasks")?,
            next: reply.get("next")?,
            miscounted: reply.get("miscounted")?,
        }),
        Read::Count { .. } => Reply::Count(Tally { number: reply.get("number")?, next: reply.get("next")? }),
        Read::Inputs { .. } => {
            Reply::Inputs(Inputs { inputs: reply.field("inputs").list(input)?, next: reply.get("next")? })
        }
        Read::Downstreams { .. } => Reply::Downstreams(reply.to()?),
        Read::Workers => Reply::Workers(reply.list(worker)?),
        Read::Schedules => Reply::Schedules(reply.to()?),
        Read::Times { .. } => Reply::Times(Times::of(reply.list(time)?)),
        Read::Days { .. } => Reply::Days(Day::of(reply.list(time)?)),
        Read::Upcoming(_) => Reply::Upcoming(reply.to()?),
        Read::KeyLimit(_) => Reply::KeyLimit(reply.get("limit")?),
        Read::Ready(_) => Reply::Ready(reply.to()?),
        _ => return Err(nonsense("nothing was asked")),
    })
}

/// A letter and an id.
fn added(packed: &Packed<'_>) -> Taken<Added> {
    let (letter, id) = packed.bytes()?.split_first().ok_or_else(|| nonsense("an id is missing"))?;
    let id = Packed::Text(id).to()?;
    Ok(match letter {
        b'n' => Added::New(id),
        b'a' => Added::Again(id),
        b'k' => Added::Kept(id),
        b'r' => Added::Replaced(id),
        _ => return Err(nonsense("the outcome of an added task is unknown")),
    })
}

fn stepped(reply: &Packed<'_>) -> Taken<Stepped> {
    let now = reply.get("now")?;
    let (policy, kinds) = (reply.get("policy")?, reply.get_or_default("kinds")?);
    let settings = Settings { policy, kinds, ..Settings::default() };
    Ok(Stepped {
        resync: reply.get("restate")?,
        leased: leased(reply.field("leased"), now, &settings)?,
        may_prefetch: reply.get("may_prefetch")?,
        lost: reply.get("lost")?,
        stop: reply.field("stop").list(stop)?,
        next: reply.get("next")?,
        more: reply.get("more")?,
        schedules: reply.field("schedules").list(|due| due_schedule(due, now))?,
        refused: reply.get("refused")?,
    })
}

/// For each task its id, its row, and its payload if the row does not have it. `settings` are those
/// of the reply: only the policies.
fn leased(packed: &Packed<'_>, now: Micros, settings: &Settings) -> Taken<Vec<Leased>> {
    let Packed::List(all) = packed else { return Ok(Vec::new()) };
    all.chunks_exact(3).map(|of_task| one_leased(of_task, now, settings)).collect()
}

fn one_leased(of_task: &[Packed<'_>], now: Micros, settings: &Settings) -> Taken<Leased> {
    let (task, payload) = row::task(of_task[0].to()?, of_task[1].bytes()?)?;
    let payload = match payload {
        Some(payload) => payload,
        None => of_task[2].to()?,
    };
    Ok(Leased {
        policy: settings.policy_of(&task),
        deadline: task.deadline.map(|deadline| deadline - now),
        task,
        payload,
    })
}

/// An id and the request to stop, in one text.
fn stop(packed: &Packed<'_>) -> Taken<(TaskId, Stop)> {
    let (stop, id) = packed.bytes()?.split_last().ok_or_else(|| nonsense("an id is missing"))?;
    let stop = STOPS.get(usize::from(*stop)).ok_or_else(|| nonsense("the way to stop is unknown"))?;
    Ok((Packed::Text(id).to()?, *stop))
}

fn due_schedule(packed: &Packed<'_>, now: Micros) -> Taken<DueSchedule> {
    Ok(DueSchedule { schedule: packed.at(0).to()?, at: packed.at(1).to()?, now })
}

impl Take for Event {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        Ok(Self {
            at: packed.get("at")?,
            task: packed.get("id")?,
            kind: packed.get("kind")?,
            from: packed.get("from")?,
            to: packed.get("to")?,
            attempt: packed.get("attempt")?,
            worker: packed.get("worker")?,
            error: packed.get("error")?,
        })
    }
}

impl Take for Stored {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        Ok(Self {
            task: packed.get("task")?,
            payload: packed.get("payload")?,
            result: packed.get("result")?,
            log: packed.get("log")?,
            upstreams: packed.get("upstreams")?,
            downstreams: packed.get("downstreams")?,
            why: packed.get("why")?,
            undecoded: None,
        })
    }
}

/// A word and its details.
impl Take for Why {
    fn take(packed: &Packed<'_>) -> Taken<Self> {
        Ok(match packed.at(0).text()? {
            "no-step" => Self::NoStep,
            "upstreams" => Self::Upstreams,
            "time" => Self::Time(packed.at(1).to()?),
            "key" => Self::Key(packed.at(1).to()?),
            "key-paused" => Self::KeyPaused,
            "lost" => Self::Lost,
            "unserved" => Self::Unserved,
            "kind-paused" => Self::KindPaused,
            "paused" => Self::Paused,
            "limit" => Self::Limit,
            "load" => Self::Load(packed.at(1).to()?),
            "capacity" => Self::Capacity,
            "next" => Self::Next,
            _ => return Err(nonsense("the reason that a task does not run is unknown")),
        })
    }
}

fn input(packed: &Packed<'_>) -> Taken<Input> {
    Ok(Input {
        name: packed.get("name")?,
        up: packed.get("up")?,
        on_failure: packed.get("on_failure")?,
        state: packed.get("state")?,
        result: packed.get("result")?,
    })
}

fn worker(packed: &Packed<'_>) -> Taken<Worker> {
    let held = |run: &Packed<'_>| {
        Ok((run.at(0).to()?, Token { incarnation: run.at(1).to()?, attempt: run.at(2).to()? }))
    };
    Ok(Worker {
        presence: packed.get("presence")?,
        alive_for: packed.get("alive_for")?,
        holds: packed.field("holds").list(held)?,
    })
}

/// An hour, a cell and a number.
fn time(packed: &Packed<'_>) -> Taken<(Took, u64)> {
    let cell = u8::try_from(packed.at(1).to::<u32>()?).map_err(|_| nonsense("there is no such length"))?;
    Ok((Took { hour: packed.at(0).to()?, cell }, packed.at(2).to()?))
}

fn paused_key(row: &Packed<'_>) -> Taken<PausedKey> {
    Ok(PausedKey { key: row.get("key")?, tasks: row.get("tasks")?, since: row.get("since")? })
}

fn corrected(row: &Packed<'_>) -> Taken<Corrected> {
    Ok(Corrected {
        kind: row.at(0).to()?,
        state: row.at(1).to()?,
        before: row.at(2).to()?,
        counted: row.at(3).to()?,
    })
}

fn overview(reply: &Packed<'_>) -> Taken<Overview> {
    let count = |row: &Packed<'_>| Ok((row.at(0).to()?, row.at(1).to()?, row.at(2).to()?));
    Ok(Overview {
        at: reply.get("at")?,
        settings: reply.get("settings")?,
        paused: reply.get("paused")?,
        paused_at: reply.get("paused_at")?,
        paused_keys: reply.field("paused_keys").list(paused_key)?,
        counts: reply.field("counts").list(count)?,
        workers: reply.get("workers")?,
        lost: reply.get("lost")?,
        kinds: reply.get("kinds")?,
        unserved: reply.get("unserved")?,
        oldest: reply.get("oldest")?,
        next: reply.get("next")?,
        miscounted: reply.get("miscounted")?,
    })
}
