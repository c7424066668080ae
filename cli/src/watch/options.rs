//! The command line of `watch`.

use std::time::Duration;

use clap::Args;
use interval_queue::QueueName;
use interval_queue_documents::duration::positive;

use crate::args::StoreArgs;

/// Show queues live: what starts, what is next, and why nothing starts.
///
/// It changes nothing, unless you pause or resume a queue. It needs a terminal; elsewhere use
/// `status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue watch --store redis://localhost
  interval-queue watch --queue api --refresh 1s

Keys:
  Up, Down, k, j       choose a queue, or a task in the list of tasks; scroll
  PgUp, PgDown         go a page up or down
  Home, g, End, G      go to the first or the last
  p                    pause or resume the queue, after a question: y is yes
  Tab                  go to the running and next tasks, and back
  Enter                open the task: what `tasks show` and `tasks why` print
  b                    show or hide the payload and result of the open task
  f                    show failures, grouped as by `tasks failures`
  Esc                  go back; at the top, quit
  ?, h                 show or hide the help
  q, Ctrl-C            quit
  Ctrl-Z               suspend")]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Show this queue only. Default: all queues of the store; INTERVAL_QUEUE_NAME names the one
    /// chosen at first
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) queue: Option<QueueName>,
    /// How often the chosen queue is read; 20ms to 1h
    ///
    /// A refresh is one command that reads, and up to four more for stored tasks. With several
    /// queues, one other visible queue is read after each refresh. Workers and failures are read
    /// every two seconds, and all names are listed every ten seconds.
    #[arg(long, value_name = "DURATION", default_value = "200ms", allow_hyphen_values = true, value_parser = refresh)]
    pub(crate) refresh: Duration,
}

pub(crate) const CHOSEN_VARIABLE: &str = "INTERVAL_QUEUE_NAME";

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
