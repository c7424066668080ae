//! What the command line of `add` says.

use clap::{ArgGroup, Args};
use interval_queue_tasks::FlowId;

use super::options::TaskOptions;
use crate::args::{EXIT_CODES, Target};

const HELP: &str = "\
Examples:
  export INTERVAL_QUEUE_STORE=sqlite:/var/lib/jobs/queues.db INTERVAL_QUEUE_NAME=mail
  interval-queue add '{\"to\": \"ada@example.com\"}'
  interval-queue add --kind digest --delay 1h --unique 'digest of ada' '\"ada\"'
  interval-queue add --key 'customer 7' --ordered 1 2 3    # strictly one after the other
  jq -c '.[]' letters.json | interval-queue add -q -       # a task for each line
  interval-queue add --flow pipeline.json                  # tasks that wait for each other

Tasks are JSON: text needs quotes within those of the shell, as in '\"text\"'. They are
stored when their ids are printed, and run by `interval-queue work` or by a service that
uses the Rust crate interval-queue-tasks.

Input:
  With - each line is one payload; empty lines are left out. It is added as it comes, a
  thousand lines at once at most. A line that is no JSON ends the program with 65, which
  names it; all lines before it are added then, and those behind it are not.

Tasks that wait for each other are a flow, added as a whole or not at all:
  {
    \"fetch\": {\"kind\": \"fetch\", \"payload\": {\"url\": \"https://example.com/list\"}},
    \"count\": {\"kind\": \"count\", \"after\": \"fetch\", \"max_attempts\": 3},
    \"mail\":  {\"kind\": \"mail\", \"after\": [\"count\", {\"name\": \"fetch\", \"as\": \"list\", \"on_failure\": \"run\"}]}
  }
Or a list of such objects, each with its \"name\". What a task waits for is a name of the flow or
the id of a stored task. Its result is the input of that name, or the one behind \"as\". If it
does not end well, the task is cancelled, or does what \"on_failure\" says: cancel, run or wait.
Also: priority, key, ordered, delay, deadline, unique, on_conflict, max_attempts, weight, tags.
At most 20,000 tasks, and 10,000 that one waits for. The id and the name of each are printed.
`interval-queue tasks wait --flow ID` waits for it; with --flow-id it is added once.

A store that does not answer is asked again for a minute, and nothing is added twice. With
--unique a second task of that name is not added while the first one has not ended: the id
of the first one is printed, and a line on stderr says so.
";

/// What the document of a flow says of each task.
const OF_ONE: [&str; 10] =
    ["kind", "priority", "key", "ordered", "delay", "deadline", "unique", "max_attempts", "weight", "tags"];

/// Store tasks, which outlive this process and run once each has a worker.
#[derive(Debug, Args)]
#[command(name = "add", after_long_help = format!("{HELP}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples and exit codes.")]
#[command(group = ArgGroup::new("what").args(["payloads", "flow"]).required(true))]
pub(crate) struct AddArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) task: TaskOptions,
    /// Add tasks that wait for each other, from this JSON file, see below; or - for the standard input
    #[arg(long, value_name = "FILE|-", conflicts_with_all = OF_ONE)]
    pub(crate) flow: Option<String>,
    /// The id of the flow: what is added under it again, from wherever, is not added twice. Default: a new one
    #[arg(long, value_name = "ID", requires = "flow", conflicts_with = "payloads")]
    pub(crate) flow_id: Option<FlowId>,
    /// With --flow, print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long, requires = "flow", conflicts_with = "payloads")]
    pub(crate) json: bool,
    /// Print no ids, and show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The payloads, each a JSON value; or - for one in each line of the standard input
    #[arg(value_name = "JSON|-", allow_negative_numbers = true)]
    pub(crate) payloads: Vec<String>,
}
