//! What the command line says of `watch`.

use std::time::Duration;

use clap::Args;
use interval_queue::QueueName;

use crate::{args::StoreArgs, duration::positive};

/// Watch queues live: what starts, who is next, and why nothing does.
///
/// Watching changes nothing that is stored and makes no shard. It needs a terminal; elsewhere use `status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue watch --store redis://localhost
  interval-queue watch --queue api --refresh 1s

Keys: up and down choose a queue, p pauses and resumes it, ? shows help, q ends.")]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Only this queue. Default: all of the store, with that of INTERVAL_QUEUE_NAME chosen at first
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) queue: Option<QueueName>,
    /// How often the chosen queue is looked at; 20ms to 1h
    ///
    /// A look is one command that reads. With several queues, one other that is in view is read after each
    /// look, in turn; all are listed every ten seconds.
    #[arg(long, value_name = "DURATION", default_value = "200ms", allow_hyphen_values = true, value_parser = refresh)]
    pub(crate) refresh: Duration,
}

/// The variable that names the queue to begin with.
pub(crate) const CHOSEN: &str = "INTERVAL_QUEUE_NAME";

fn refresh(text: &str) -> Result<Duration, String> {
    let refresh = positive(text)?;
    if refresh < Duration::from_millis(20) || refresh > Duration::from_secs(3600) {
        return Err(format!("{} is out of range: give 20ms to 1h", text.escape_debug()));
    }
    Ok(refresh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_is_neither_a_burst_nor_never() {
        assert_eq!(refresh("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(refresh("1h"), Ok(Duration::from_secs(3600)));
        for text in ["19ms", "1us", "61min", "0s"] {
            assert!(
                refresh(text).is_err_and(|error| error.contains("20ms") || error.contains("more than zero"))
            );
        }
        assert!(refresh("5").is_err_and(|error| error.contains("5s")));
    }
}
