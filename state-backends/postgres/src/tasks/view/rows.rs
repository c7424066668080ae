//! Implements the reads and writes of the rules on the view.

use interval_queue_contract::{Micros, StateError};
use interval_queue_task_contract::{
    Corrected, Counted, Cursor, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, LogLine, Presence,
    Queue, Rows, Schedule, Selector, State, Task, TaskId, Took, WorkerId,
    index::{Index, Sort as _},
};

use super::{Lease, Lookup, LookupResult, Selection, Target, TransactionView, lookup::READ_AHEAD_ROWS};

macro_rules! one {
    ($self:ident, $target:expr, $variant:ident) => {
        match $self.look_up(&Lookup::one($target)) {
            Some(LookupResult::$variant(result)) => result.clone(),
            _ => Default::default(),
        }
    };
}

/// Omits rows that were written since.
macro_rules! all {
    ($self:ident, $target:expr, $variant:ident, $written:expr, $name:expr) => {{
        let mut all = match $self.look_up(&Lookup::some($target, u32::MAX)) {
            Some(LookupResult::$variant(result)) => result.clone(),
            _ => Default::default(),
        };
        all.retain(|row| !$written.contains_key(&$name(row)));
        all
    }};
}

impl TransactionView<'_> {
    fn number(&mut self, target: Target) -> u64 {
        let more = self.written.more(&target);
        let result = match self.look_up(&Lookup::one(target)) {
            Some(&LookupResult::Number(number)) => number,
            _ => 0,
        };
        result.saturating_add_signed(more)
    }

    /// Includes written leases.
    fn leases(&mut self) -> Vec<Lease> {
        let mut leases =
            all!(self, Target::Leases, Leases, self.written.presences, |lease: &Lease| lease.worker);
        leases.extend(self.written.presences.values().flatten().map(Lease::of));
        leases
    }

    fn some_keys(&mut self, target: Target, limit: u32, matches: impl Fn(&KeyRow) -> bool) -> Vec<KeyRow> {
        // Written keys may replace stored ones, so that many more are read.
        let written = u32::try_from(self.written.keys.len()).unwrap_or(u32::MAX);
        let lookup = Lookup::some(target, limit.saturating_add(written));
        let mut rows = match self.page(&lookup) {
            Some((_, page_limit, LookupResult::Keys(rows))) => {
                if page_limit < lookup.limit && rows.len() >= page_limit as usize {
                    self.miss(lookup);
                }
                rows.clone()
            }
            _ => Vec::new(),
        };
        rows.retain(|row| !self.written.keys.contains_key(&row.key));
        rows.extend(self.written.keys.values().flatten().filter(|&row| matches(row)).cloned());
        rows.sort_by(|one, other| one.key.cmp(&other.key));
        rows.truncate(limit as usize);
        rows
    }
}

impl Rows for TransactionView<'_> {
    type Error = StateError;

    fn queue(&mut self) -> Result<Option<Queue>, StateError> {
        if self.written.queue.is_some() {
            return Ok(self.written.queue.clone());
        }
        let queue: Option<Box<Queue>> = one!(self, Target::Queue, Queue);
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
        let task: Option<Box<Task>> = one!(self, Target::Task(id), Task);
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
        self.written.logs.insert(task.id, Vec::new());
        Ok(())
    }

    fn payload(&mut self, id: TaskId) -> Result<Option<Json>, StateError> {
        match self.written.payloads.get(&id) {
            Some(payload) => Ok(payload.clone()),
            None => Ok(one!(self, Target::Payload(id), Json)),
        }
    }

    fn put_payload(&mut self, id: TaskId, payload: Option<&Json>) -> Result<(), StateError> {
        self.written.payloads.insert(id, payload.cloned());
        Ok(())
    }

    fn result(&mut self, id: TaskId) -> Result<Option<Json>, StateError> {
        match self.written.results.get(&id) {
            Some(result) => Ok(result.clone()),
            None => Ok(one!(self, Target::Result(id), Json)),
        }
    }

    fn put_result(&mut self, id: TaskId, result: Option<&Json>) -> Result<(), StateError> {
        self.written.results.insert(id, result.cloned());
        Ok(())
    }

    fn log(&mut self, id: TaskId) -> Result<Vec<LogLine>, StateError> {
        match self.written.logs.get(&id) {
            Some(log) => Ok(log.clone()),
            None => Ok(one!(self, Target::Log(id), Log)),
        }
    }

    fn put_log(&mut self, id: TaskId, log: &[LogLine]) -> Result<(), StateError> {
        self.written.logs.insert(id, log.to_vec());
        Ok(())
    }

    fn look<I: Index>(
        &mut self,
        columns: I::Columns,
        until: Option<Micros>,
        most: u32,
    ) -> Result<Vec<Task>, StateError> {
        let lookup = Lookup::look::<I>(&columns, until, most);
        let last = until.map_or(I::Order::LAST, I::Order::last_at);
        let is_included = |x: &Task| I::entry(x).is_some_and(|(of, order)| of == columns && order <= last);
        let of = columns.clone();
        Ok(self.tasks(lookup, most, |all| Box::new(all.look::<I>(of, until)), is_included, I::order))
    }

    fn first_instant<I: Index<Columns = ()>>(&mut self) -> Result<Option<Micros>, StateError> {
        let written = self.written.first::<I>();
        Ok(self.instant(Lookup::first::<I>(), written))
    }

    fn ready(&mut self, kinds: &[Kind], at_least: Option<i32>, limit: u32) -> Result<Vec<Task>, StateError> {
        let is_included = |x: &Task| {
            x.state == State::Ready
                && kinds.contains(&x.kind)
                && at_least.is_none_or(|least| x.priority >= least)
        };
        let lookup = Lookup::some(Target::Ready(kinds.to_vec(), at_least), limit);
        Ok(self.tasks(lookup, limit, |all| listed(all.ready(kinds, at_least)), is_included, Task::order))
    }

    fn leased(&mut self) -> Result<u64, StateError> {
        Ok(self.number(Target::Leased))
    }

    fn leased_of_key(&mut self, key: &Key) -> Result<u64, StateError> {
        Ok(self.number(Target::LeasedOfKey(key.clone())))
    }

    fn holders(&mut self, key: &Key) -> Result<u64, StateError> {
        Ok(self.number(Target::Holders(key.clone())))
    }

    fn has_ordered_holder(&mut self, key: &Key) -> Result<bool, StateError> {
        Ok(self.number(Target::OrderedHolders(key.clone())) > 0)
    }

    fn last_ready_holder(&mut self, key: &Key) -> Result<Option<Task>, StateError> {
        let holds = |x: &Task| x.holds_key && x.state == State::Ready && x.key.as_ref() == Some(key);
        let lookup = Lookup::some(Target::LastReadyHolder(key.clone()), READ_AHEAD_ROWS);
        let line = |x: &Task| std::cmp::Reverse(x.key_order());
        let last = self.tasks(lookup, 1, |all| listed(all.last_ready_holders(key)), holds, line);
        Ok(last.into_iter().next())
    }

    fn blocked(&mut self, key: &Key, limit: u32) -> Result<u64, StateError> {
        let lookup = Lookup::some(Target::Blocked(key.clone()), limit);
        let more = self.written.more(&lookup.target);
        let result = match self.read_set.0.get(&lookup.target) {
            // A number that reaches the limit of its lookup may be too low for a higher limit.
            Some((earlier, LookupResult::Number(number)))
                if *number < earlier.limit.into() || limit <= earlier.limit =>
            {
                *number
            }
            _ => {
                self.miss(lookup);
                0
            }
        };
        Ok(result.saturating_add_signed(more).min(limit.into()))
    }

    fn next_key(&mut self, after: Option<&Key>) -> Result<Option<Key>, StateError> {
        let result: Option<Key> = one!(self, Target::NextKey(after.cloned()), NextKey);
        Ok(result.into_iter().chain(self.written.next_key(after)).min())
    }

    fn select(&mut self, selector: &Selector, after: Cursor, limit: u32) -> Result<Vec<Task>, StateError> {
        let selection = Selection { selector: selector.clone(), after };
        let position = |x: &Task| after.order.position(x);
        let is_selected = |x: &Task| position(x) > Some(after) && selector.matches(x);
        let lookup = Lookup::some(Target::Select(Box::new(selection)), limit);
        // A command selects only once, and has written few rows before.
        let tasks = self.tasks(
            lookup,
            limit,
            |all| {
                let mut tasks: Vec<&Task> = all.after().filter(|x| is_selected(x)).collect();
                tasks.sort_by_key(|x| position(x));
                Box::new(tasks.into_iter())
            },
            is_selected,
            position,
        );
        Ok(tasks)
    }

    fn scan_end(&mut self, after: Cursor) -> Result<Option<Cursor>, StateError> {
        let instants: Vec<(Micros, TaskId)> = one!(self, Target::ScanEnd(after), Instants);
        Ok(instants.first().map(|&(at, id)| Cursor { at, id, ..after }))
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

    fn edges_from(&mut self, up: TaskId, after: Option<TaskId>, limit: u32) -> Result<Vec<Edge>, StateError> {
        let written = self.written.edges_from(up, after).take(limit as usize).cloned().collect();
        Ok(self.edges(Lookup::some(Target::From(up, after), limit), limit, written, |edge| edge.down))
    }

    fn unnotified_from(&mut self, up: TaskId, generation: u32, limit: u32) -> Result<Vec<Edge>, StateError> {
        let unnotified = self.written.edges_from(up, None).filter(|edge| edge.is_unnotified(generation));
        let written = unnotified.take(limit as usize).cloned().collect();
        Ok(self.edges(Lookup::some(Target::UnnotifiedFrom(up, generation), limit), limit, written, |edge| {
            edge.down
        }))
    }

    fn edges_to(
        &mut self,
        down: TaskId,
        state: Option<EdgeState>,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<Edge>, StateError> {
        let is_included = |edge: &&Edge| state.is_none_or(|state| edge.state == state);
        let written = self.written.edges_to(down, after).filter(is_included).take(limit as usize);
        let written = written.cloned().collect();
        Ok(self.edges(Lookup::some(Target::To(down, state, after), limit), limit, written, |edge| edge.up))
    }

    fn has_pending(&mut self, down: TaskId) -> Result<bool, StateError> {
        if self.written.edges_to(down, None).any(|edge| edge.state.is_pending()) {
            return Ok(true);
        }
        let lookup = Lookup::some(Target::Pending(down), READ_AHEAD_ROWS);
        Ok(!self.edges(lookup, 1, Vec::new(), |edge| edge.up).is_empty())
    }

    fn presence(&mut self, worker: WorkerId) -> Result<Option<Presence>, StateError> {
        if let Some(presence) = self.written.presences.get(&worker) {
            return Ok(presence.clone());
        }
        let presence: Option<Box<Presence>> = one!(self, Target::Presence(worker), Presence);
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
        limit: u32,
    ) -> Result<Vec<Presence>, StateError> {
        let mut ended = self.leases();
        ended.retain(|lease| lease.ends <= until && lease.cleared == cleared);
        ended.sort_by_key(|lease| (lease.ends, lease.worker));
        ended.truncate(limit as usize);
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
        let mut all = all!(self, Target::Presences, Presences, self.written.presences, worker);
        all.extend(self.written.presences.values().flatten().cloned());
        all.sort_by_key(worker);
        Ok(all)
    }

    fn kind(&mut self, kind: &Kind) -> Result<Option<KindRow>, StateError> {
        match self.written.kinds.get(kind) {
            Some(row) => Ok(Some(row.clone())),
            None => match self.read_set.get(&Target::Kinds) {
                Some(LookupResult::Kinds(rows)) => Ok(rows.iter().find(|row| row.kind == *kind).cloned()),
                _ => Ok(one!(self, Target::Kind(kind.clone()), Kind)),
            },
        }
    }

    fn put_kind(&mut self, row: &KindRow) -> Result<(), StateError> {
        self.written.kinds.insert(row.kind.clone(), row.clone());
        Ok(())
    }

    fn kinds(&mut self) -> Result<Vec<KindRow>, StateError> {
        let kind = |row: &KindRow| row.kind.clone();
        let mut all = all!(self, Target::Kinds, Kinds, self.written.kinds, kind);
        all.extend(self.written.kinds.values().cloned());
        all.sort_by_key(kind);
        Ok(all)
    }

    fn key(&mut self, key: &Key) -> Result<Option<KeyRow>, StateError> {
        match self.written.keys.get(key) {
            Some(row) => Ok(row.clone()),
            None => Ok(one!(self, Target::Key(key.clone()), Key)),
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

    fn paused_keys(&mut self, limit: u32) -> Result<Vec<KeyRow>, StateError> {
        Ok(self.some_keys(Target::PausedKeys, limit, |row| row.limit == Some(0)))
    }

    fn keys_to_rebalance(&mut self, limit: u32) -> Result<Vec<KeyRow>, StateError> {
        Ok(self.some_keys(Target::KeysToRebalance, limit, |row| row.needs_rebalancing))
    }

    fn schedule(&mut self, name: &Key) -> Result<Option<Schedule>, StateError> {
        if let Some(schedule) = self.written.schedules.get(name) {
            return Ok(schedule.clone());
        }
        let schedule: Option<Box<Schedule>> = one!(self, Target::Schedule(name.clone()), Schedule);
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
        let mut all = all!(self, Target::Schedules, Schedules, self.written.schedules, name);
        all.extend(self.written.schedules.values().flatten().cloned());
        all.sort_by_key(name);
        Ok(all)
    }

    fn count(&mut self, kind: &Kind, counted: Counted, more: i64) -> Result<(), StateError> {
        *self.written.counts.entry((kind.clone(), counted)).or_default() += more;
        Ok(())
    }

    fn miscounted(&mut self) -> Result<Vec<Corrected>, StateError> {
        match self.look_up(&Lookup::some(Target::Miscounted, u32::MAX)) {
            Some(LookupResult::Miscounted(result)) => Ok(result.clone()),
            _ => Ok(Vec::new()),
        }
    }

    fn counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, StateError> {
        let lookup = Lookup::some(Target::Counts, u32::MAX);
        let mut counts = match self.look_up(&lookup) {
            Some(LookupResult::Counts(counts)) => counts.clone(),
            _ => Vec::new(),
        };
        for ((kind, counted), &more) in &self.written.counts {
            match counts.iter_mut().find(|(of_kind, what, _)| of_kind == kind && what == counted) {
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
        match self.look_up(&Lookup::some(Target::Times(kind.clone(), from), u32::MAX)) {
            Some(LookupResult::Times(times)) => Ok(times.clone()),
            _ => Ok(Vec::new()),
        }
    }

    fn forget_times(&mut self, hours: u32, days: u32) -> Result<(), StateError> {
        self.written.first_times = Some((hours, days));
        Ok(())
    }

    fn put_event(&mut self, event: &Event) -> Result<(), StateError> {
        self.written.events.push(event.clone());
        Ok(())
    }

    fn events(&mut self, after: u64, limit: u32) -> Result<Vec<(u64, Event)>, StateError> {
        let lookup = Lookup::some(Target::Events(after), limit);
        let Some((_, page_limit, LookupResult::Events(events))) = self.page(&lookup) else {
            return Ok(Vec::new());
        };
        if page_limit < limit && events.len() >= page_limit as usize {
            self.miss(lookup);
        }
        Ok(events.iter().take(limit as usize).cloned().collect())
    }

    fn last_event(&mut self) -> Result<u64, StateError> {
        match self.look_up(&Lookup::one(Target::LastEvent)) {
            Some(&LookupResult::Number(number)) => Ok(number),
            _ => Ok(0),
        }
    }

    fn forget_events(&mut self, before: Micros, limit: u32) -> Result<(), StateError> {
        self.written.first_event = Some((before, limit));
        Ok(())
    }

    fn notify(&mut self) -> Result<(), StateError> {
        self.written.notifies = true;
        Ok(())
    }
}

fn listed<'w>(tasks: Vec<&'w Task>) -> Box<dyn Iterator<Item = &'w Task> + 'w> {
    Box::new(tasks.into_iter())
}
