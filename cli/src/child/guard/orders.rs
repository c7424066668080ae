//! The protocol between a worker and a guard: lines, and input of CMD after its length.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt};

use super::{super::end::End, guard_clock::Instant};
use crate::exit::Failure;

/// The path of the inputs file. The guard removes it if the worker cannot.
pub(crate) const INPUTS_VARIABLE: &str = "INTERVAL_QUEUE_TASK_INPUTS";

/// The path of the file for replies. The guard removes it if the worker cannot.
pub(crate) const REPLY_VARIABLE: &str = "INTERVAL_QUEUE_TASK_REPLY";

/// Counted from the time of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    requested_at: Instant,
    length: Duration,
}

impl Lease {
    pub(crate) const NONE: Self = Self { requested_at: Instant(0), length: Duration::ZERO };

    pub(crate) fn new(requested_at: Instant, length: Duration) -> Self {
        Self { requested_at, length }
    }

    /// SIGTERM is sent with a quarter of the lease left, SIGKILL with an eighth, so that CMD ends
    /// before another worker can get its task.
    pub(crate) fn order(self) -> Order {
        let Self { requested_at, length } = self;
        Order::Lease { term: requested_at + length / 4 * 3, kill: requested_at + length / 8 * 7 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// When CMD gets SIGTERM and SIGKILL without a further order. Both are before the end of the
    /// lease.
    Lease { term: Instant, kill: Instant },
    /// Starts CMD.
    Start,
    /// Input of CMD.
    Input(Vec<u8>),
    /// The end of the input.
    CloseInput,
    /// Sends SIGTERM now, and SIGKILL after this time.
    Stop(Duration),
}

#[derive(Clone, Debug)]
pub(crate) enum GuardReport {
    /// CMD runs, as the leader of the process group with this id.
    Started(u32),
    /// All processes have ended, and CMD ended in this way.
    Ended(End),
}

impl Order {
    /// The line lacks the bytes of an input.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Lease { term, kill } => format!("lease {} {}\n", term.0, kill.0),
            Self::Start => "start 0\n".into(),
            Self::Input(input) => format!("input {}\n", input.len()),
            Self::CloseInput => "close 0\n".into(),
            Self::Stop(grace) => format!("stop {}\n", grace.as_micros()),
        }
    }
}

/// `None`: the other end is gone, or sends no valid order.
pub(super) async fn read_order(orders: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Order> {
    let mut line = String::new();
    orders.read_line(&mut line).await.ok()?;
    let line = line.strip_suffix('\n')?;
    let (what, numbers) = line.split_once(' ')?;
    let mut numbers = numbers.split(' ').map(str::parse::<u64>);
    let mut number = || numbers.next()?.ok();
    match what {
        "lease" => Some(Order::Lease { term: Instant(number()?), kill: Instant(number()?) }),
        "start" => Some(Order::Start),
        "input" => {
            let mut input = Vec::new();
            let length = number()?;
            let read = orders.take(length).read_to_end(&mut input).await.ok()?;
            (read as u64 == length).then_some(Order::Input(input))
        }
        "close" => Some(Order::CloseInput),
        "stop" => Some(Order::Stop(Duration::from_micros(number()?))),
        _ => None,
    }
}

impl GuardReport {
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Started(group) => format!("started {group}\n"),
            Self::Ended(End::Code(code)) => format!("code {code}\n"),
            Self::Ended(End::Signal(signal)) => format!("signal {signal}\n"),
            Self::Ended(End::Unable(failure)) => {
                let passes = u8::from(failure.passes);
                format!("unable {} {passes} {}\n", failure.code, failure.message.replace('\n', " "))
            }
            // Only the worker knows the other ends.
            Self::Ended(End::LeaseOver | End::TimedOut | End::Stopped | End::GuardGone(_)) => {
                "lease-over\n".into()
            }
        }
    }

    /// The line has no newline.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        match what {
            "started" => rest.parse().ok().map(Self::Started),
            "code" => rest.parse().ok().map(|code| Self::Ended(End::Code(code))),
            "signal" => rest.parse().ok().map(|signal| Self::Ended(End::Signal(signal))),
            "lease-over" => Some(Self::Ended(End::LeaseOver)),
            "unable" => {
                let mut parts = rest.splitn(3, ' ');
                let code = parts.next()?.parse().ok()?;
                let passes = parts.next()? == "1";
                let failure = Failure { passes, ..Failure::new(code, parts.next()?) };
                Some(Self::Ended(End::Unable(failure)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn orders_come_out_as_they_went_in() {
        let lease = Order::Lease { term: Instant(7), kill: Instant(9) };
        let input = Order::Input(b"stop 1\n".to_vec());
        let stop = Order::Stop(Duration::from_secs(3));
        let bytes = [
            lease.line(),
            Order::Start.line(),
            input.line(),
            "stop 1\n".into(),
            Order::CloseInput.line(),
            stop.line(),
        ]
        .concat();
        let mut read = bytes.as_bytes();
        for order in [lease, Order::Start, input, Order::CloseInput, stop] {
            assert_eq!(read_order(&mut read).await, Some(order));
        }
        assert_eq!(read_order(&mut read).await, None);
        for wrong in ["lease 1\n", "input 9\nshort", "stop x\n", "hello\n", "stop 1"] {
            assert_eq!(read_order(&mut wrong.as_bytes()).await, None, "{wrong}");
        }
    }

    #[test]
    fn news_come_out_as_they_went_in() {
        let failure = Failure { passes: true, ..Failure::new(127, "not found:\nthere is none") };
        let all = [
            GuardReport::Started(17),
            GuardReport::Ended(End::Code(3)),
            GuardReport::Ended(End::Signal(9)),
            GuardReport::Ended(End::LeaseOver),
            GuardReport::Ended(End::Unable(failure)),
        ];
        for guard_report in all {
            let line = guard_report.line();
            let read = GuardReport::of_line(line.strip_suffix('\n').unwrap()).unwrap();
            assert_eq!(read.line(), line);
        }
        assert!(GuardReport::of_line("hello").is_none() && GuardReport::of_line("code x").is_none());
    }
}
