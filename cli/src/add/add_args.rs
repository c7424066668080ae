//! The command line of `add`.

use std::{sync::LazyLock, time::SystemTime};

use clap::{ArgGroup, Args};
use interval_queue_documents::instant;
use interval_queue_tasks::{FlowId, Json, Task, Traceparent};

use super::options::TaskOptions;
use crate::args::{EXIT_CODES, Target};

const HELP: &str = "\
Examples:
  export INTERVAL_QUEUE_STORE=sqlite:/var/lib/jobs/queues.db
  export INTERVAL_QUEUE_NAME=mail
  interval-queue add '{\"to\": \"ada@example.com\"}'
  interval-queue add --kind digest --delay 1h --unique digest-ada '\"ada\"'
  interval-queue add --not-before 2026-12-24T08:00:00+01:00 '\"ada\"'
  # One task per customer: later payloads replace the one that waits.
  interval-queue add --unique report-7 --on-conflict replace --delay 1min 7
  # Run three tasks strictly one after the other:
  interval-queue add --key customer-7 --ordered 1 2 3
  # Add a task for each line:
  jq -c '.[]' letters.json | interval-queue add -q -
  # Add tasks that wait for each other:
  interval-queue add --flow pipeline.json

A payload is JSON. Text needs double quotes inside the quotes of the shell, as
in '\"text\"'. A task is stored when its id is printed. `interval-queue work` runs
it, or a service that uses the Rust crate interval-queue-tasks.

Input:
  With -, each line of stdin is a payload. Empty lines are skipped. Lines are
  added as they arrive, up to a thousand at once. A line that is not JSON, or
  too long, ends the program with 65, and the error names the line. All lines
  before it are added; that line and later ones are not.

Outage:
  `add` retries for a minute if the store does not answer, and adds nothing
  twice.

Traces:
  TRACEPARENT in the environment, a W3C trace context, is stored with the task,
  without --flow. `work` passes it to CMD.

Flows:
  A flow is a set of tasks that wait for each other. It is added as a whole or
  not at all. This is pipeline.json:

  {
    \"fetch\": {\"kind\": \"fetch\", \"payload\": {\"url\": \"https://example.com\"}},
    \"count\": {\"kind\": \"count\", \"after\": \"fetch\", \"max_attempts\": 3},
    \"mail\": {
      \"kind\": \"mail\",
      \"after\": [\"count\", {\"name\": \"fetch\", \"as\": \"list\", \"on_failure\": \"run\"}]
    }
  }

  A list of such objects, each with a \"name\", is a flow, too. \"after\" is a name
  of the flow, the id of a stored task, an object, or a list of these. The
  result of an upstream is an input of the task, under its name or under \"as\".
  \"on_failure\" sets what happens if an upstream fails or is cancelled: cancel
  (the default), run or wait. Other fields: priority, key, ordered, delay,
  deadline, unique, on_conflict, max_attempts, weight, tags. A flow has at most
  20,000 tasks, a task at most 10,000 upstreams. The id and the name of each
  task are printed. `interval-queue tasks wait --flow ID` waits for the flow.
";

/// Options that the document of a flow sets for each task.
pub(crate) const TASK_OPTIONS: [&str; 12] = [
    "kind",
    "priority",
    "key",
    "ordered",
    "delay",
    "deadline",
    "unique",
    "unique_until_leased",
    "on_conflict",
    "max_attempts",
    "weight",
    "tags",
];

/// Store tasks for workers to run, and print their ids.
#[derive(Debug, Args)]
#[command(name = "add", after_long_help = format!("{HELP}\n{EXIT_CODES}"))]
#[command(after_help = "`--help` shows examples and exit codes.")]
#[command(group = ArgGroup::new("what").args(["payloads", "flow"]).required(true))]
pub(crate) struct AddArgs {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) task: TaskOptions,
    /// Do not start before this time, such as 2026-12-01T08:00:00+01:00
    #[arg(long, aliases = ["at", "eta"], value_name = "TIME", conflicts_with_all = ["delay", "flow"])]
    #[arg(value_parser = instant::parse)]
    pub(crate) not_before: Option<SystemTime>,
    /// Fail if not started by this time; a task that still runs then is asked to stop
    #[arg(long, value_name = "TIME", conflicts_with_all = ["deadline", "flow"], value_parser = instant::parse)]
    pub(crate) deadline_at: Option<SystemTime>,
    /// Add a flow, tasks that wait for each other, from this JSON file, or from stdin with -; see
    /// below
    #[arg(long, value_name = "FILE|-", conflicts_with_all = TASK_OPTIONS)]
    pub(crate) flow: Option<String>,
    /// Id of the flow: adding the flow again under this id adds nothing. Default: a new id
    #[arg(long, value_name = "ID", requires = "flow", conflicts_with = "payloads")]
    pub(crate) flow_id: Option<FlowId>,
    /// With --flow, print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long, requires = "flow", conflicts_with = "payloads")]
    pub(crate) json: bool,
    /// Print no ids and no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The payload of each task, a JSON value; or - to read one payload from each line of stdin
    #[arg(value_name = "JSON|-", allow_negative_numbers = true)]
    pub(crate) payloads: Vec<String>,
}

/// A variable that is no traceparent means that there is no trace.
static TRACE: LazyLock<Option<Traceparent>> =
    LazyLock::new(|| Traceparent::new(std::env::var("TRACEPARENT").ok()?).ok());

impl AddArgs {
    pub(super) fn task(&self, payload: Json) -> Task {
        let mut task = self.task.task(payload);
        if let Some(at) = self.not_before {
            task = task.not_before(at);
        }
        if let Some(at) = self.deadline_at {
            task = task.deadline_at(at);
        }
        match &*TRACE {
            Some(trace) => task.traceparent(trace.as_str()),
            None => task,
        }
    }
}
