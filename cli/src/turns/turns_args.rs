//! The command line of `turns`.

use clap::Args;

use crate::args::{EXIT_CODES, Shard};

const HELP: &str = "\
Requests, one per line on stdin:
  turn      request a turn; an empty line does the same
  turn 3    request a turn that takes three intervals of the rate
  back      take back the last request that has no turn yet
  done      the work of one turn has ended; needed only with a running limit

Answers, one per line on stdout, one for each request:
  turn 17   the slot has come: start now. 17 is the ticket
  back      the request was taken back. If `turn` comes instead, it was too
            late: the slot is used, and the turn counts as done

Cost:
  Without requests nothing is sent to the store. Of many requests at once, only
  the requests of the next half second hold tickets, at least one. So other
  processes of the queue start their work in between. All other messages go to
  stderr.

End:
  After the end of stdin, `turns` answers the requests that it has read, and
  ends. If nothing reads stdout any more, it ends at once. So it ends with the
  program that started it.

Examples:
  # From a shell: three turns, one line for each.
  yes '' | head -n 3 | interval-queue turns --queue api --every 250ms

  # From Python. examples/python and examples/node in the repository have more:
  import subprocess
  turns = subprocess.Popen(['interval-queue', 'turns', '--every', '250ms'],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True, bufsize=1)
  for url in urls:
      turns.stdin.write('turn\\n')
      if not turns.stdout.readline():
          raise SystemExit('no more turns')
      fetch(url)
";

/// Print a line at each requested slot, so that a program in any language keeps the rate of the
/// queue.
///
/// The program keeps `turns` running and uses two pipes, instead of starting a process for each
/// job.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{HELP}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows the requests, the answers and examples.")]
pub(crate) struct Turns {
    #[command(flatten)]
    pub(crate) shard: Shard,
}
