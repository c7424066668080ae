//! What the command line of `turns` says.

use clap::Args;

use crate::args::{EXIT_CODES, Shard};

const HELP: &str = "\
Requests, one a line on stdin:
  turn      asks for a turn; so does an empty line
  turn 3    asks for one that takes three intervals
  back      takes the last request back that has no turn yet; its place goes to the next
  done      says that what one turn was for is over; needed with --max-running alone

Answers, one a line on stdout, for each request one:
  turn 17   its slot has come: go. 17 is its ticket
  back      the request was taken back. If `turn` came instead, it was too late: the slot is
            gone, and the turn counts as done

An idle program costs nothing: without a request nothing is asked of the store, and a
request that waits holds no place that others could use sooner: this program holds no more
places than slots pass in half a second, or one. What it says otherwise goes to stderr.

After the end of stdin the requests that were made get their turns. If nobody reads stdout
any more they are given up. So when the program ends that started this one, this one does.

Examples:
  # From a shell: three turns, a line for each.
  yes '' | head -n 3 | interval-queue turns --store file:pace.json --queue api --every 250ms

  # From Python; examples/python and examples/node in the repository have more of it:
  import subprocess
  pace = subprocess.Popen(['interval-queue', 'turns', '--every', '250ms'], text=True, bufsize=1,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
  for url in urls:
      pace.stdin.write('turn\\n')
      if not pace.stdout.readline():
          raise SystemExit('no more turns')
      fetch(url)
";

/// Print a line for each turn that is asked for, at its slot, so that a program of any language paces what
/// it does itself.
///
/// A program keeps it running and speaks to it over two pipes, instead of starting a process for each job. Its
/// turns are paced together with everyone else on the queue.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{HELP}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows the requests, the answers and examples.")]
pub(crate) struct Turns {
    #[command(flatten)]
    pub(crate) shard: Shard,
}
