//! Alerts: conditions on the status of a queue, as people write them: `failed > 10`.

mod comparison;
mod measure;

use std::{fmt, str::FromStr};

use self::{comparison::Comparison, measure::Measure};
use crate::Queue;

/// Example in errors.
const EXAMPLE: &str = "write for example 'failed > 10', in quotes, because a shell takes > for itself";
/// Characters of comparisons.
const COMPARISON_CHARS: [char; 4] = ['<', '>', '=', '!'];

/// A condition on the status of a queue of tasks, such as `failed > 10`.
///
/// It compares a number of the status by `>`, `>=`, `<`, `<=`, `=` or `!=`:
///
/// - a state, as in `ready > 1000`: the number of tasks in it,
/// - `left`: tasks that have not ended,
/// - `lost`: leased tasks whose worker's lease has ended,
/// - `unserved`: kinds with live tasks that no live worker handles,
/// - `workers`: live workers,
/// - `oldest`: the longest time for which a task has been ready, as in `oldest > 5min`; zero if no
///   task is ready.
///
/// Two names are conditions of their own: `paused`, the queue is paused, and `unreachable`, the
/// queue cannot be read.
///
/// ```
/// use interval_queue_documents::{Alert, Queue};
///
/// let alert = Alert::parse("oldest>5min")?;
/// assert_eq!(alert.to_string(), "oldest > 5m");
/// let error = Alert::parse("broken > 10").unwrap_err();
/// assert!(error.starts_with("\"broken\" is no condition: give added, waiting,"));
/// # fn check(alert: &Alert, status: &Queue) {
/// if let Some(fired) = alert.check(status) {
///     println!("{fired}"); // oldest > 5m: 7m 3s
/// }
/// # }
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert(Rule);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Compared { measure: Measure, by: Comparison, limit: u64 },
    Paused,
    Unreachable,
}

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The condition: `failed > 10`.
    pub alert: String,
    /// The number found, or a duration such as `5m 3s`. For `paused` it is `true`, for
    /// `unreachable` the error.
    pub value: String,
}

impl Alert {
    /// Parses a condition.
    ///
    /// # Errors
    ///
    /// A name, a comparison or a value is not valid. The text names it and the valid ones.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let is_of_comparison = |c: char| COMPARISON_CHARS.contains(&c);
        let (name, rest) = text.split_at(text.find(is_of_comparison).unwrap_or(text.len()));
        let value = rest.trim_start_matches(is_of_comparison);
        let (name, by) = (name.trim(), &rest[..rest.len() - value.len()]);
        let rule = match name {
            "paused" => Rule::Paused,
            "unreachable" => Rule::Unreachable,
            name => {
                let measure = Measure::parse(name)?;
                if by.is_empty() {
                    return Err(format!("{} has no comparison: {EXAMPLE}", text.escape_debug()));
                }
                let by = Comparison::parse(by)?;
                return Ok(Self(Rule::Compared { measure, by, limit: measure.parse_limit(value.trim())? }));
            }
        };
        match rest {
            "" => Ok(Self(rule)),
            rest => Err(format!("{name} has no value: leave out {:?}", rest.trim())),
        }
    }

    /// Checks the status. `None`: the condition does not hold, or it is `unreachable`.
    pub fn check(&self, status: &Queue) -> Option<Fired> {
        match &self.0 {
            Rule::Compared { measure, by, limit } => {
                let value = measure.of(status);
                by.holds(value, *limit).then(|| self.fired(measure.show(value)))
            }
            Rule::Paused => status.paused.then(|| self.fired("true".into())),
            Rule::Unreachable => None,
        }
    }

    /// Checks a store that did not answer, with its error. `None`: the condition is not
    /// `unreachable`, so nothing is known about it.
    pub fn check_outage(&self, error: &str) -> Option<Fired> {
        (self.0 == Rule::Unreachable).then(|| self.fired(error.to_owned()))
    }

    fn fired(&self, value: String) -> Fired {
        Fired { alert: self.to_string(), value }
    }
}

impl FromStr for Alert {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

/// The condition in its shortest form, which can be parsed again.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rule::Compared { measure, by, limit } => {
                write!(f, "{} {} {}", measure.as_str(), by.as_str(), measure.show_limit(*limit))
            }
            Rule::Paused => f.write_str("paused"),
            Rule::Unreachable => f.write_str("unreachable"),
        }
    }
}

/// The condition with the value: `failed > 10: 12`.
impl fmt::Display for Fired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.alert, self.value)
    }
}

#[cfg(test)]
mod tests {
    use interval_queue::Micros;
    use interval_queue_tasks::{Counter, Kind, Overview, Settings, State};

    use super::*;

    /// A queue with two failed tasks and a task that has been ready for seven minutes.
    fn status(paused: bool) -> Queue {
        let at = Micros::from_millis(1_000_000);
        let kind = Kind::new("mail").unwrap();
        let counts = [(State::Failed, 2), (State::Ready, 1)];
        let overview = Overview {
            at,
            settings: Settings::default(),
            paused,
            paused_at: None,
            paused_keys: Vec::new(),
            workers: 0,
            lost: 0,
            kinds: Vec::new(),
            unserved: vec![kind.clone()],
            oldest: Some(at - Micros::from_millis(7 * 60_000)),
            miscounted: false,
            next: None,
            counts: counts.map(|(state, count)| (kind.clone(), Counter::Now(state), count)).to_vec(),
        };
        Queue::of("mail", &overview, None, &[], None, None)
    }

    fn fired(text: &str) -> Option<String> {
        Alert::parse(text).unwrap().check(&status(false)).map(|fired| fired.to_string())
    }

    #[test]
    fn conditions_are_compared_with_the_status() {
        for (text, says) in [
            ("failed > 1", "failed > 1: 2"),
            ("failed>=2", "failed >= 2: 2"),
            (" failed  ==  2 ", "failed = 2: 2"),
            ("failed != 3", "failed != 3: 2"),
            ("done < 1", "done < 1: 0"),
            ("left <= 1", "left <= 1: 1"),
            ("workers < 1", "workers < 1: 0"),
            ("unserved > 0", "unserved > 0: 1"),
            ("oldest > 5m", "oldest > 5m: 7m"),
            ("oldest > 6min 59s", "oldest > 6m 59s: 7m"),
        ] {
            assert_eq!(fired(text).as_deref(), Some(says), "{text}");
        }
        for text in
            ["failed > 2", "failed < 2", "failed != 2", "lost > 0", "oldest > 7min", "paused", "unreachable"]
        {
            assert_eq!(fired(text), None, "{text}");
        }
        let paused = Alert::parse("paused").unwrap();
        assert_eq!(paused.check(&status(true)).unwrap().to_string(), "paused: true");
    }

    #[test]
    fn only_unreachable_is_known_during_an_outage() {
        let of = |text: &str| Alert::parse(text).unwrap().check_outage("no answer");
        assert_eq!(of("unreachable").unwrap().to_string(), "unreachable: no answer");
        assert_eq!([of("failed = 0"), of("paused")], [None, None]);
    }

    #[test]
    fn errors_name_the_wrong_part_and_the_valid_ones() {
        for (text, says) in [
            (
                "",
                "\"\" is no condition: give added, waiting, scheduled, blocked, ready, leased, done, failed",
            ),
            ("error > 1", "\"error\" is no condition: give added"),
            ("> 1", "left, lost, unserved, workers, oldest, paused or unreachable"),
            ("failed", "failed has no comparison: write for example 'failed > 10', in quotes"),
            ("failed 10", "\"failed 10\" is no condition"),
            ("failed => 1", "\"=>\" is no comparison: give >, >=, <, <=, = or !="),
            ("failed > many", "\"many\" is no whole number: compare failed with 10"),
            ("failed > -1", "\"-1\" is no whole number"),
            ("failed > 5m", "\"5m\" is no whole number"),
            ("failed > 1 > 2", "\"1 > 2\" is no whole number"),
            ("failed >", "\"\" is no whole number"),
            ("oldest > 300", "oldest: 300 has no unit: write 300ms, 300s"),
            ("oldest > \u{7}", "oldest: "),
            ("paused > 0", "paused has no value: leave out \"> 0\""),
        ] {
            let error = Alert::parse(text).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
            assert!(!error.contains(char::is_control), "{text:?}: {error:?}");
        }
    }
}
