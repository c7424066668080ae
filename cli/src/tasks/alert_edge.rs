//! When an alert is due: at the edges of its condition.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct AlertEdge {
    holds: bool,
    /// When the alert was last due. `None`: it is due, if the condition holds.
    last: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The condition became true, or still holds after the repeat interval.
    Alert,
    /// The condition became false.
    End,
    Nothing,
}

impl AlertEdge {
    /// `every`: the repeat interval; `None`: no repeats.
    pub(super) fn checked(&mut self, holds: bool, now: Instant, every: Option<Duration>) -> Due {
        let is_due = |last: Instant| every.is_some_and(|every| now.duration_since(last) >= every);
        let held = std::mem::replace(&mut self.holds, holds);
        match (holds, self.last) {
            (true, Some(last)) if !is_due(last) => Due::Nothing,
            (true, _) => {
                self.last = Some(now);
                Due::Alert
            }
            (false, _) => {
                self.last = None;
                if held { Due::End } else { Due::Nothing }
            }
        }
    }

    /// The alert has reached nobody: it is due at the next check.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    pub(super) fn holds(&self) -> bool {
        self.holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    /// Checks once a second.
    fn due(every: Option<Duration>, checks: &[bool]) -> Vec<Due> {
        let (mut edge, begin) = (AlertEdge::default(), now());
        let checks = checks.iter().zip(0..);
        checks
            .map(|(holds, second)| edge.checked(*holds, begin + Duration::from_secs(second), every))
            .collect()
    }

    #[test]
    fn an_alert_is_due_at_each_rising_edge() {
        use Due::{Alert, End, Nothing};
        assert_eq!(due(None, &[false, true, true, true]), [Nothing, Alert, Nothing, Nothing]);
        assert_eq!(due(None, &[true, false, false, true]), [Alert, End, Nothing, Alert]);
        let every = Some(Duration::from_secs(2));
        assert_eq!(due(every, &[true; 5]), [Alert, Nothing, Alert, Nothing, Alert]);
        assert_eq!(due(every, &[true, false, true, true, true]), [Alert, End, Alert, Nothing, Alert]);
    }
}
