//! What the command line of `each` says.

use std::{ffi::OsString, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args, builder::NonEmptyStringValueParser};

use super::output::Grouping;
use crate::{
    args::{EXIT_CODES, Shard},
    duration::positive,
};

const EXAMPLES: &str = "\
Examples:
  # One download a second, from this and every other host that does the same:
  cat urls | interval-queue each --store redis://localhost --queue api --every 1s -- curl -sSO

  # Names with spaces or newlines; `{}` is the item wherever it stands:
  find . -name '*.flac' -print0 | interval-queue each -0 --every 250ms -- encode {} --to {}.opus

  # Three attempts for each; what was not done is kept, and makes the next input:
  interval-queue each --retry 2 --failed left -- send {} < letters
  interval-queue each -- send {} < left

  # As the lines come, for ever; answers in the order of the questions:
  tail -f questions | interval-queue each --keep-order -- ask {}

  # Where a shell is needed, the item is given to it as an argument, never put into its script:
  interval-queue each -- sh -c 'fetch \"$1\" | store' sh {} < urls

Items:
  Each line of the input is one. Its newline, or CR and newline, is taken off; a last line
  needs none. Empty lines are left out. With --null items end with a NUL and are taken byte
  by byte as they are. Items need not be UTF-8. What starts with a dash is an option to many
  commands: write `CMD -- {}`. The input is read a little ahead (256 KiB), not to its end.

Places in the queue:
  An item gets its ticket shortly before its turn: this program holds no more places than
  slots pass in half a second, or one, so that others take turns with it. It holds none for
  which --jobs leaves no room.

Output:
  What a command prints is passed on when it has ended, whole: first its stdout, then its
  stderr. If it is tried again, only the stdout of the last attempt is. Past 64 KiB it waits
  in an unnamed file of TMPDIR. What processes that a command left behind print later than a second
  after its end is dropped. The input of commands is empty. They inherit the environment, and
  INTERVAL_QUEUE_STORE with a password in it, too: -- env -u INTERVAL_QUEUE_STORE CMD keeps
  that from them.

Interruption:
  SIGINT, SIGTERM, SIGHUP or SIGQUIT: nothing more is started, running commands are waited
  for, and it is told what was read but not started. A signal that a process sent is handed
  on to them. A second one ends the program at once. It ends as killed by the first. SIGUSR1
  and SIGUSR2 are handed on. When the reader of stdout goes away, nothing more is started either.
";

/// Run CMD for each line of the input, paced together with everyone else on the queue.
///
/// `{}` in the arguments is the item; if it is in none, the item is added as the last argument. No shell is
/// involved.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{EXAMPLES}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples and exit codes.")]
pub(crate) struct Each {
    #[command(flatten)]
    pub(crate) shard: Shard,
    /// How many commands of this process may run at once. Default: 64
    ///
    /// The pace is the queue's; this keeps commands that hang from filling the machine. Where commands take
    /// longer than N intervals, it is what limits the rate. The limit of open files (`ulimit -n`) allows
    /// about a sixth of it.
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Items end with a NUL instead of a newline, as `find -print0` writes them
    #[arg(short = '0', long)]
    pub(crate) null: bool,
    /// What stands for the item in the arguments
    #[arg(short = 'I', long, value_name = "TEXT", default_value = "{}", allow_hyphen_values = true)]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) replace: String,
    /// Try a command that fails again up to N times, each time in a new slot
    ///
    /// The first time after 0.1 to 0.2 s, then after twice as much, and so on, at most one to two minutes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retry: u32,
    /// Start nothing more once a command has failed for good
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// Write the items that failed, were read but not started, or are left running, to this file, as they
    /// came in
    ///
    /// It is emptied first. If the input is a file and is not read to its end, all the rest is written to it,
    /// too.
    #[arg(long, value_name = "FILE")]
    pub(crate) failed: Option<PathBuf>,
    /// Print in the order of the items, not in that in which the commands end
    #[arg(short, long, conflicts_with = "ungroup")]
    pub(crate) keep_order: bool,
    /// Let commands print as they run, through and into one another; no progress bar then
    #[arg(short, long)]
    pub(crate) ungroup: bool,
    /// Show no progress bar, and no summary unless something is left undone
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Give up, with exit code 75, once an item was next for this time and nothing could be started
    ///
    /// It also makes `each` try again until then if the store cannot be reached at first.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) start_within: Option<Duration>,
    /// End a command after this time: SIGTERM, 5 s later SIGKILL; it has failed then. Default: never
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) timeout: Option<Duration>,
    /// The command and its arguments. A `--` may stand before it
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
