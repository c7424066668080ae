//! `tasks watch`: runs a command when a condition on the status of a queue becomes true.

use std::{ffi::OsString, time::Duration};

use clap::Args;
use interval_queue_documents::{Alert, Queue, duration::positive};
use interval_queue_tasks::DAY;
use tokio::time::sleep;

use super::{
    alert_command::AlertCommand,
    alert_edge::{AlertEdge, Due},
    status_reader::StatusReader,
};
use crate::{
    args::Target,
    clock::now,
    exit::{ALERT, Failure, print_on, report},
    outage::StoreOutages,
};

const HELP: &str = "\
Examples:
  interval-queue tasks watch --alert 'failed > 10' -- sh -c \\
    'mail -s \"$INTERVAL_QUEUE_ALERT_QUEUE: $INTERVAL_QUEUE_ALERT\" ops@example.org'
  interval-queue tasks watch --alert 'oldest > 5min' --alert 'workers < 1' \\
    --alert unreachable --every 1h -- page-someone
  # From cron, or as a probe of a monitoring system:
  interval-queue tasks watch --once --alert 'lost > 0' --alert 'unserved > 0'

Conditions:
  NAME > N, also >=, <, <=, = and !=; in quotes, because a shell takes > for
  itself. NAME is a state of tasks, see `tasks --help`, or one of:
    left          tasks that have not ended
    lost          leased tasks whose worker's lease has ended
    unserved      kinds with live tasks that no live worker handles
    workers       live workers
    oldest        how long a task has been ready, as in oldest > 5min
  Without a comparison:
    paused        the queue is paused
    unreachable   the queue cannot be read any more

Input of CMD:
  standard input                 the status, as `tasks --json` prints it; null
                                 if the store does not answer
  INTERVAL_QUEUE_ALERT           the condition: failed > 10
  INTERVAL_QUEUE_ALERT_QUEUE     the queue
  INTERVAL_QUEUE_ALERT_VALUE     the number found: 12, of oldest a duration:
                                 5m 3s, of unreachable the error

Outages:
  If the store does not answer, a line on stderr reports it, and one its end.
  Meanwhile only unreachable is checked.

Exit codes:
  With --once 0 if no condition holds, and 1 if one holds. If the queue cannot
  be read, those of `tasks --help`, or 1 with `--alert unreachable`.";

/// Run CMD when a condition on the status of the queue becomes true. Without CMD, print a line.
///
/// CMD runs once when a condition becomes true or is true at the start, and again after the
/// condition was false, or if CMD failed. Commands run one at a time, and the next check waits for their end. If CMD
/// fails, it is reported, and the watch goes on.
#[derive(Debug, Args)]
#[command(after_long_help = HELP, after_help = "`--help` shows examples, conditions and the environment of CMD.")]
pub(super) struct Watch {
    /// A condition, as in 'failed > 10'; may be given several times
    #[arg(long = "alert", required = true, value_name = "CONDITION", value_parser = Alert::parse)]
    alerts: Vec<Alert>,
    /// Check once, and end with exit code 1 if a condition holds, else with 0
    #[arg(long, conflicts_with_all = ["every", "refresh"])]
    once: bool,
    /// While a condition holds, alert again after this time. Default: only when it becomes true
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    every: Option<Duration>,
    /// How often the queue is read; 100ms to 1day
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = refresh)]
    refresh: Duration,
    /// End CMD with its process group after this time: SIGTERM, 3 s later SIGKILL; up to 1day
    #[arg(long, value_name = "DURATION", default_value = "1min", value_parser = timeout)]
    timeout: Duration,
    /// The command and its arguments. A `--` before it is optional
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

fn refresh(text: &str) -> Result<Duration, String> {
    let refresh = positive(text)?;
    if refresh < Duration::from_millis(100) || refresh > DAY {
        return Err(format!("{} is out of range: give 100ms to 1day", text.escape_debug()));
    }
    Ok(refresh)
}

fn timeout(text: &str) -> Result<Duration, String> {
    let timeout = positive(text)?;
    if timeout > DAY {
        return Err(format!("{} is out of range: give up to 1day", text.escape_debug()));
    }
    Ok(timeout)
}

pub(super) async fn watch(target: &Target, args: &Watch) -> Result<(), Failure> {
    let command = AlertCommand::find(&args.command, args.timeout)?;
    let mut alerts = Alerts::of(target, args, command.as_ref());
    let ended = if args.once { alerts.check_once().await } else { alerts.check_forever().await };
    if let Some(command) = command {
        command.end().await;
    }
    ended
}

struct Alerts<'a> {
    target: &'a Target,
    args: &'a Watch,
    command: Option<&'a AlertCommand>,
    reader: StatusReader<'a>,
    /// One for each alert.
    edges: Vec<AlertEdge>,
}

impl<'a> Alerts<'a> {
    fn of(target: &'a Target, args: &'a Watch, command: Option<&'a AlertCommand>) -> Self {
        let edges = args.alerts.iter().map(|_| AlertEdge::default()).collect();
        Self { target, args, command, reader: StatusReader::of(target), edges }
    }

    async fn check_once(&mut self) -> Result<(), Failure> {
        let status = self.reader.read().await;
        if let Err(failure) = &status
            && !self.is_alert(failure)
        {
            return status.map(drop);
        }
        self.alert(&status).await?;
        let holding = self.edges.iter().filter(|edge| edge.holds()).count();
        let alerts = self.args.alerts.len();
        match holding {
            0 => Ok(()),
            _ => Err(Failure::new(ALERT, format!("{holding} of {alerts} conditions hold"))),
        }
    }

    /// Whether an alert is about this failure.
    fn is_alert(&self, failure: &Failure) -> bool {
        let is_of_outage = |alert: &Alert| alert.check_outage(&failure.message).is_some();
        failure.passes && self.args.alerts.iter().any(is_of_outage)
    }

    /// Returns when stdout is closed. After the first answer of the store, all failures count as
    /// outages: a watch that ends would alert about nothing.
    async fn check_forever(&mut self) -> Result<(), Failure> {
        let mut outages = StoreOutages::of(&self.target.store.url);
        let mut is_answered = false;
        loop {
            let sent = now();
            let status = self.reader.read().await;
            let line = match &status {
                Ok(_) => {
                    is_answered = true;
                    outages.answered()
                }
                Err(failure) if failure.passes || is_answered => outages.failed(failure, sent),
                Err(failure) => return Err(failure.clone()),
            };
            line.iter().for_each(|line| report(line));
            if !self.alert(&status).await? {
                return Ok(());
            }
            sleep(self.args.refresh).await;
        }
    }

    /// Checks all conditions, and runs CMD or prints a line. Returns false if stdout is closed.
    async fn alert(&mut self, status: &Result<Queue, Failure>) -> Result<bool, Failure> {
        let queue = &self.target.queue;
        for (alert, edge) in self.args.alerts.iter().zip(&mut self.edges) {
            let fired = match status {
                Ok(status) => alert.check(status),
                Err(failure) => match alert.check_outage(&failure.message) {
                    None => continue,
                    fired => fired,
                },
            };
            let due = edge.checked(fired.is_some(), now(), self.args.every);
            let line = match (due, fired, self.command) {
                (Due::Alert, Some(fired), Some(command)) => {
                    if !command.run(queue, &fired, status.as_ref().ok()).await? {
                        edge.forget();
                    }
                    continue;
                }
                (Due::Alert, Some(fired), None) => format!("{queue}: {fired}\n"),
                (Due::End, _, None) => format!("{queue}: {alert} is over\n"),
                _ => continue,
            };
            if !print_on(line.as_bytes())? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_watch_have_bounds() {
        assert_eq!(refresh("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!([refresh("1day"), timeout("1day")], [Ok(DAY), Ok(DAY)]);
        for text in ["99ms", "25h"] {
            assert!(refresh(text).unwrap_err().contains("100ms to 1day"), "{text}");
        }
        assert!(timeout("25h").unwrap_err().contains("25h is out of range: give up to 1day"));
        assert!(timeout("0s").unwrap_err().contains("more than zero"));
    }
}
