//! Random commands: repeated by their seed, and of every kind.

use std::time::Duration;

use interval_queue_conformance::{Load, ManualClock, Tally};
use interval_queue_contract::{Command, Record, StateErrorKind, rules};

/// What a sequence said, and what came of it.
fn run_seed(seed: u64, tally: &mut Tally) -> (Vec<Command>, Option<Record>) {
    let (mut load, clock) = (Load::new(seed), ManualClock::new());
    let (mut record, mut commands) = (None, Vec::new());
    for n in 0..40_u32 {
        clock.advance(load.interval().to_duration().min(Duration::from_secs(1)) * (n % 3));
        let sent = load.next_command(record.as_ref(), clock.now());
        let reply = rules::apply(&mut record, &clock.reading(), sent.command());
        tally.count(reply.as_ref().map_err(|error| error.kind()));
        match &reply {
            Ok(reply) => load.observe_reply(&sent, reply),
            Err(error) => assert_ne!(error.kind(), StateErrorKind::Foreign, "{error}"),
        }
        commands.push(sent.command().clone());
    }
    (commands, record)
}

#[test]
fn a_seed_repeats_its_commands() {
    let mut tally = Tally::default();
    assert_eq!(run_seed(1, &mut tally), run_seed(1, &mut tally));
    assert_ne!(run_seed(1, &mut tally).0, run_seed(2, &mut tally).0);
}

#[test]
fn a_few_sequences_bring_about_all_there_is_to_compare() {
    let mut tally = Tally::default();
    assert_eq!(tally.rarest(), 0);
    for seed in 0..100 {
        if let (_, Some(record)) = run_seed(seed, &mut tally) {
            record.check().unwrap();
        }
    }
    assert!(tally.rarest() >= 20, "{tally:?}");
}
