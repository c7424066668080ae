//! In which slot a job starts, as the queue tells it: by the event `job.started`, just before the job runs on
//! the same thread.

use std::cell::Cell;

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
};

thread_local! {
    static PLACE: Cell<Current> = const { Cell::new(Current { ticket: 0, late: 0 }) };
}

#[derive(Clone, Copy, Debug, Default)]
struct Current {
    ticket: u64,
    late: u64,
}

/// The ticket of the job that has just begun on this thread, zero if it has none, and how late it is in
/// microseconds.
pub(super) fn place() -> (u64, u64) {
    let place = PLACE.get();
    (place.ticket, place.late)
}

/// Listens in all threads from now on.
pub(super) fn listen() {
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Listener)).unwrap();
}

struct Listener;

impl<S: Subscriber> Layer<S> for Listener {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.name() == "job.started"
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut place = Current::default();
        event.record(&mut place);
        PLACE.set(place);
    }
}

impl Visit for Current {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "ticket" => self.ticket = value,
            "late_us" => self.late = value,
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
