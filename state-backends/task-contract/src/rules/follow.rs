//! Events: recorded only while a follower is subscribed, so that other queues pay nothing.

use super::Work;
use crate::{Event, FOLLOWED, Follow, Followed, Following, KEEP_EVENTS, Mark, Rows, Task};

const MAX_FORGOTTEN_EVENTS: u32 = 2_000;

impl<R: Rows> Work<'_, R> {
    pub(super) fn note(&mut self, before: Option<&Task>, after: &Task) -> Result<(), R::Error> {
        if !self.is_followed() {
            return Ok(());
        }
        Event::of(self.now, before, after).map_or(Ok(()), |event| self.rows.put_event(&event))
    }

    pub(super) fn is_followed(&self) -> bool {
        self.queue.followed.is_some_and(|followed| followed.is_on(self.now))
    }

    pub(super) fn follow(&mut self, follow: &Follow) -> Result<Followed, R::Error> {
        let now = self.now;
        let noted = self.queue.followed.filter(|_| self.is_followed());
        let from = noted.map_or(now, |noted| noted.from);
        if noted.is_none_or(|noted| noted.until - now <= FOLLOWED) {
            self.queue().followed = Some(Following::renewed(from, now));
        }
        let Some(after) = follow.after else {
            let mark = Mark { number: self.rows.last_event()?, at: now };
            return Ok(Followed { events: Vec::new(), mark, missed: false });
        };
        // Removed last: a lower number than the follower's means that the store was rolled back.
        let last = self.rows.last_event()?;
        if (1..after.number).contains(&last) {
            return Ok(Followed { events: Vec::new(), mark: Mark { number: last, at: now }, missed: true });
        }
        let missed = noted.is_none() || after.at < from || after.at + KEEP_EVENTS < now;
        let found = self.rows.events(after.number, follow.most)?;
        let mark = match found.last() {
            Some((number, last)) if found.len() >= follow.most as usize => {
                Mark { number: *number, at: last.at.max(after.at) }
            }
            Some((number, _)) => Mark { number: *number, at: now },
            None => Mark { at: now, ..after },
        };
        self.forget_events()?;
        Ok(Followed { events: found.into_iter().map(|(_, event)| event).collect(), mark, missed })
    }

    pub(super) fn forget_events(&mut self) -> Result<(), R::Error> {
        let Some(noted) = self.queue.followed else { return Ok(()) };
        self.rows.forget_events(self.now - KEEP_EVENTS, MAX_FORGOTTEN_EVENTS)?;
        if noted.until + KEEP_EVENTS < self.now && self.rows.last_event()? == 0 {
            self.queue().followed = None;
        }
        Ok(())
    }
}
