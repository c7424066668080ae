//! The rules: whatever is stored and asked, a reply, and a record as good as the one before.

use arbitrary::{Result, Unstructured};
use interval_queue::contract::{
    Change, Command, Memory, Micros, Reading, Record, Reply, Step, Stepped, rules,
};

use crate::{
    commands::{command, reading, record},
    promise::{Verdict, is_sound, refuses},
};

/// A larger step back of the clock is believed, and everything moves with it.
const TOLERANCE: Micros = Micros::from_millis(1000);

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    play(&mut Unstructured::new(bytes)).unwrap_or(Verdict::Refused)
}

fn play(u: &mut Unstructured<'_>) -> Result<Verdict> {
    let mut stored = if u.ratio(1, 8)? { None } else { record(u)? };
    let mut verdict = Verdict::Refused;
    let mut last = stored.as_ref().map(Memory::of).unwrap_or_default();
    for _ in 0..12 {
        if u.is_empty() {
            break;
        }
        let reading = reading(u)?;
        let command = command(u, last)?;
        let before = stored.clone();
        match rules::apply(&mut stored, &reading, &command) {
            Ok(reply) => {
                verdict = Verdict::Read;
                last = answered(&command, &reading, &reply, before.as_ref(), stored.as_ref()).unwrap_or(last);
            }
            Err(error) => {
                assert_eq!(stored, before, "{error} changed something");
                // The error names parts of the record or command, not of the bytes.
                let _ = refuses(&error, &[0; 100]);
            }
        }
    }
    Ok(verdict)
}

/// Returns the memory of the reply.
fn answered(
    command: &Command,
    reading: &Reading,
    reply: &Reply,
    before: Option<&Record>,
    after: Option<&Record>,
) -> Option<Memory> {
    let described =
        || format!("{command:?}\n at {reading:?}\n on {before:?}\n left {after:?}\n and said {reply:?}");
    if let Reply::Read(snapshot) = reply {
        assert_eq!(before, after, "{}", described());
        assert_eq!(snapshot.is_some(), before.is_some(), "{}", described());
        let sound = snapshot.as_ref().is_none_or(|snapshot| snapshot.record.check().is_ok());
        assert!(sound, "{}", described());
        return None;
    }
    if let (Command::Change(Change::Delete(_), _), Reply::Changed(changed)) = (command, reply) {
        assert_eq!((after, changed.before), (None, before.map(Record::settings)), "{}", described());
        assert!(changed.memory.is_empty() && changed.memory.at >= reading.now, "{}", described());
        return None;
    }
    let after = after.unwrap();
    is_sound(after);
    if let Some(before) = before {
        assert!(after.ticket >= before.ticket && after.current >= before.current, "{}", described());
        assert!(after.line_from >= before.line_from, "{}", described());
        let least = if reading.now + TOLERANCE < before.seen_at { reading.now } else { before.seen_at };
        assert!(after.seen_at >= least && after.seen_at >= reading.now, "{}", described());
    }
    let memory = match (command, reply) {
        (Command::Step(step), Reply::Stepped(stepped)) => {
            let asked = step.ask.iter().map(|ask| ask.ticket);
            let new = stepped.taken.iter().flat_map(|taken| (0..5).map(|n| taken.first.after(n)));
            let leading =
                stepped.grants.iter().zip(asked.chain(new)).all(|(grant, asked)| grant.ticket == asked);
            assert!(leading && grants_are_sound(step, stepped, before, after), "{}", described());
            assert_eq!(stepped.present, after.shards.contains_key(&step.shard), "{}", described());
            assert_eq!(stepped.memory.sequence, step.sequence, "{}", described());
            assert!(stepped.taken.is_none_or(|taken| taken.first <= after.ticket), "{}", described());
            stepped.memory
        }
        (Command::Change(..), Reply::Changed(changed)) => {
            assert_eq!(changed.memory, Memory::of(after), "{}", described());
            changed.memory
        }
        _ => panic!("{}", described()),
    };
    let echo = Command::Change(Change::Pause, memory);
    assert!(echo.check().is_ok(), "{:?} of what is to be echoed: {}", echo.check(), described());
    Some(memory)
}

/// Granted tickets have started, and every meter counts their slots, but at the end of all time.
/// Repeated grants were counted before.
fn grants_are_sound(step: &Step, stepped: &Stepped, before: Option<&Record>, after: &Record) -> bool {
    let known = before.and_then(|before| before.shards.get(&step.shard));
    stepped.grants.iter().all(|grant| {
        let counted = after.meters.iter().all(|meter| grant.slot < meter.tat || meter.tat == Micros::MAX);
        let again = known.is_some_and(|known| known.granted.contains(grant));
        grant.ticket <= after.current && (counted || again)
    })
}
