//! Reads, which change nothing.

use super::{
    Work,
    select::{number_of, size_of_bodies},
};
use crate::{
    Counted, Day, Input, Inputs, KEEP_PRESENCE, KeyRow, Kind, MAX_COUNTED, MAX_HELD, MAX_LISTED, MAX_PAGE,
    MAX_REPLY, Overview, PausedKey, Presence, Read, Reply, Rows, State, Stored, Task, TaskId, Times, Took,
    Why, Worker,
};

/// Maximum number of edges, inputs and held tasks per reply.
pub const MAX_LISTED_ROWS: u32 = 100;

/// Among these most urgent ready tasks an overview finds the oldest.
const HEAD_LEN: u32 = 20;

/// Read at most once per command.
type Living = Option<Vec<Presence>>;

impl<R: Rows> Work<'_, R> {
    pub(super) fn read(&mut self, read: &Read) -> Result<Reply, R::Error> {
        // Reads count a silence in full, so that dead workers show as dead even if no worker polls.
        self.lease_clock = self.queue.lease_clock + (self.now - self.queue.seen);
        Ok(match read {
            Read::Clock => Reply::Clock(self.now),
            Read::Overview => Reply::Overview(Box::new(self.overview()?)),
            Read::Tasks(ids) => {
                let mut tasks = Vec::with_capacity(ids.len());
                let (mut size, mut living) = (0, None);
                for &id in ids {
                    let task = self.rows.task(id)?;
                    let stored = task.map(|task| self.stored(task, &mut living)).transpose()?;
                    size += stored.as_ref().map_or(0, size_of_bodies);
                    tasks.push(stored);
                    if size > MAX_REPLY {
                        break;
                    }
                }
                Reply::Tasks(tasks)
            }
            Read::Page { selector, after, limit, bodies } => {
                Reply::Page(self.page(selector, *after, *limit, *bodies)?)
            }
            Read::Count { selector, after } => Reply::Count(self.tally(selector, *after)?),
            Read::Inputs { down, after } => Reply::Inputs(self.inputs(*down, *after)?),
            Read::Workers => {
                let mut workers = Vec::new();
                let now = self.now;
                // Maintenance may not have removed older ones.
                let is_shown = |x: &Presence| x.busy || x.seen + x.lease + KEEP_PRESENCE >= now;
                for presence in self.rows.presences()?.into_iter().filter(is_shown) {
                    let holds = self
                        .rows
                        .held_by(presence.worker, MAX_LISTED_ROWS)?
                        .iter()
                        .map(|x| (x.id, x.token))
                        .collect();
                    let alive_for =
                        (presence.ends > self.lease_clock).then(|| presence.ends - self.lease_clock);
                    workers.push(Worker { presence, alive_for, holds });
                }
                Reply::Workers(workers)
            }
            Read::Schedules => Reply::Schedules(self.rows.schedules()?),
            Read::Downstreams { up, after } => {
                let edges = self.rows.edges_from(*up, *after, MAX_PAGE)?;
                Reply::Downstreams(edges.into_iter().map(|edge| edge.down).collect())
            }
            Read::Times { kind, from } => {
                Reply::Times(Times::of(self.rows.times(kind, Took::hour_of(*from))?))
            }
            Read::Days { kind, from } => {
                Reply::Days(Day::of(self.rows.times(kind, Took::hour_of(*from) / 24 * 24)?))
            }
            Read::Upcoming(limit) => {
                let counts = self.rows.counts()?;
                let ready =
                    counts.iter().filter(|(_, counted, n)| *counted == Counted::Now(State::Ready) && *n > 0);
                let kinds: Vec<Kind> = ready.map(|(kind, ..)| kind.clone()).collect();
                Reply::Upcoming(self.rows.ready(&kinds, None, *limit)?)
            }
            Read::KeyLimit(key) => Reply::KeyLimit(self.rows.key(key)?.and_then(|row| row.limit)),
            Read::Ready(kinds) => {
                Reply::Ready(!self.queue.paused && !self.rows.ready(kinds, None, 1)?.is_empty())
            }
        })
    }

    fn stored(&mut self, task: Task, living: &mut Living) -> Result<Stored, R::Error> {
        Ok(Stored {
            payload: self.rows.payload(task.id)?,
            result: self.rows.result(task.id)?,
            log: self.rows.log(task.id)?,
            upstreams: self.rows.edges_to(task.id, None, None, MAX_LISTED_ROWS)?,
            downstreams: self.rows.edges_from(task.id, None, MAX_LISTED_ROWS)?,
            why: self.why(&task, living)?,
            undecoded: None,
            task,
        })
    }

    fn inputs(&mut self, down: TaskId, after: Option<TaskId>) -> Result<Inputs, R::Error> {
        let mut page = Inputs::default();
        let mut size = 0;
        let edges = self.rows.edges_to(down, None, after, MAX_LISTED_ROWS)?;
        let is_full = edges.len() == MAX_LISTED_ROWS as usize;
        for edge in edges {
            page.next = Some(edge.up);
            let state = self.rows.task(edge.up)?.map_or(State::Purged, |up| up.state);
            let result = self.rows.result(edge.up)?.filter(|_| state == State::Done);
            size += result.as_ref().map_or(0, |result| result.as_str().len());
            page.inputs.push(Input {
                name: edge.name,
                up: edge.up,
                on_failure: edge.on_failure,
                state,
                result,
            });
            if size > MAX_REPLY {
                return Ok(page);
            }
        }
        page.next = page.next.filter(|_| is_full);
        Ok(page)
    }

    fn why(&mut self, x: &Task, living: &mut Living) -> Result<Option<Why>, R::Error> {
        let why = match x.state {
            State::Leased => return self.is_lost(x).map(|is_lost| is_lost.then_some(Why::Lost)),
            state if state.is_ended() => return Ok(None),
            State::Added => Why::NoStep,
            State::Waiting => Why::Upstreams,
            State::Scheduled => Why::Time(x.not_before - self.now),
            State::Blocked | State::Ready => {
                let row = self.rows.kind(&x.kind)?;
                if row.as_ref().is_some_and(|row| row.paused) {
                    Why::KindPaused
                } else if row.is_none_or(|row| row.served_until <= self.lease_clock) {
                    Why::Unserved
                } else if let (State::Blocked, Some(key)) = (x.state, &x.key) {
                    if self.key_limit(key)? == 0 {
                        Why::KeyPaused
                    } else {
                        Why::Key(
                            self.rows
                                .first_competitor(key)?
                                .map(|first| first.id)
                                .filter(|&first| first != x.id),
                        )
                    }
                } else if self.queue.paused {
                    Why::Paused
                } else if let Some(limit) = self.queue.settings.max_running
                    && self.rows.leased()? >= limit.into()
                {
                    Why::Limit
                } else {
                    if living.is_none() {
                        *living = Some(self.rows.presences()?);
                    }
                    let alive = living.iter().flatten().filter(|worker| worker.ends > self.lease_clock);
                    none_takes(alive.filter(|worker| worker.kinds.contains(&x.kind)), x).unwrap_or(Why::Next)
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(why))
    }

    fn is_lost(&mut self, x: &Task) -> Result<bool, R::Error> {
        let Some(worker) = x.worker else { return Ok(true) };
        Ok(self.rows.presence(worker)?.is_none_or(|presence| presence.ends <= self.lease_clock))
    }

    fn paused_keys(&mut self) -> Result<Vec<PausedKey>, R::Error> {
        let mut paused = Vec::new();
        for KeyRow { key, paused_at: since, .. } in self.rows.paused_keys(MAX_LISTED)? {
            paused.push(PausedKey { tasks: self.rows.blocked(&key, MAX_COUNTED)?, key, since });
        }
        Ok(paused)
    }

    fn overview(&mut self) -> Result<Overview, R::Error> {
        let counts = self.rows.counts()?;
        let kinds = self.rows.kinds()?;
        let live = |counted: Counted| matches!(counted, Counted::Now(state) if !state.is_ended());
        let mut waiting: Vec<Kind> = counts
            .iter()
            .filter(|&&(_, counted, n)| n > 0 && live(counted))
            .map(|(kind, ..)| kind.clone())
            .collect();
        waiting.dedup();
        let is_served =
            |kind: &Kind| kinds.iter().any(|row| row.kind == *kind && row.served_until > self.lease_clock);
        let unserved = waiting.iter().filter(|kind| !is_served(kind)).cloned().collect();
        let (living, ended): (Vec<_>, Vec<_>) =
            self.rows.presences()?.into_iter().partition(|presence| presence.ends > self.lease_clock);
        let mut lost = 0;
        for dead in ended.iter().filter(|dead| !dead.cleared) {
            lost += self.rows.held_by(dead.worker, MAX_HELD)?.len() as u64;
        }
        let line = self.rows.ready(&waiting, None, HEAD_LEN)?;
        let next = self.rows.next_scheduled()?;
        let number = |state| number_of(&counts, |_, of| of == state);
        let is_whole = line.len() < HEAD_LEN as usize;
        let miscounted = is_whole && number(State::Ready) != line.len() as u64
            || next.is_none() != (number(State::Scheduled) == 0);
        Ok(Overview {
            at: self.now,
            settings: self.queue.settings.clone(),
            paused: self.queue.paused,
            paused_at: self.queue.paused_at,
            paused_keys: self.paused_keys()?,
            workers: living.len() as u64,
            lost,
            unserved,
            oldest: line.iter().map(Task::ready_since).min(),
            next,
            miscounted,
            counts,
            kinds,
        })
    }
}

/// `None`: one does, or there is no worker.
fn none_takes<'a>(workers: impl Iterator<Item = &'a Presence>, x: &Task) -> Option<Why> {
    let (mut lowest, mut is_full) = (None, false);
    for worker in workers {
        match worker.at_least.filter(|&least| x.priority < least) {
            Some(least) => lowest = Some(lowest.map_or(least, |lowest: i32| lowest.min(least))),
            None if worker.room.is_some_and(|room| room < x.weight) => is_full = true,
            None => return None,
        }
    }
    if is_full { Some(Why::Capacity) } else { lowest.map(Why::Load) }
}
