//! The Lua rules against the Rust rules: random sequences of commands give equal replies and equal records.
//!
//! `world` makes up what happens to a queue around the commands of a `Load`, with the Rust rules; `server`
//! sends the same to a real server, whose clock and name a few lines in front of each script replace.

mod server;
mod world;

use interval_queue_conformance::Tally;
use interval_queue_contract::{Reply, StateError, StateErrorKind};
use server::Server;
use world::{Event, World};

const SEQUENCES: u64 = 3_000;
const COMMANDS: usize = 40;

/// What the two must agree on. Errors are compared as they are shown.
type Outcome = Result<Reply, (StateErrorKind, String)>;

fn outcome(result: Result<Reply, StateError>) -> Outcome {
    result.map_err(|error| (error.kind(), error.to_string()))
}

#[test]
#[ignore = "needs redis-server: scripts/test runs it"]
fn lua_and_rust_agree() {
    // Another number explores other sequences.
    let first = std::env::var("INTERVAL_QUEUE_SEED").map_or(0, |seed| seed.parse().unwrap());
    let mut server = Server::start();
    let (mut tally, mut gone) = (Tally::default(), 0);
    for seed in first..first + SEQUENCES {
        let mut world = World::new(seed);
        let events: Vec<Event> = (0..COMMANDS).map(|_| world.happen()).collect();
        let answers = server.run_events(&events);
        for (at, (event, answer)) in events.iter().zip(answers).enumerate() {
            let described = || {
                format!("INTERVAL_QUEUE_SEED={seed}, command {at}\n{:#?}\n{:?}", event.command, event.reading)
            };
            assert_eq!(answer.reply, event.reply, "the reply (Lua left) to {}", described());
            assert_eq!(answer.record, event.record, "the record (Lua left) after {}", described());
        }
        server.check_index(seed);
        for event in &events {
            tally.count(event.reply.as_ref().map_err(|(kind, _)| *kind));
            gone += u32::from(matches!(event.record, Ok(Reply::Read(None))));
        }
    }
    println!("{tally:#?}, {gone} times no record");
    assert!(tally.rarest() > 100 && gone > 100, "too rare to be worth comparing: {tally:?}, {gone}");
}
