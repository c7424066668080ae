//! The command line of `each`.

use std::{ffi::OsString, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args, builder::NonEmptyStringValueParser};
use interval_queue_documents::duration::positive;

use super::output::Grouping;
use crate::args::{EXIT_CODES, Shard};

const EXAMPLES: &str = "\
Examples:
  # One download per second, over this and every other host that does the same:
  cat urls | interval-queue each --queue api --every 1s -- curl -sSO

  # Names with spaces or newlines. `{}` is the item wherever it stands:
  find . -name '*.flac' -print0 | interval-queue each -0 -- encode {} {}.opus

  # Up to three attempts for each item. Use the failed ones as the next input:
  interval-queue each --retry 2 --failed left -- send {} < letters
  interval-queue each -- send {} < left

  # Handle lines as they arrive. Print answers in the order of the questions:
  tail -f questions | interval-queue each --keep-order -- ask {}

  # If you need a shell, pass the item as an argument, never inside the script:
  interval-queue each -- sh -c 'fetch \"$1\" | store' sh {} < urls

Items:
  Each line of the input is an item, without its newline, or CR and newline.
  The last line needs no newline. Empty lines are skipped. With --null an item
  ends with a NUL, and all other bytes belong to it. Items need not be UTF-8.
  Many commands take an item that begins with a dash for an option: write
  `CMD -- {}`. The input is read 256 KiB ahead.

Tickets:
  An item takes its ticket shortly before its slot. This process holds tickets
  for the slots of the next half second, at least one, and no more than --jobs
  leaves room for. So other processes of the queue start their work in between.

Output:
  The output of a command is printed whole when the command has ended: its
  stdout, then its stderr. Of several attempts only the last one's stdout is
  printed. More than 64 KiB is kept in an unnamed file of TMPDIR. Processes
  that a command leaves running are awaited for at most a second; their later
  output is dropped.

  The standard input of commands is empty. Commands inherit the environment,
  also a password in INTERVAL_QUEUE_STORE. To hide it from them, run
  interval-queue each -- env -u INTERVAL_QUEUE_STORE CMD

Signals:
  After SIGINT, SIGTERM, SIGHUP or SIGQUIT nothing more starts. `each` waits
  for the running commands, prints which items were read but not started, and
  ends as killed by that signal. It forwards a signal that a process sent. A
  second signal ends it at once. SIGUSR1 and SIGUSR2 are forwarded. Nothing
  more starts, either, if the reader of stdout goes away.
";

/// Run CMD for each line of the input, in order, at the rate of the queue.
///
/// `{}` in the arguments stands for the item. If no argument has it, the item is the last argument. No shell is
/// involved.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples and exit codes.")]
pub(crate) struct Each {
    #[command(flatten)]
    pub(crate) shard: Shard,
    /// Commands of this process that run at once, at most. Default: 64
    ///
    /// It keeps hanging commands from filling the machine. If commands take longer than N intervals
    /// of the rate, they start more slowly than the rate allows. At most about a sixth of the limit
    /// of open files (`ulimit -n`) can run.
    #[arg(short, long, alias = "max-procs", short_alias = 'P', value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Items end with a NUL instead of a newline, as `find -print0` prints them
    #[arg(short = '0', long)]
    pub(crate) null: bool,
    /// Text in the arguments that is replaced by the item
    #[arg(short = 'I', long, value_name = "TEXT", default_value = "{}", allow_hyphen_values = true)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) replace: String,
    /// Retry a failed command up to N times, each time in a new slot
    ///
    /// The first retry waits 0.1 to 0.2 s, each further one twice as long, up to one to two
    /// minutes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retry: u32,
    /// Start nothing more once a command has failed after all its retries
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// Write the items that are not done to this file: failed, not started, or left running
    ///
    /// The file is emptied at the start. If the input is a file that was not read to its end, the
    /// rest of it follows.
    #[arg(long, value_name = "FILE")]
    pub(crate) failed: Option<PathBuf>,
    /// Print output in the order of the items. Default: in the order in which the commands end
    #[arg(short, long, conflicts_with = "ungroup")]
    pub(crate) keep_order: bool,
    /// Let commands print directly while they run; their output mixes, and there is no progress bar
    #[arg(short, long)]
    pub(crate) ungroup: bool,
    /// Print no progress bar, and no summary unless items are left
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Give up with exit code 75 if the next item has not started within this time. Default: wait
    ///
    /// With it, `each` also retries until then if the store cannot be reached at first.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) start_within: Option<Duration>,
    /// End a command after this time: SIGTERM, 5 s later SIGKILL; it counts as failed. Default:
    /// never
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) timeout: Option<Duration>,
    /// The command and its arguments. A `--` before it is optional
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

impl Each {
    pub(crate) fn separator(&self) -> super::items::Separator {
        if self.null { super::items::Separator::Nul } else { super::items::Separator::Newline }
    }

    pub(crate) fn grouping(&self) -> Grouping {
        match (self.ungroup, self.keep_order) {
            (true, _) => Grouping::None,
            (false, true) => Grouping::InOrderOfItems,
            (false, false) => Grouping::AsTheyEnd,
        }
    }
}
