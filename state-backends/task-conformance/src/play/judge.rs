//! Holds every command against the promises: what was before, what was said, what is now.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_task_contract::{
    Add, Added, Change, Command, Counted, Fired, Kind, Outcome as End, Overlap, Reply, State, Step, Stepped,
    Task, TaskId, Token, WorkerId,
};

use super::{Outcome, Played, picture::Picture, plan::Plan};

/// Fails the play with a text if something does not hold.
macro_rules! ensure {
    ($holds:expr, $($text:tt)*) => {
        if !$holds {
            return Err(format!($($text)*));
        }
    };
}
pub(super) use ensure;

/// What was seen so far.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) only_outages: bool,
    pub(super) overlap: Overlap,
    pub(super) first_instant: Micros,
    rolled_back: bool,
    /// What was said of keys.
    pub(super) key_limits: BTreeMap<String, u32>,
    /// Whether the last step left no housekeeping, and no limit was changed since.
    pub(super) is_level: bool,
    /// Every lease there was.
    given: HashSet<(TaskId, Token)>,
    /// Every run that a worker began.
    begun: HashSet<(TaskId, Token)>,
    /// Runs of this life of a task that may have done something.
    runs: HashMap<(TaskId, u32), u32>,
    obeyed: HashSet<(WorkerId, u64)>,
    /// What was there once, and when it was gone.
    pub(super) gone: BTreeMap<TaskId, u64>,
    /// What was acknowledged.
    pub(super) accepted: BTreeSet<TaskId>,
    /// New tasks that became of others, whose unique name they have.
    absorbed: HashSet<TaskId>,
    /// When it ended, in seconds of the play.
    ended: HashMap<TaskId, u64>,
    /// The nominal instants that were made.
    pub(super) nominal: BTreeMap<Micros, TaskId>,
    ever: HashMap<(Kind, Counted), u64>,
    tasks: usize,
}

impl Judge {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            only_outages: plan.only_outages,
            overlap: plan.overlap,
            first_instant: plan.clock(0) + super::plan::seconds(super::operator::FIRST),
            rolled_back: false,
            key_limits: BTreeMap::new(),
            is_level: true,
            given: HashSet::new(),
            begun: HashSet::new(),
            runs: HashMap::new(),
            obeyed: HashSet::new(),
            gone: BTreeMap::new(),
            accepted: BTreeSet::new(),
            absorbed: HashSet::new(),
            ended: HashMap::new(),
            nominal: BTreeMap::new(),
            ever: HashMap::new(),
            tasks: 0,
        }
    }

    pub(super) fn played(&self, commands: usize) -> Played {
        Played { tasks: self.tasks, starts: self.begun.len(), commands }
    }

    /// From now on promises hold that a store can keep that has forgotten something.
    pub(super) fn rolled_back(&mut self, now: &Picture) {
        self.rolled_back = true;
        self.is_level = false;
        self.gone.retain(|id, _| !now.tasks.contains_key(id));
        self.ended.clear();
    }

    pub(super) fn was_rolled_back(&self) -> bool {
        self.rolled_back
    }

    pub(super) fn accepted(&mut self, added: &[Added]) {
        self.accepted
            .extend(added.iter().filter(|added| !matches!(added, Added::Again(_))).map(|added| added.id()));
    }

    /// A worker begins a run.
    pub(super) fn begins(&mut self, x: &Task) -> Result<(), String> {
        let is_new = self.begun.insert((x.id, x.token));
        ensure!(is_new, "T2: one token, two starts: task {} at {}", x.id, x.token);
        let runs = self.runs.entry((x.id, x.life)).or_default();
        *runs += 1;
        let most = x.policy.map_or(u32::MAX, |policy| policy.max_attempts);
        ensure!(
            *runs <= most || self.rolled_back,
            "T3: task {} runs {runs} times, and may {most} times",
            x.id
        );
        Ok(())
    }

    pub(super) fn command(
        &mut self,
        now: u64,
        before: &Picture,
        after: &Picture,
        command: &Command,
        outcome: &Outcome,
    ) -> Result<(), String> {
        match (command, outcome) {
            (_, Err(kind)) => {
                ensure!(
                    matches!(
                        kind,
                        StateErrorKind::Superseded | StateErrorKind::Conflict | StateErrorKind::NotFound
                    ),
                    "a command of the play was refused as {kind:?}"
                );
                self.same(before, after)?;
            }
            (Command::Add(add), Ok(Reply::Added(added))) => self.added(before, after, add, added)?,
            (Command::Step(step), Ok(Reply::Stepped(stepped))) => {
                self.stepped(before, after, step, stepped)?
            }
            (Command::Change(change), Ok(_)) => self.changed(change),
            (Command::Fire(fire), Ok(Reply::Fired(fired))) => {
                let made = after.tasks.keys().filter(|id| !before.tasks.contains_key(id)).count();
                ensure!(*fired == Fired::Made || made == 0, "T8: {fired:?}, and {made} tasks are made");
                let is_right = *fired != Fired::Made || made == fire.made.len() || self.rolled_back;
                ensure!(is_right, "T8: {} instants make {made} tasks", fire.made.len());
            }
            (command, Ok(reply)) => return Err(format!("{command:?} was answered by {reply:?}")),
        }
        self.between(now, before, after, command)?;
        self.rows(after)?;
        self.counts(after)?;
        self.keys(before, after)?;
        if let (Command::Step(step), Ok(Reply::Stepped(stepped))) = (command, outcome) {
            self.order(after, step, stepped)?;
        }
        Ok(())
    }

    fn same(&self, before: &Picture, after: &Picture) -> Result<(), String> {
        let different =
            after.tasks.iter().find(|(id, x)| before.tasks.get(id).is_none_or(|was| was.task != x.task));
        ensure!(different.is_none(), "a refused command has changed {different:?}");
        ensure!(before.tasks.len() == after.tasks.len(), "a refused command has removed a task");
        ensure!(before.counts == after.counts, "T10: a refused command has changed what is counted");
        Ok(())
    }

    fn added(&mut self, before: &Picture, after: &Picture, add: &Add, added: &[Added]) -> Result<(), String> {
        for (new, one) in add.tasks.iter().zip(added) {
            let id = one.id();
            let is_again =
                matches!(one, Added::New(_) | Added::Replaced(_)) && self.absorbed.contains(&new.id);
            ensure!(
                !is_again || self.rolled_back,
                "T1: task {} was put in the place of another one before, and a repeated add says {one:?}",
                new.id
            );
            if matches!(one, Added::Replaced(_)) {
                self.absorbed.insert(new.id);
                // What it was has gone, and what it is has not run.
                self.runs.retain(|(of, _), _| *of != id);
            }
            let (was, is) = (before.tasks.contains_key(&id), after.tasks.contains_key(&id));
            ensure!(is, "T1: {one:?}, and it is not there");
            let is_new = added.contains(&Added::New(id));
            let is_right = if matches!(one, Added::New(_)) { !was } else { was || is_new };
            ensure!(is_right, "T1: {one:?}, and it was {}", if was { "there" } else { "not there" });
            ensure!(
                !matches!(one, Added::New(_)) || !self.gone.contains_key(&id) || self.rolled_back,
                "T1: task {id} was run, forgotten, and is added again"
            );
        }
        Ok(())
    }

    fn stepped(
        &mut self,
        before: &Picture,
        after: &Picture,
        step: &Step,
        stepped: &Stepped,
    ) -> Result<(), String> {
        let is_new = self.obeyed.insert((step.worker, step.sequence));
        ensure!(is_new || self.rolled_back, "T2: step {} of {} was obeyed twice", step.sequence, step.worker);
        for settle in &step.settle {
            let is_mine = |x: &Task| {
                x.state == State::Leased && x.worker == Some(step.worker) && x.token == settle.token
            };
            let was_mine = before.task(settle.id).is_some_and(is_mine);
            let is_lost = stepped.lost.contains(&settle.id);
            ensure!(
                was_mine != is_lost || self.rolled_back,
                "T2: task {} at {} was {}in force, and its sender is {}told that it is lost",
                settle.id,
                settle.token,
                if was_mine { "" } else { "not " },
                if is_lost { "" } else { "not " }
            );
            if let (true, Some(was), End::Released | End::Exchanged | End::Retry(..)) =
                (was_mine, before.task(settle.id), &settle.outcome)
                && let Some(runs) = self.runs.get_mut(&(was.id, was.life))
            {
                *runs = runs.saturating_sub(1);
            }
            let left = after.task(settle.id).filter(|x| is_mine(x));
            ensure!(left.is_none(), "T2: task {} was settled, and is leased at {}", settle.id, settle.token);
        }
        for leased in &stepped.leased {
            let x = &leased.task;
            ensure!(
                self.given.insert((x.id, x.token)),
                "T2: token {} of task {} is given out twice",
                x.token,
                x.id
            );
            ensure!(after.task(x.id) == Some(x), "T2: task {} is told otherwise than it is stored", x.id);
            ensure!(
                step.kinds.contains(&x.kind),
                "task {} of kind {} is leased to a worker of others",
                x.id,
                x.kind
            );
            *self.ever.entry((x.kind.clone(), Counted::EverLeased)).or_default() += 1;
        }
        let held = step.holding.iter().flatten().filter(|(id, _)| !stepped.lost.contains(id));
        for (id, token) in held {
            let is_mine = after.task(*id).is_some_and(|x| x.worker == Some(step.worker) && x.token == *token);
            ensure!(
                is_mine,
                "T2: task {id} at {token} is not leased to its worker any more, which is not told so"
            );
        }
        ensure!(
            !stepped.restate || stepped.leased.is_empty(),
            "T2: a step that is to restate is given tasks"
        );
        if !stepped.restate {
            self.is_level = !stepped.more;
        }
        Ok(())
    }

    fn changed(&mut self, change: &Change) {
        match change {
            Change::Key(key, limit) => {
                self.is_level = false;
                match limit {
                    Some(limit) => self.key_limits.insert(key.to_string(), *limit),
                    None => self.key_limits.remove(key.as_str()),
                };
            }
            Change::Set(_) | Change::Kind(..) | Change::Open(..) => self.is_level = false,
            _ => {}
        }
    }

    /// What may become of a task in one command.
    fn between(
        &mut self,
        now: u64,
        before: &Picture,
        after: &Picture,
        command: &Command,
    ) -> Result<(), String> {
        for (id, stored) in &after.tasks {
            let x = &stored.task;
            if let Some(nominal) = &x.schedule
                && !before.tasks.contains_key(id)
            {
                let other = self.nominal.insert(nominal.at, *id);
                ensure!(
                    other.is_none_or(|other| other == *id),
                    "T8: two tasks of one instant: {other:?} and {id}"
                );
            }
            if !before.tasks.contains_key(id) {
                self.tasks += 1;
                self.gone.remove(id);
                if x.state != State::Purged {
                    *self.ever.entry((x.kind.clone(), Counted::EverAdded)).or_default() += 1;
                }
            }
            if x.state.is_ended() {
                self.ended.entry(*id).or_insert(now);
            } else {
                self.ended.remove(id);
            }
        }
        for (id, stored) in &before.tasks {
            let was = &stored.task;
            let Some(x) = after.task(*id) else {
                self.goes(now, was, before, after)?;
                continue;
            };
            ensure!(
                x.token >= was.token,
                "T2: the token of task {id} falls from {} to {}",
                was.token,
                x.token
            );
            ensure!(x.life >= was.life, "T3: the life of task {id} falls");
            let stays = !was.state.is_ended()
                || x.life > was.life
                || x.state == was.state
                || x.state == State::Purged;
            ensure!(stays, "T3: task {id} was {} and is {}", was.state, x.state);
            let is_replaced = matches!(command, Command::Add(_)) && x != was;
            ensure!(
                x.due == was.due || is_replaced,
                "T4: task {id} was due at {} and is at {}",
                was.due,
                x.due
            );
            ensure!(x.added == was.added, "T4: task {id} was added at another time");
            let is_early = was.state == State::Scheduled
                && matches!(x.state, State::Ready | State::Keyed | State::Leased)
                && was.not_before > x.not_before
                && !matches!(command, Command::Change(_))
                && !self.rolled_back;
            ensure!(!is_early, "task {id} runs before its time");
            if self.only_outages && !was.state.is_ended() {
                let died = x.error.as_ref().is_some_and(|error| error.contains("was not heard of"));
                ensure!(!died, "T3: a store out of reach cost a live worker its task {id}");
            }
        }
        Ok(())
    }

    /// A task is not there any more.
    fn goes(&mut self, now: u64, was: &Task, before: &Picture, after: &Picture) -> Result<(), String> {
        let id = was.id;
        ensure!(was.state.is_ended() && was.told, "T1: task {id} was {}, and is gone", was.state);
        if let Some(&ended) = self.ended.get(&id)
            && !self.rolled_back
        {
            // A step of the clock forward counts for a quarter of a lease at most.
            ensure!(now - ended >= 1_200 - 30, "T1: the id of task {id} was kept for {} s only", now - ended);
        }
        let downs = before.tasks.get(&id).map(|stored| stored.downstreams.as_slice()).unwrap_or_default();
        let left = downs.iter().find(|edge| after.tasks.contains_key(&edge.down));
        ensure!(left.is_none(), "T7: task {id} is gone before its downstream {left:?}");
        self.gone.insert(id, now);
        Ok(())
    }

    fn counts(&self, after: &Picture) -> Result<(), String> {
        let mut there: BTreeMap<(Kind, Counted), u64> = BTreeMap::new();
        for x in after.rows() {
            *there.entry((x.kind.clone(), Counted::Now(x.state))).or_default() += 1;
        }
        let now = after.counts.iter().filter(|((_, counted), _)| matches!(counted, Counted::Now(_)));
        let told: BTreeMap<_, _> = now.map(|(what, n)| (what.clone(), *n)).collect();
        ensure!(there == told, "T10: {told:?} are counted, and {there:?} are there");
        if self.rolled_back {
            return Ok(());
        }
        for counted in [Counted::EverAdded, Counted::EverLeased] {
            let told: u64 = after.counts.iter().filter(|((_, of), _)| *of == counted).map(|(_, n)| n).sum();
            let ever: u64 = self.ever.iter().filter(|((_, of), _)| *of == counted).map(|(_, n)| n).sum();
            ensure!(told == ever, "T10: {counted} counts {told}, and there were {ever}");
        }
        Ok(())
    }
}
