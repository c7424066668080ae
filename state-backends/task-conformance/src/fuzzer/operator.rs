//! The operator: opens the queue, cancels, retries, pauses and changes limits.

use interval_queue_contract::{MaxRunning, OnExisting};
use interval_queue_task_contract::{
    Change, ChangeTasks, Command, EdgeState, Json, KEEP_IDS, Keep, NewEdge, NewSchedule, OnFailure, Selector,
    SettingsChange, State, Task, TaskId, Verb,
};

use super::{
    Event, Fuzzer, Message, Sender,
    plan::{key, kinds, pick, seconds, tag},
};

/// First nominal instant of the schedule, and its interval, in seconds.
pub(super) const FIRST_INSTANT: u64 = 35;
pub(super) const SCHEDULE_INTERVAL: u64 = 70;

impl Fuzzer {
    pub(super) fn open(&mut self) {
        let max_running = self.plan.max_running.map_or(MaxRunning::Unlimited, MaxRunning::AtMost);
        let keep = Keep { done: KEEP_IDS, failed: KEEP_IDS, cancelled: KEEP_IDS, ..Keep::default() };
        let settings = SettingsChange {
            max_running,
            key_limit: Some(self.plan.key_limit),
            ageing: Some(seconds(1_000)),
            keep: Some(keep),
            ..SettingsChange::default()
        };
        let schedule = NewSchedule {
            name: key("tick"),
            definition: Json::default(),
            next: Some(self.plan.clock(0) + seconds(FIRST_INSTANT)),
            paused: false,
            overlap: self.plan.overlap,
        };
        for change in [Change::Open(settings, OnExisting::Fail), Change::Schedule(schedule)] {
            self.at(0, Event::Arrive(Message { from: Sender::Operator, command: Command::Change(change) }));
        }
    }

    pub(super) fn operate(&mut self) {
        if !self.has_faults {
            self.retry_what_is_waited_for();
        } else if self.plan.operated {
            let change = self.some_change();
            if let Some((after, undo)) = self.undo(&change) {
                let at = self.now + after;
                let command = Command::Change(undo);
                self.at(at, Event::Arrive(Message { from: Sender::Operator, command }));
            }
            self.send(Sender::Operator, Command::Change(change), 0.0);
        }
        let at = self.now + self.rng.u64(20..=200);
        self.at(at, Event::Operate);
    }

    fn some_change(&mut self) -> Change {
        let rng = &mut self.rng;
        match rng.u8(..20) {
            0..13 => {
                let ids: Vec<TaskId> = self.stored.tasks.keys().copied().collect();
                let verb = match rng.u8(..13) {
                    9 | 10 if !ids.is_empty() => {
                        let on_failure = pick(rng, &[OnFailure::Cancel, OnFailure::Run, OnFailure::Wait]);
                        Verb::Link(NewEdge { up: pick(rng, &ids), name: None, on_failure })
                    }
                    11 if !ids.is_empty() => Verb::Unlink(pick(rng, &ids)),
                    0 | 1 => Verb::Cancel,
                    2..5 => Verb::Retry,
                    5 => Verb::Release,
                    6 => Verb::Delay(seconds(rng.u64(..60))),
                    7 => Verb::Priority(rng.i32(-2..3)),
                    8 => pick(rng, &[Verb::Tag(tag("blue")), Verb::Untag(tag("blue"))]),
                    _ => Verb::Purge,
                };
                let selector = match rng.u8(..8) {
                    0 => Selector { kinds: vec![pick(rng, &kinds())], ..Selector::default() },
                    1 => Selector { key: Some(key("a")), ..Selector::default() },
                    2 => Selector { unique: Some(key("u")), ..Selector::default() },
                    3 => Selector::states([pick(rng, &State::ALL)]),
                    _ if ids.is_empty() => Selector::default(),
                    _ => Selector::ids([pick(rng, &ids)]),
                };
                let limit = pick(rng, &[1, 3, 1000]);
                tasks(selector, verb, limit)
            }
            13 | 14 => Change::Set(SettingsChange {
                max_running: pick(
                    rng,
                    &[MaxRunning::AtMost(1), MaxRunning::AtMost(3), MaxRunning::Unlimited],
                ),
                key_limit: Some(rng.u32(1..=3)),
                ..SettingsChange::default()
            }),
            15 | 16 => {
                Change::Key(key(pick(rng, &["a", "b", "Δ c"])), pick(rng, &[None, Some(0), Some(1), Some(2)]))
            }
            17 | 18 => Change::Kind(pick(rng, &kinds()), true),
            _ => Change::Pause,
        }
    }

    /// The change that ends a pause later.
    fn undo(&mut self, change: &Change) -> Option<(u64, Change)> {
        let after = self.rng.u64(10..=300);
        match change {
            Change::Kind(kind, true) => Some((after, Change::Kind(kind.clone(), false))),
            Change::Key(key, Some(0)) => Some((after, Change::Key(key.clone(), None))),
            Change::Pause => Some((after, Change::Resume)),
            _ => None,
        }
    }

    /// Ends the faults: resumes everything paused and starts a worker of all kinds.
    pub(super) fn recover(&mut self) {
        self.has_faults = false;
        let mut changes = vec![Change::Resume, Change::Unschedule(key("tick"))];
        changes.extend(kinds().into_iter().map(|kind| Change::Kind(kind, false)));
        changes.extend(["a", "b", "Δ c"].map(|name| Change::Key(key(name), None)));
        for change in changes {
            // After all temporary pauses.
            self.at(
                self.now + 400,
                Event::Arrive(Message { from: Sender::Operator, command: Command::Change(change) }),
            );
        }
        self.start_worker(true);
    }

    /// Retries failed tasks that others wait for, and the tasks that had cancelled those by
    /// failing.
    fn retry_what_is_waited_for(&mut self) {
        let ups = |id: TaskId, state: EdgeState| {
            let edges =
                self.stored.tasks.get(&id).map(|stored| stored.upstreams.as_slice()).unwrap_or_default();
            edges.iter().filter(move |edge| edge.state == state).map(|edge| edge.up)
        };
        let waiting = self.stored.rows().filter(|x| x.state == State::Waiting);
        let mut to_retry: Vec<TaskId> = waiting.flat_map(|x| ups(x.id, EdgeState::Held)).collect();
        let mut at = 0;
        while let Some(&id) = to_retry.get(at) {
            let more: Vec<_> = ups(id, EdgeState::Cut).chain(ups(id, EdgeState::Held)).collect();
            to_retry.extend(more.into_iter().filter(|up| !to_retry.contains(up)).collect::<Vec<_>>());
            at += 1;
        }
        for id in to_retry.into_iter().rev() {
            if let Some(holder) = self.waiting_holder(id) {
                let cancel = tasks(Selector::ids([holder]), Verb::Cancel, 1);
                self.send(Sender::Operator, Command::Change(cancel), 0.0);
            }
            self.send(Sender::Operator, Command::Change(tasks(Selector::ids([id]), Verb::Retry, 1)), 0.0);
        }
    }

    /// A waiting task with the unique name of `of`, to cancel before a retry: it may wait for `of`.
    fn waiting_holder(&self, of: TaskId) -> Option<TaskId> {
        let name = &self.stored.tasks.get(&of)?.task.unique.as_ref()?.name;
        let has_name = |x: &&Task| x.unique.as_ref().is_some_and(|unique| unique.name == *name);
        let mut waiting = self.stored.rows().filter(|x| x.holds_name && x.state == State::Waiting);
        waiting.find(has_name).map(|x| x.id)
    }
}

fn tasks(selector: Selector, verb: Verb, limit: u32) -> Change {
    Change::Tasks(ChangeTasks { selector, verb, after: None, watermark: None, limit, dry_run: false })
}
