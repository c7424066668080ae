//! Replies of a Redis. The first line names the question, the rest is what came back over the wire.

use interval_queue::{
    MaxRunning,
    contract::{Change, Command, Memory, Micros, OnExisting, Rates, Reply, ShardId, StateError, Step, Take},
    task_contract as tasks,
};
use interval_queue_redis::internals::{Keys, decode, masters_in, of_command, page_in, task_reply};
use redis::{RedisResult, Value};

use crate::promise::{Verdict, is_sound, refuses};

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return Verdict::Refused;
    };
    let (question, wire) = (&bytes[..end], &bytes[end + 1..]);
    let keys = Keys::new("interval-queue");
    let outcome = match question {
        b"step" => answer(&step(), wire).map(|reply| stepped(&reply)),
        b"open" => answer(&Command::Change(open(), Memory::default()), wire).map(|reply| changed(&reply)),
        b"pause" => {
            answer(&Command::Change(Change::Pause, Memory::default()), wire).map(|reply| changed(&reply))
        }
        b"read" => answer(&Command::Read, wire).map(|reply| read(&reply)),
        b"tasks add" => of_tasks(&tasks::Command::Add(tasks::Add::default()), wire),
        b"tasks step" => of_tasks(&tasks::Command::Step(worker_step()), wire),
        b"tasks change" => of_tasks(&tasks::Command::Change(tasks::Change::Pause), wire),
        b"tasks page" => of_tasks(&tasks::Command::Read(page()), wire),
        b"tasks look" => of_tasks(&tasks::Command::Read(tasks::Read::Tasks(Vec::new())), wire),
        b"tasks overview" => of_tasks(&tasks::Command::Read(tasks::Read::Overview), wire),
        b"tasks workers" => of_tasks(&tasks::Command::Read(tasks::Read::Workers), wire),
        b"slots" => received(wire).and_then(masters_in).map(drop).map_err(of_command),
        b"scan" => received(wire).and_then(page_in).map_err(of_command).map(|(_, found)| {
            let queues = found.iter().filter_map(|key| keys.queue(key));
            queues.for_each(|queue| assert!(keys.of(&queue)[0].ends_with('}')));
        }),
        _ => return Verdict::Refused,
    };
    match outcome {
        Ok(()) => Verdict::Read,
        Err(error) => refused(&error, bytes),
    }
}

/// A reply, or the error that the server sent or that the bytes are.
fn received(wire: &[u8]) -> RedisResult<Value> {
    redis::parse_redis_value(wire)?.extract_error()
}

fn answer(command: &Command, wire: &[u8]) -> Result<Reply, StateError> {
    decode(command, received(wire).map_err(of_command)?)
}

fn refused(error: &StateError, bytes: &[u8]) -> Verdict {
    refuses(error, bytes)
}

/// A memory is echoed with the next command, so it must be accepted there.
fn can_be_echoed(memory: Memory) {
    let echo = Command::Change(Change::Pause, memory);
    assert!(echo.check().is_ok(), "{:?}: {memory:?}", echo.check());
}

fn stepped(reply: &Reply) {
    let Reply::Stepped(stepped) = reply else { panic!("{reply:?} to a step") };
    can_be_echoed(stepped.memory);
    assert_eq!(stepped.memory.sequence, 7);
}

fn changed(reply: &Reply) {
    let Reply::Changed(changed) = reply else { panic!("{reply:?} to a change") };
    can_be_echoed(changed.memory);
}

fn read(reply: &Reply) {
    let Reply::Read(snapshot) = reply else { panic!("{reply:?} to a look") };
    if let Some(snapshot) = snapshot {
        is_sound(&snapshot.record);
        can_be_echoed(Memory::of(&snapshot.record));
        let standing = snapshot.start_status().to_string();
        assert!(!standing.chars().any(char::is_control), "{standing:?}");
    }
}

/// Replies to commands on stored tasks: any rows, which need not make sense.
fn of_tasks(command: &tasks::Command, wire: &[u8]) -> Result<(), StateError> {
    task_reply(command, received(wire).map_err(of_command)?).map(drop)
}

fn worker_step() -> tasks::Step {
    tasks::Step::first(tasks::WorkerId::FIRST, [tasks::Kind::default()], Micros::from_millis(5000))
}

fn page() -> tasks::Read {
    tasks::Read::Page {
        selector: tasks::Selector::default(),
        after: tasks::Order::Newest.start(),
        limit: 10,
        bodies: true,
    }
}

fn open() -> Change {
    let rates = Some(Rates::every(Micros::from_millis(250)));
    Change::Open { rates, max_running: MaxRunning::AtMost(3), on_existing: OnExisting::Fail }
}

fn step() -> Command {
    let idle = Step::idle(ShardId::new("a").unwrap(), 7, Memory::default(), Micros::from_millis(5000));
    Command::Step(Step { take: Some(Take { request: 2, count: 3, weights: vec![1] }), ..idle })
}
