//! What holds after every command, whatever happened before: real lines on the real rules.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use interval_queue_contract::{Rates, Record};
use proptest::prelude::*;
use world::{Event, Loss, World, event, rates};

fn history(event: impl Strategy<Value = Event>) -> impl Strategy<Value = (Rates, Vec<Event>)> {
    (rates(), prop::collection::vec(event, 1..150))
}

/// Lets it all happen, and then the shards finish in peace.
fn live(mut world: World, events: &[Event]) -> World {
    for event in events {
        world.happen(event);
    }
    world.drain();
    if let Some(record) = &world.stored {
        assert_eq!(Record::from_json(&record.to_json().unwrap()).unwrap(), *record);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Lost requests, lost replies, commands that arrive late or twice, crashes, pauses, holds, other
    /// settings: no span of time ever has more slots than the rates allow, no ticket is given twice, and every job of
    /// the living starts.
    #[test]
    fn slots_keep_their_distance((rates, events) in history(event())) {
        let world = live(World::new(rates), &events);
        prop_assert_eq!(world.early(), 0, "{:?}", world.slots);
    }

    /// The same while the clock is stepped back: slots and record move with it.
    #[test]
    fn slots_keep_their_distance_when_the_clock_steps_back(
        (rates, events) in history(prop_oneof![20 => event(), 1 => (0..9000_u64).prop_map(Event::StepBack)])
    ) {
        let world = live(World::new(rates), &events);
        prop_assert_eq!(world.early(), 0, "{:?}", world.slots);
    }

    /// A record that is lost, or replaced by an old copy, brings at most a burst early, which is one start without
    /// bursts; and nothing stays stuck.
    #[test]
    fn a_loss_brings_at_most_one_start_early(
        lead in 0..100_u64,
        (rates, events) in history(prop_oneof![
            20 => event(),
            1 => prop::sample::select(vec![Loss::Save, Loss::Forget, Loss::Rewind]).prop_map(Event::Loss),
        ])
    ) {
        // A percentage of the interval: with a lead of several a loss takes as many slots along, and brings as
        // many starts early.
        let world = live(World::with_lead(rates, lead), &events);
        prop_assert!(world.early() <= world.losses * world.burst(), "{} of {:?}", world.early(), world.slots);
    }
}
