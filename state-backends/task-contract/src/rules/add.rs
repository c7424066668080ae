//! Adding decides no gate at which another task waits, so that an application's open transaction
//! blocks no task.

use std::collections::{HashMap, HashSet};

use interval_queue_contract::{Micros, StateError, StateErrorKind};

use super::{Work, refused};
use crate::{
    Add, Added, Edge, EdgeState, Json, LATE_ADD, NewTask, Nominal, OnConflict, Refusal, Reply, Rows, State,
    Task, TaskId, When,
};

impl<R: Rows> Work<'_, R> {
    pub(super) fn add(&mut self, add: &Add) -> Result<Reply, R::Error> {
        Ok(Reply::Added(self.add_all(add, &[])?))
    }

    /// Adds all tasks or none. `nominal`: the instants of tasks that a schedule makes.
    pub(super) fn add_all(&mut self, add: &Add, nominal: &[Nominal]) -> Result<Vec<Added>, R::Error> {
        let mut added = Vec::with_capacity(add.tasks.len());
        // For each task kept out by its unique name, the stored task.
        let mut stands: HashMap<TaskId, TaskId> = HashMap::new();
        for (position, (at, new)) in (add.sequence..).zip(add.tasks.iter().enumerate()) {
            let one = self.add_one(new, add.age, position, nominal.get(at), &stands)?;
            if one.id() != new.id {
                stands.insert(new.id, one.id());
            }
            added.push(one);
        }
        self.notifies |= added.iter().any(|added| matches!(added, Added::New(_) | Added::Replaced(_)));
        Ok(added)
    }

    fn add_one(
        &mut self,
        new: &NewTask,
        age: Micros,
        position: u32,
        nominal: Option<&Nominal>,
        stands: &HashMap<TaskId, TaskId>,
    ) -> Result<Added, R::Error> {
        self.check_size(new.id, &new.payload)?;
        if self.rows.task(new.id)?.is_some() {
            return Ok(Added::Again(new.id));
        }
        if age > LATE_ADD {
            return Err(refused(Refusal::Late(new.id, age)));
        }
        if let Some(unique) = &new.unique
            && let Some(holder) = self.rows.by_name(&unique.name)?
        {
            match new.on_conflict {
                OnConflict::Refuse => {
                    return Err(refused(Refusal::NameTaken(holder.id, unique.name.clone(), holder.state)));
                }
                OnConflict::Replace if holder.state != State::Leased => {
                    self.replace(&holder, new)?;
                    self.remember_replacing(new, position, nominal, holder.id)?;
                    return Ok(Added::Replaced(holder.id));
                }
                OnConflict::Keep | OnConflict::Replace => return Ok(Added::Kept(holder.id)),
            }
        }
        let mut named = HashSet::with_capacity(new.edges.len());
        for edge in &new.edges {
            let up = *stands.get(&edge.up).unwrap_or(&edge.up);
            if self.rows.task(up)?.is_none_or(|up| up.state == State::Purged) {
                return Err(refused(Refusal::NoUpstream(new.id, up)));
            }
            // A stored task may replace several upstreams.
            if !named.insert(up) {
                continue;
            }
            let (name, on_failure) = (edge.name.clone(), edge.on_failure);
            self.rows.insert_edge(&Edge {
                up,
                down: new.id,
                name,
                on_failure,
                state: EdgeState::New,
                generation: 0,
            })?;
        }
        let task = Task { position, ..self.made_of(new, nominal) };
        self.insert(&task, &new.payload)?;
        self.count_added(&task.kind)?;
        Ok(Added::New(new.id))
    }

    /// Keeps the id of a task that replaced another one: a repeated `add` must not replace again,
    /// nor add it after the end.
    fn remember_replacing(
        &mut self,
        new: &NewTask,
        position: u32,
        nominal: Option<&Nominal>,
        holder: TaskId,
    ) -> Result<(), R::Error> {
        let kept = Task {
            position,
            state: State::Purged,
            holds_name: false,
            has_edges: false,
            ended: Some(self.now),
            ended_lease_clock: Some(self.lease_clock),
            notified: true,
            error: Some(format!("it was put in the place of task {holder}")),
            ..self.made_of(new, nominal)
        };
        self.insert(&kept, &Json::default())?;
        self.rows.put_payload(kept.id, None)
    }

    fn made_of(&self, new: &NewTask, nominal: Option<&Nominal>) -> Task {
        let added = self.adding_time();
        // So that it does not wait if the clock steps back before admission.
        let at_once = new.not_before == When::default();
        let not_before = if at_once { Micros::ZERO } else { new.not_before.on(self.now) };
        let mut task = Task {
            kind: new.kind.clone(),
            priority: new.priority,
            key: new.key.clone(),
            ordered: new.ordered,
            unique: new.unique.clone(),
            holds_name: new.unique.is_some(),
            weight: new.weight,
            tags: new.tags.clone(),
            trace: new.trace.clone(),
            deadline: new.deadline.map(|deadline| deadline.on(self.now)),
            not_before,
            policy: new.policy,
            added,
            has_edges: !new.edges.is_empty(),
            schedule: nominal.cloned(),
            ..Task::bare(new.id)
        };
        self.make_due(&mut task);
        if !task.has_edges && not_before > self.now {
            task.state = State::Scheduled;
        } else if !task.has_edges && task.key.is_none() {
            task.state = State::Ready;
        }
        task
    }

    fn make_due(&self, x: &mut Task) {
        x.due = self.due(x, x.not_before);
    }

    pub(super) fn due(&self, x: &Task, not_before: Micros) -> i64 {
        let from = i64::try_from(x.added.max(not_before).get()).unwrap_or(i64::MAX);
        let ageing = i64::try_from(self.queue.settings.ageing.get()).unwrap_or(i64::MAX);
        // Some stores have no larger exact integers.
        from.saturating_sub(i64::from(x.priority).saturating_mul(ageing)).min(Micros::MAX.get().cast_signed())
    }

    pub(super) fn check_size(&self, id: TaskId, payload: &Json) -> Result<(), R::Error> {
        let (size, most) = (payload.as_str().len(), self.queue.settings.max_payload);
        if size <= most as usize {
            return Ok(());
        }
        Err(refused(Refusal::TooLarge(id, size as u64, most)))
    }

    pub(super) fn edit(&mut self, new: &NewTask) -> Result<bool, R::Error> {
        let stored = self.rows.task(new.id)?;
        let Some(x) = stored.filter(|x| !x.state.is_ended() && x.state != State::Leased) else {
            return Ok(false);
        };
        self.check_size(new.id, &new.payload)?;
        let mut of_new = self.made_of(new, None);
        let is_same = x.kind == of_new.kind
            && x.priority == of_new.priority
            && (&x.key, x.ordered) == (&of_new.key, of_new.ordered)
            && x.unique == of_new.unique
            && (x.weight, &x.tags) == (of_new.weight, &of_new.tags)
            && (x.deadline, x.not_before, x.policy) == (of_new.deadline, of_new.not_before, of_new.policy);
        if is_same {
            return Ok(false);
        }
        of_new.holds_name = x.holds_name && x.unique == of_new.unique;
        if let Some(unique) = of_new.unique.as_ref().filter(|_| x.unique != of_new.unique) {
            if let Some(holder) = self.rows.by_name(&unique.name)?.filter(|holder| holder.id != x.id) {
                let text = format!("task {} has the unique name {:?}", holder.id, unique.name.as_str());
                return Err(StateError::new(StateErrorKind::Conflict, text).into());
            }
            of_new.holds_name = true;
        }
        self.rows.put_payload(x.id, Some(&new.payload))?;
        self.become_so(&x, of_new)?;
        self.notifies = true;
        Ok(true)
    }

    fn replace(&mut self, before: &Task, new: &NewTask) -> Result<(), R::Error> {
        let of_new = self.made_of(new, None);
        self.rows.put_payload(before.id, Some(&new.payload))?;
        self.become_so(before, of_new)
    }

    fn become_so(&mut self, before: &Task, of_new: Task) -> Result<(), R::Error> {
        let mut x = Task {
            id: before.id,
            added: before.added,
            position: before.position,
            token: before.token,
            generation: before.generation,
            has_edges: before.has_edges,
            schedule: before.schedule.clone(),
            state: State::Added,
            worker: before.worker,
            leased: before.leased,
            history: before.history.clone(),
            ..of_new
        };
        self.make_due(&mut x);
        self.save(before, &x)?;
        self.free(before, &x)
    }
}
