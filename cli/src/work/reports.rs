//! Lines on stderr for events that the libraries report in no other way.

use std::fmt::{Debug, Write};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
    subscriber::Interest,
};

use crate::exit::report;

/// Events to print. Others are printed elsewhere, or are visible in the task.
const PRINTED_EVENTS: [&str; 2] = ["schedule.failed", "rate.failed"];

/// Prints events from now on.
pub(super) fn print() {
    // A process has one subscriber, which is this one.
    let _ = tracing::subscriber::set_global_default(Reports);
}

struct Reports;

fn is_printed(metadata: &Metadata<'_>) -> bool {
    metadata.is_event() && *metadata.level() == Level::WARN && PRINTED_EVENTS.contains(&metadata.name())
}

/// The printed fields of an event.
#[derive(Default)]
struct Line {
    queue: String,
    schedule: String,
    message: String,
    error: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = match field.name() {
            "queue" => &mut self.queue,
            "schedule" => &mut self.schedule,
            "message" => &mut self.message,
            "error" => &mut self.error,
            _ => return,
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{value:?}");
    }
}

impl Subscriber for Reports {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_printed(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_printed(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let Line { queue, schedule, message, error } = line;
        let schedule = if schedule.is_empty() { schedule } else { format!(", schedule {schedule:?}") };
        report(&format!("queue {queue:?}{schedule}: {message}: {error}").replace(char::is_control, " "));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
