//! Output for a terminal that can only write lines (`TERM=dumb`): when the status changes, and at
//! regular intervals.

use std::time::Duration;

use super::model::Model;

const LINE_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(crate) struct Lines {
    last: Option<(String, Duration)>,
}

impl Lines {
    /// `None`: no line is due.
    pub(crate) fn next(&mut self, model: &Model) -> Option<String> {
        let status = model.status();
        let queue = model.queue().map_or("-", |queue| queue.as_str());
        let subject = format!("{queue}: {} {}", status.tone.sign(), status.word);
        let is_repeated = self
            .last
            .as_ref()
            .is_some_and(|(last, at)| *last == subject && model.now.saturating_sub(*at) < LINE_INTERVAL);
        if is_repeated {
            return None;
        }
        self.last = Some((subject.clone(), model.now));
        let facts = model.facts().map_or(String::new(), |facts| format!("  ({facts})"));
        Some(format!("{subject}: {}{facts}", status.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::{Scene, name, read};

    #[test]
    fn a_line_comes_with_another_status_or_after_a_while() {
        let mut model = Model::new("file:queues.json", Some(name("mail")));
        let mut lines = Lines::default();
        assert_eq!(lines.next(&model).unwrap(), "mail: ○ NOT READ YET: the store has not answered yet");
        assert_eq!(lines.next(&model), None);
        model.apply(read("mail", Scene::new(1000)), Duration::from_secs(1));
        let line = lines.next(&model).unwrap();
        assert!(line.starts_with("mail: ○ EMPTY: empty: no job waits  (0 waiting"), "{line}");
        model.apply(read("mail", Scene::new(1000)), Duration::from_secs(2));
        assert_eq!(lines.next(&model), None);
        model.now = Duration::from_secs(7);
        assert!(lines.next(&model).is_some());
        model.apply(read("mail", Scene::new(1000).paused()), Duration::from_secs(8));
        assert!(lines.next(&model).is_some_and(|line| line.contains("PAUSED")));
    }
}
