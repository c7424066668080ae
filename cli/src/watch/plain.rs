//! Output for a terminal that can only write lines (`TERM=dumb`): a line when the reason changes,
//! and at regular intervals.

use std::time::Duration;

use super::{draw::theme::sign, history::Waiting, model::Model};

/// Maximum time between lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// The last written line.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    last: Option<(String, Duration)>,
}

impl Lines {
    /// The next line, if one is due.
    pub(crate) fn next(&mut self, model: &Model) -> Option<String> {
        let reason = model.reason();
        let queue = model.queue().map_or("-", |queue| queue.as_str());
        let what = format!("{queue} {}", reason.word);
        let due = match &self.last {
            None => true,
            Some((last, at)) => *last != what || model.now.saturating_sub(*at) >= LINE_INTERVAL,
        };
        if !due {
            return None;
        }
        self.last = Some((what, model.now));
        let numbers = model.history().map_or(String::new(), |history| {
            let rate = history
                .rate()
                .map_or(String::new(), |rate| format!(", {:.0}% of the rate", rate.share() * 100.0));
            format!("  ({} waiting{rate})", history.snapshot().tickets())
        });
        Some(format!("{queue}: {} {}: {}{numbers}", sign(reason.tone), reason.word, reason.text))
    }
}

#[cfg(test)]
mod tests {
    use interval_queue::QueueName;

    use super::*;
    use crate::watch::{messages::Message, scene::Scene};

    #[test]
    fn a_line_comes_with_another_reason_or_after_a_while() {
        let mail = QueueName::new("mail").unwrap();
        let mut model = Model::new("file:queues.json", Some(mail.clone()));
        let mut lines = Lines::default();
        assert_eq!(lines.next(&model).unwrap(), "mail: ○ NOT READ YET: the store has not answered yet");
        assert_eq!(lines.next(&model), None);
        let read = |scene: Scene| Message::Read(mail.clone(), Some(scene.build()));
        model.apply(read(Scene::new(1000)), Duration::from_secs(1));
        assert_eq!(lines.next(&model).unwrap(), "mail: ○ EMPTY: no job waits  (0 waiting)");
        model.apply(read(Scene::new(1000)), Duration::from_secs(2));
        assert_eq!(lines.next(&model), None);
        model.now = Duration::from_secs(7);
        assert!(lines.next(&model).is_some());
        model.apply(read(Scene::new(1000).paused()), Duration::from_secs(8));
        assert!(lines.next(&model).is_some_and(|line| line.contains("PAUSED")));
    }
}
