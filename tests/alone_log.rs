//! A shard that runs alone says so. In a process of its own: what is logged where is decided once for a
//! process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::{Arc, Mutex};

use common::{Starts, add_in_turn, all_done, memory, ms};
use interval_queue::{IntervalQueue, WhenStateIsLost};
use interval_queue_conformance::Faulty;
use tokio::time::sleep;

/// Notes what is logged.
#[derive(Default)]
struct Levels(Mutex<Vec<(tracing::Level, String)>>);

impl tracing::Subscriber for Levels {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{}={value:?} ", field.name());
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push((*event.metadata().level(), text.0));
    }
}

#[tokio::test(start_paused = true)]
async fn it_says_when_it_begins_and_when_it_is_back() {
    let levels = Arc::new(Levels::default());
    let _guard = tracing::subscriber::set_default(levels.clone());
    let (_, state) = memory();
    let wire = Faulty::new(state);
    let alone = WhenStateIsLost::RunAlone { after: ms(2_000), shards: 3 };
    let builder = IntervalQueue::builder("test").interval(ms(100)).linger(ms(0)).when_state_is_lost(alone);
    let queue = builder.open(wire.clone()).await.unwrap();
    let starts = Starts::new();
    let jobs = add_in_turn(std::slice::from_ref(&queue), &starts, 100).await;
    wire.change(|faults| faults.outage = true);
    sleep(ms(10_000)).await;
    wire.change(|faults| faults.outage = false);
    queue.tick().await;
    all_done(jobs).await;
    let said = |level, word: &str| {
        let all = levels.0.lock().unwrap();
        all.iter()
            .filter(|(at, text)| *at == level && text.contains(word))
            .map(|(_, text)| text.clone())
            .collect::<Vec<_>>()
    };
    let began = said(tracing::Level::WARN, "runs alone");
    assert_eq!(began.len(), 1, "once for each outage");
    assert!(began[0].contains("queue=test") && began[0].contains("shards=3 pace_us=300000"), "{began:?}");
    assert_eq!(said(tracing::Level::INFO, "rejoined").len(), 1);
}
