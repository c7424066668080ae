//! What the rules ask of a command's view.

use interval_queue_contract::{Micros, StateError};
use interval_queue_task_contract::{
    Corrected, Counted, Edge, EdgeState, Entry, Event, Json, Key, KeyRow, Kind, KindRow, Presence, Queue,
    Rank, Rows, Schedule, Selector, State, Task, TaskId, Took, WorkerId,
};

use super::{Ask, Chosen, Found, Lease, Look, Overlay, merge::Ordered};

const FIRST: TaskId = TaskId::FIRST;
const LAST: TaskId = TaskId::LAST;
const LOWEST: Rank = Rank::first(i64::MIN);
const HIGHEST: Rank = Rank::last(i64::MAX);

/// So many are found where the first one is asked for: it may be written, and the next one is asked for then.
const AHEAD: u32 = 10;

/// A look that gives one row.
macro_rules! one {
    ($self:ident, $look:expr, $variant:ident) => {
        match $self.found(&Ask::one($look)) {
            Some(Found::$variant(found)) => found.clone(),
            _ => Default::default(),
        }
    };
}

/// Rows by a name, with those that were written in place of what was found.
macro_rules! all {
    ($self:ident, $look:expr, $variant:ident, $written:expr, $name:expr) => {{
        let mut all = match $self.found(&Ask::some($look, u32::MAX)) {
            Some(Found::$variant(found)) => found.clone(),
            _ => Default::default(),
        };
        all.retain(|row| !$written.contains_key(&$name(row)));
        all
    }};
}

impl Overlay<'_> {
    fn number(&mut self, look: Look) -> u64 {
        let more = self.written.more(&look);
        let found = match self.found(&Ask::one(look)) {
            Some(&Found::Number(number)) => number,
            _ => 0,
        };
        found.saturating_add_signed(more)
    }

    /// The leases of all workers, as they were written.
    fn leases(&mut self) -> Vec<Lease> {
        let mut leases =
            all!(self, Look::Leases, Leases, self.written.presences, |lease: &Lease| lease.worker);
        leases.extend(self.written.presences.values().flatten().map(Lease::of));
        leases
    }

    /// The first of the keys of which this is said.
    fn some_keys(&mut self, look: Look, most: u32, is_one: impl Fn(&KeyRow) -> bool) -> Vec<KeyRow> {
        // As many more as may have been written since.
        let written = u32::try_from(self.written.keys.len()).unwrap_or(u32::MAX);
        let ask = Ask::some(look, most.saturating_add(written));
        let mut rows = match self.page(&ask) {
            Some((_, asked, Found::Keys(rows))) => {
                if asked < ask.most && rows.len() >= asked as usize {
                    self.miss(ask);
                }
                rows.clone()
            }
            _ => Vec::new(),
        };
        rows.retain(|row| !self.written.keys.contains_key(&row.key));
        rows.extend(self.written.keys.values().flatten().filter(|&row| is_one(row)).cloned());
        rows.sort_by(|one, other| one.key.cmp(&other.key));
        rows.truncate(most as usize);
        rows
    }
}

impl Rows for Overlay<'_> {
    type Error = StateError;

    fn queue(&mut self) -> Result<Option<Queue>, StateError> {
        if self.written.queue.is_some() {
            return Ok(self.written.queue.clone());
        }
        let queue: Option<Box<Queue>> = one!(self, Look::Queue, Queue);
        Ok(queue.map(|queue| *queue))
    }

    fn put_queue(&mut self, queue: &Queue) -> Result<(), StateError> {
        self.written.queue = Some(queue.clone());
        Ok(())
    }

    fn task(&mut self, id: TaskId) -> Result<Option<Task>, StateError> {
        if let Some(change) = self.written.task(id) {
            return Ok(change.after.clone());
        }
        let task: Option<Box<Task>> = one!(self, Look::Task(id), Task);
        Ok(task.map(|task| *task))
    }

    fn insert(&mut self, task: &Task, payload: &Json) -> Result<(), StateError> {
        self.written.put_task(None, task.id, Some(task));
        self.written.payloads.insert(task.id, Some(payload.clone()));
        Ok(())
    }

    fn put(&mut self, before: &Task, after: &Task) -> Result<(), StateError> {
        self.written.put_task(Some(before), after.id, Some(after));
        Ok(())
    }

    fn remove(&mut self, task: &Task) -> Result<(), StateError> {
        self.written.put_task(Some(task), task.id, None);
        self.written.payloads.insert(task.id, None);
        self.written.results.insert(task.id, None);
        Ok(())
    }

    fn payload(&mut self, id: TaskId) -> Result<Option<Json>, StateError> {
        match self.written.payloads.get(&id) {
            Some(payload) => Ok(payload.clone()),
            None => Ok(one!(self, Look::Payload(id), Json)),
        }
    }

    fn put_payload(&mut self, id: TaskId, payload: Option<&Json>) -> Result<(), StateError> {
        self.written.payloads.insert(id, payload.cloned());
        Ok(())
    }

    fn result(&mut self, id: TaskId) -> Result<Option<Json>, StateError> {
        match self.written.results.get(&id) {
            Some(result) => Ok(result.clone()),
            None => Ok(one!(self, Look::Result(id), Json)),
        }
    }

    fn put_result(&mut self, id: TaskId, result: Option<&Json>) -> Result<(), StateError> {
        self.written.results.insert(id, result.cloned());
        Ok(())
    }

    fn by_name(&mut self, name: &Key) -> Result<Option<Task>, StateError> {
        let named = Entry::Name(name.clone(), FIRST)..=Entry::Name(name.clone(), LAST);
        if let Some(task) = self.written.range(named).next() {
            return Ok(Some(task.clone()));
        }
        let task: Option<Box<Task>> = one!(self, Look::ByName(name.clone()), Task);
        Ok(task.map(|task| *task).filter(|x| self.written.task(x.id).is_none()))
    }

    fn added(&mut self, most: u32) -> Result<Vec<Task>, StateError> {
        let all = Entry::Added(LOWEST)..=Entry::Added(HIGHEST);
        let is_retained = |x: &Task| x.state == State::Added;
        let ask = Ask::some(Look::Added, most);
        Ok(self.tasks(ask, most, Ordered::Up(all), is_retained, Task::order))
    }

    fn scheduled(&mut self, until: Micros, most: u32) -> Result<Vec<Task>, StateError> {
        let is_due = |x: &Task| x.state == State::Scheduled && x.not_before <= until;
        let until_rank = Rank::last(i64::try_from(until.get()).unwrap_or(i64::MAX));
        let all = Entry::Scheduled(LOWEST)..=Entry::Scheduled(until_rank);
        let ask = Ask::until(Look::Scheduled, most, until);
        Ok(self.tasks(ask, most, Ordered::Up(all), is_due, Task::start_order))
    }

    fn next_scheduled(&mut self) -> Result<Option<Micros>, StateError> {
        let all = Entry::Scheduled(LOWEST)..=Entry::Scheduled(HIGHEST);
        let written = self.written.range(all).next().map(|x| (x.not_before, x.id));
        Ok(self.instant(Ask::some(Look::NextScheduled, AHEAD), written))
    }

    fn ready(&mut self, kinds: &[Kind], at_least: Option<i32>, most: u32) -> Result<Vec<Task>, StateError> {
        let is_retained = |x: &Task| {
            x.state == State::Ready
                && kinds.contains(&x.kind)
                && at_least.is_none_or(|least| x.priority >= least)
        };
        let ask = Ask::some(Look::Ready(kinds.to_vec(), at_least), most);
        let written = Ordered::These(self.written.ready(kinds, at_least));
        Ok(self.tasks(ask, most, written, is_retained, Task::order))
    }

    fn leased(&mut self) -> Result<u64, StateError> {
        Ok(self.number(Look::Leased))
    }

    fn leased_of_key(&mut self, key: &Key) -> Result<u64, StateError> {
        Ok(self.number(Look::LeasedOfKey(key.clone())))
    }

    fn held_by(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, StateError> {
        let is_held = |x: &Task| x.state == State::Leased && x.worker == Some(worker);
        let all = Entry::Leased(worker, FIRST)..=Entry::Leased(worker, LAST);
        let ask = Ask::some(Look::HeldBy(worker), most);
        Ok(self.tasks(ask, most, Ordered::Up(all), is_held, |x| x.id))
    }

    fn to_stop(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, StateError> {
        let stops = |x: &Task| x.state == State::Leased && x.stop.is_some() && x.worker == Some(worker);
        let all = Entry::ToStop(worker, FIRST)..=Entry::ToStop(worker, LAST);
        let ask = Ask::some(Look::ToStop(worker), most);
        Ok(self.tasks(ask, most, Ordered::Up(all), stops, |x| x.id))
    }

    fn holders(&mut self, key: &Key) -> Result<u64, StateError> {
        Ok(self.number(Look::Holders(key.clone())))
    }

    fn has_ordered_holder(&mut self, key: &Key) -> Result<bool, StateError> {
        Ok(self.number(Look::OrderedHolders(key.clone())) > 0)
    }

    fn last_ready_holder(&mut self, key: &Key) -> Result<Option<Task>, StateError> {
        let holds = |x: &Task| x.holds_key && x.state == State::Ready && x.key.as_ref() == Some(key);
        let all = Entry::ReadyHolder(key.clone(), LOWEST)..=Entry::ReadyHolder(key.clone(), HIGHEST);
        let ask = Ask::some(Look::LastReadyHolder(key.clone()), AHEAD);
        let line = |x: &Task| std::cmp::Reverse(x.key_order());
        Ok(self.tasks(ask, 1, Ordered::Down(all), holds, line).into_iter().next())
    }

    fn first_competitor(&mut self, key: &Key) -> Result<Option<Task>, StateError> {
        let waits = |x: &Task| x.state == State::Blocked && !x.unserved && x.key.as_ref() == Some(key);
        let all = Entry::Competitor(key.clone(), LOWEST)..=Entry::Competitor(key.clone(), HIGHEST);
        let ask = Ask::some(Look::Line(key.clone()), AHEAD);
        let first = self.tasks(ask, 1, Ordered::Up(all), waits, Task::key_order);
        Ok(first.into_iter().next())
    }

    fn blocked(&mut self, key: &Key, most: u32) -> Result<u64, StateError> {
        let ask = Ask::some(Look::Blocked(key.clone()), most);
        let more = self.written.more(&ask.look);
        let found = match self.known.0.get(&ask.look) {
            // A number that reaches the limit of its lookup may be too low for a higher limit.
            Some((asked, Found::Number(number))) if *number < asked.most.into() || most <= asked.most => {
                *number
            }
            _ => {
                self.miss(ask);
                0
            }
        };
        Ok(found.saturating_add_signed(more).min(most.into()))
    }

    fn next_key(&mut self, after: Option<&Key>) -> Result<Option<Key>, StateError> {
        let found: Option<Key> = one!(self, Look::NextKey(after.cloned()), NextKey);
        Ok(found.into_iter().chain(self.written.next_key(after)?).min())
    }

    fn unserved(&mut self, kind: &Kind, most: u32) -> Result<Vec<Task>, StateError> {
        let is_unserved = |x: &Task| x.unserved && x.kind == *kind;
        let all = Entry::Unserved(kind.clone(), FIRST)..=Entry::Unserved(kind.clone(), LAST);
        let ask = Ask::some(Look::Unserved(kind.clone()), most);
        Ok(self.tasks(ask, most, Ordered::Up(all), is_unserved, |x| x.id))
    }

    fn ready_holders(&mut self, kind: &Kind, most: u32) -> Result<Vec<Task>, StateError> {
        let holds = |x: &Task| x.holds_key && x.state == State::Ready && x.kind == *kind;
        let all =
            Entry::ReadyHolderOfKind(kind.clone(), FIRST)..=Entry::ReadyHolderOfKind(kind.clone(), LAST);
        let ask = Ask::some(Look::ReadyHolders(kind.clone()), most);
        Ok(self.tasks(ask, most, Ordered::Up(all), holds, |x| x.id))
    }

    fn overdue(&mut self, until: Micros, most: u32) -> Result<Vec<Task>, StateError> {
        let ask = Ask::until(Look::Overdue, most, until);
        let is_over = |x: &Task| deadline(x).is_some_and(|deadline| deadline <= until);
        let all = Entry::Deadline(Micros::ZERO, FIRST)..=Entry::Deadline(until, LAST);
        Ok(self.tasks(ask, most, Ordered::Up(all), is_over, |x| (x.deadline, x.id)))
    }

    fn next_deadline(&mut self) -> Result<Option<Micros>, StateError> {
        let all = Entry::Deadline(Micros::ZERO, FIRST)..=Entry::Deadline(Micros::MAX, LAST);
        let written = self.written.range(all).next().and_then(|x| Some((x.deadline?, x.id)));
        Ok(self.instant(Ask::some(Look::NextDeadline, AHEAD), written))
    }

    fn unnotified(&mut self, most: u32) -> Result<Vec<Task>, StateError> {
        let is_unnotified = |x: &Task| x.state.is_ended() && !x.notified;
        let all = Entry::Unnotified(FIRST)..=Entry::Unnotified(LAST);
        let ask = Ask::some(Look::Unnotified, most);
        Ok(self.tasks(ask, most, Ordered::Up(all), is_unnotified, |x| x.id))
    }

    fn ended(&mut self, state: State, before: Micros, most: u32) -> Result<Vec<Task>, StateError> {
        let is_old = |x: &Task| x.state == state && x.notified && !x.retained && x.ended < Some(before);
        let all = Entry::Ended(state, Micros::ZERO, FIRST)..=Entry::Ended(state, before, LAST);
        let ask = Ask::until(Look::Ended(state), most, before);
        Ok(self.tasks(ask, most, Ordered::Up(all), is_old, |x| (x.ended, x.id)))
    }

    fn select(
        &mut self,
        selector: &Selector,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Task>, StateError> {
        let chosen = Chosen { selector: selector.clone(), after };
        let is_chosen = |x: &Task| after.is_none_or(|after| x.id > after) && selector.matches(x);
        // A command selects once, and has written little before.
        let written = Ordered::These(self.written.after().filter(|x| is_chosen(x)).cloned().collect());
        Ok(self.tasks(Ask::some(Look::Select(Box::new(chosen)), most), most, written, is_chosen, |x| x.id))
    }

    fn insert_edge(&mut self, edge: &Edge) -> Result<(), StateError> {
        self.written.put_edge(None, (edge.up, edge.down), Some(edge));
        Ok(())
    }

    fn remove_edge(&mut self, edge: &Edge) -> Result<(), StateError> {
        self.written.put_edge(Some(edge), (edge.up, edge.down), None);
        Ok(())
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<(), StateError> {
        self.written.put_edge(Some(edge), (edge.up, edge.down), Some(edge));
        Ok(())
    }

    fn edges_from(&mut self, up: TaskId, after: Option<TaskId>, most: u32) -> Result<Vec<Edge>, StateError> {
        let written = self.written.edges_from(up, after).take(most as usize).cloned().collect();
        Ok(self.edges(Ask::some(Look::From(up, after), most), most, written, |edge| edge.down))
    }

    fn unnotified_from(&mut self, up: TaskId, generation: u32, most: u32) -> Result<Vec<Edge>, StateError> {
        let unnotified = self.written.edges_from(up, None).filter(|edge| edge.is_unnotified(generation));
        let written = unnotified.take(most as usize).cloned().collect();
        Ok(self.edges(Ask::some(Look::UnnotifiedFrom(up, generation), most), most, written, |edge| edge.down))
    }

    fn edges_to(
        &mut self,
        down: TaskId,
        state: Option<EdgeState>,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, StateError> {
        let is_retained = |edge: &&Edge| state.is_none_or(|state| edge.state == state);
        let written = self.written.edges_to(down, after).filter(is_retained).take(most as usize);
        let written = written.cloned().collect();
        Ok(self.edges(Ask::some(Look::To(down, state, after), most), most, written, |edge| edge.up))
    }

    fn has_pending(&mut self, down: TaskId) -> Result<bool, StateError> {
        if self.written.edges_to(down, None).any(|edge| edge.state.is_pending()) {
            return Ok(true);
        }
        let ask = Ask::some(Look::Pending(down), AHEAD);
        Ok(!self.edges(ask, 1, Vec::new(), |edge| edge.up).is_empty())
    }

    fn presence(&mut self, worker: WorkerId) -> Result<Option<Presence>, StateError> {
        if let Some(presence) = self.written.presences.get(&worker) {
            return Ok(presence.clone());
        }
        let presence: Option<Box<Presence>> = one!(self, Look::Presence(worker), Presence);
        Ok(presence.map(|presence| *presence))
    }

    fn put_presence(&mut self, presence: &Presence) -> Result<(), StateError> {
        self.written.presences.insert(presence.worker, Some(presence.clone()));
        Ok(())
    }

    fn remove_presence(&mut self, worker: WorkerId) -> Result<(), StateError> {
        self.written.presences.insert(worker, None);
        Ok(())
    }

    fn ended_presences(
        &mut self,
        until: Micros,
        cleared: bool,
        most: u32,
    ) -> Result<Vec<Presence>, StateError> {
        let mut ended = self.leases();
        ended.retain(|lease| lease.ends <= until && lease.cleared == cleared);
        ended.sort_by_key(|lease| (lease.ends, lease.worker));
        ended.truncate(most as usize);
        let mut presences = Vec::with_capacity(ended.len());
        for lease in ended {
            presences.extend(self.presence(lease.worker)?);
        }
        Ok(presences)
    }

    fn shortest_busy_lease(&mut self, after: Micros) -> Result<Option<Micros>, StateError> {
        let leases = self.leases();
        Ok(leases.iter().filter(|lease| lease.busy && lease.ends > after).map(|lease| lease.lease).min())
    }

    fn longest_lease(&mut self, after: Micros) -> Result<Option<Micros>, StateError> {
        Ok(self.leases().iter().filter(|lease| lease.ends > after).map(|lease| lease.lease).max())
    }

    fn next_busy_end(&mut self, after: Micros) -> Result<Option<Micros>, StateError> {
        let leases = self.leases();
        Ok(leases.iter().filter(|lease| lease.busy && lease.ends > after).map(|lease| lease.ends).min())
    }

    fn presences(&mut self) -> Result<Vec<Presence>, StateError> {
        let worker = |presence: &Presence| presence.worker;
        let mut all = all!(self, Look::Presences, Presences, self.written.presences, worker);
        all.extend(self.written.presences.values().flatten().cloned());
        all.sort_by_key(worker);
        Ok(all)
    }

    fn kind(&mut self, kind: &Kind) -> Result<Option<KindRow>, StateError> {
        match self.written.kinds.get(kind) {
            Some(row) => Ok(Some(row.clone())),
            None => match self.known.get(&Look::Kinds) {
                Some(Found::Kinds(rows)) => Ok(rows.iter().find(|row| row.kind == *kind).cloned()),
                _ => Ok(one!(self, Look::Kind(kind.clone()), Kind)),
            },
        }
    }

    fn put_kind(&mut self, row: &KindRow) -> Result<(), StateError> {
        self.written.kinds.insert(row.kind.clone(), row.clone());
        Ok(())
    }

    fn kinds(&mut self) -> Result<Vec<KindRow>, StateError> {
        let kind = |row: &KindRow| row.kind.clone();
        let mut all = all!(self, Look::Kinds, Kinds, self.written.kinds, kind);
        all.extend(self.written.kinds.values().cloned());
        all.sort_by_key(kind);
        Ok(all)
    }

    fn key(&mut self, key: &Key) -> Result<Option<KeyRow>, StateError> {
        match self.written.keys.get(key) {
            Some(row) => Ok(row.clone()),
            None => Ok(one!(self, Look::Key(key.clone()), Key)),
        }
    }

    fn put_key(&mut self, row: &KeyRow) -> Result<(), StateError> {
        self.written.keys.insert(row.key.clone(), Some(row.clone()));
        Ok(())
    }

    fn remove_key(&mut self, key: &Key) -> Result<(), StateError> {
        self.written.keys.insert(key.clone(), None);
        Ok(())
    }

    fn paused_keys(&mut self, most: u32) -> Result<Vec<KeyRow>, StateError> {
        Ok(self.some_keys(Look::PausedKeys, most, |row| row.limit == Some(0)))
    }

    fn keys_to_rebalance(&mut self, most: u32) -> Result<Vec<KeyRow>, StateError> {
        Ok(self.some_keys(Look::UnevenKeys, most, |row| row.needs_rebalancing))
    }

    fn schedule(&mut self, name: &Key) -> Result<Option<Schedule>, StateError> {
        if let Some(schedule) = self.written.schedules.get(name) {
            return Ok(schedule.clone());
        }
        let schedule: Option<Box<Schedule>> = one!(self, Look::Schedule(name.clone()), Schedule);
        Ok(schedule.map(|schedule| *schedule))
    }

    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), StateError> {
        self.written.schedules.insert(schedule.name.clone(), Some(schedule.clone()));
        Ok(())
    }

    fn remove_schedule(&mut self, name: &Key) -> Result<(), StateError> {
        self.written.schedules.insert(name.clone(), None);
        Ok(())
    }

    fn schedules(&mut self) -> Result<Vec<Schedule>, StateError> {
        let name = |schedule: &Schedule| schedule.name.clone();
        let mut all = all!(self, Look::Schedules, Schedules, self.written.schedules, name);
        all.extend(self.written.schedules.values().flatten().cloned());
        all.sort_by_key(name);
        Ok(all)
    }

    fn count(&mut self, kind: &Kind, counted: Counted, more: i64) -> Result<(), StateError> {
        *self.written.counts.entry((kind.clone(), counted)).or_default() += more;
        Ok(())
    }

    fn miscounted(&mut self) -> Result<Vec<Corrected>, StateError> {
        match self.found(&Ask::some(Look::Miscounted, u32::MAX)) {
            Some(Found::Miscounted(found)) => Ok(found.clone()),
            _ => Ok(Vec::new()),
        }
    }

    fn counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, StateError> {
        let ask = Ask::some(Look::Counts, u32::MAX);
        let mut counts = match self.found(&ask) {
            Some(Found::Counts(counts)) => counts.clone(),
            _ => Vec::new(),
        };
        for ((kind, counted), &more) in &self.written.counts {
            match counts.iter_mut().find(|(known, what, _)| known == kind && what == counted) {
                Some((.., number)) => *number = number.saturating_add_signed(more),
                None => counts.push((kind.clone(), *counted, 0u64.saturating_add_signed(more))),
            }
        }
        counts.retain(|&(.., number)| number != 0);
        counts.sort_unstable();
        Ok(counts)
    }

    fn took(&mut self, kind: &Kind, took: Took, more: u64) -> Result<(), StateError> {
        *self.written.times.entry((kind.clone(), took)).or_default() += more;
        Ok(())
    }

    fn times(&mut self, kind: &Kind, from: u32) -> Result<Vec<(Took, u64)>, StateError> {
        match self.found(&Ask::some(Look::Times(kind.clone(), from), u32::MAX)) {
            Some(Found::Times(times)) => Ok(times.clone()),
            _ => Ok(Vec::new()),
        }
    }

    fn forget_times(&mut self, before: u32) -> Result<(), StateError> {
        self.written.first_hour = Some(before);
        Ok(())
    }

    fn put_event(&mut self, event: &Event) -> Result<(), StateError> {
        self.written.events.push(event.clone());
        Ok(())
    }

    fn events(&mut self, after: u64, most: u32) -> Result<Vec<(u64, Event)>, StateError> {
        let ask = Ask::some(Look::Events(after), most);
        let Some((_, asked, Found::Events(events))) = self.page(&ask) else { return Ok(Vec::new()) };
        if asked < most && events.len() >= asked as usize {
            self.miss(ask);
        }
        Ok(events.iter().take(most as usize).cloned().collect())
    }

    fn last_event(&mut self) -> Result<u64, StateError> {
        match self.found(&Ask::one(Look::LastEvent)) {
            Some(&Found::Number(number)) => Ok(number),
            _ => Ok(0),
        }
    }

    fn forget_events(&mut self, before: Micros, most: u32) -> Result<(), StateError> {
        self.written.first_event = Some((before, most));
        Ok(())
    }

    fn notify(&mut self) -> Result<(), StateError> {
        self.written.notifies = true;
        Ok(())
    }
}

/// When a task is to be ended or stopped, if nobody has asked for it.
fn deadline(x: &Task) -> Option<Micros> {
    x.deadline.filter(|_| x.stop.is_none() && !x.state.is_ended())
}
