//! Packs commands for the script, each as one table. The heads of the Lua files document them.

use interval_queue_contract::{InvalidInput, MaxRunning, Micros, OnExisting, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Change, ChangeTasks, Command, Cursor, Fire, Follow, NewEdge, NewSchedule, NewTask, OnConflict, Outcome,
    Policy, PolicyOverride, Progress, Read, Selector, SettingsChange, State, Step, TaskId, Token, Until,
    Verb, When,
};

use super::{
    imported,
    pack::{Fields, Packer},
    take::{ON_FAILURES, OVERLAPS},
};

/// A packed command.
///
/// # Errors
///
/// The command breaks a bound, or is of a kind that this version does not know.
pub(crate) fn packed(command: &Command) -> Result<Vec<u8>, StateError> {
    command.check()?;
    check_numbers(command)?;
    let mut packer = Packer::default();
    let mut known = Ok(());
    packer.table(|fields| match command {
        Command::Add(add) => fields.field("add").table(|fields| {
            fields.field("tasks").list(add.tasks.iter(), |packer, task| match is_plain(task) {
                true => packer.list(0..3, |packer, n| match n {
                    0 => id(packer, &task.id),
                    1 => packer.text(task.kind.as_str()),
                    _ => packer.text(task.payload.as_str()),
                }),
                false => new_task(packer, task),
            });
            fields.int("age", micros(add.age));
            fields.int("sequence", add.sequence);
        }),
        Command::Step(step) => fields.field("step").table(|fields| self::step(fields, step)),
        Command::Change(change) => {
            fields.field("change").table(|fields| known = self::change(fields, change))
        }
        Command::Fire(fire) => fields.field("fire").table(|fields| self::fire(fields, fire)),
        Command::Import(tasks) => fields.field("import").list(tasks.iter(), imported::pack),
        Command::Follow(follow) => fields.field("follow").table(|fields| {
            if let Some(mark) = follow.after {
                fields.int("number", exact(mark.number));
                fields.int("at", micros(mark.at));
            }
            fields.int("most", follow.most);
        }),
        Command::Read(read) => fields.field("read").table(|fields| known = self::read(fields, read)),
        _ => known = Err(unknown("command")),
    });
    known.map(|()| packer.bytes())
}

/// Lua represents larger integers inexactly.
fn check_numbers(command: &Command) -> Result<(), InvalidInput> {
    let exact = |what: &str, number: u64| match number {
        _ if number <= Micros::MAX.get() => Ok(()),
        _ => {
            let text = format!("{what} {number} is out of range: at most {}", Micros::MAX.get());
            Err(InvalidInput::new(text))
        }
    };
    match command {
        Command::Step(step) => {
            exact("sequence number", step.sequence)?;
            exact("acknowledged number", step.acknowledged)
        }
        Command::Fire(fire) => exact("revision", fire.revision),
        Command::Follow(Follow { after: Some(mark), .. }) => exact("number of an event", mark.number),
        _ => Ok(()),
    }
}

/// The error for an addition of a later version of the contract.
fn unknown(what: &str) -> StateError {
    let text = format!("this version of interval-queue-redis does not know the {what}: upgrade it");
    StateError::new(StateErrorKind::Unsupported, text)
}

pub(super) fn micros(micros: Micros) -> i64 {
    // At most 2^53 - 1.
    micros.get() as i64
}

fn exact(number: u64) -> i64 {
    // Checked before.
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn id(packer: &mut Packer, id: &TaskId) {
    packer.text(id.uuid().as_bytes());
}

fn policy(packer: &mut Packer, policy: &Policy) {
    parts_of_policy(
        packer,
        [
            Some(policy.max_attempts.into()),
            Some(policy.max_retries.into()),
            Some(micros(policy.backoff)),
            Some(micros(policy.max_backoff)),
            policy.timeout.map(micros),
        ],
    );
}

/// The policy of a task, unless it sets nothing itself.
pub(super) fn own_policy(fields: &mut Fields<'_>, own: &PolicyOverride) {
    if !own.is_empty() {
        parts_set(fields.field("policy"), own);
    }
}

fn parts_set(packer: &mut Packer, own: &PolicyOverride) {
    parts_of_policy(
        packer,
        [
            own.max_attempts.map(i64::from),
            own.max_retries.map(i64::from),
            own.backoff.map(micros),
            own.max_backoff.map(micros),
            own.timeout.map(micros),
        ],
    );
}

fn parts_of_policy(packer: &mut Packer, parts: [Option<i64>; 5]) {
    packer.list(parts, |packer, part| match part {
        Some(number) => packer.int(number),
        None => packer.flag(false),
    });
}

fn when(fields: &mut Fields<'_>, when: When, [delay, at]: [&str; 2]) {
    match when {
        When::After(by) => fields.int(delay, micros(by)),
        When::At(instant) => fields.int(at, micros(instant)),
    }
}

/// Whether the task has only its kind and its payload.
fn is_plain(task: &NewTask) -> bool {
    task.priority == 0
        && task.key.is_none()
        && !task.ordered
        && task.unique.is_none()
        && task.not_before == When::default()
        && task.deadline.is_none()
        && task.policy.is_empty()
        && task.weight == 1
        && task.tags.is_empty()
        && task.trace.is_none()
        && task.edges.is_empty()
}

fn new_task(packer: &mut Packer, task: &NewTask) {
    packer.table(|fields| {
        fields.text("id", task.id.uuid().as_bytes());
        fields.text("kind", task.kind.as_str());
        fields.text("payload", task.payload.as_str());
        fields.some_int("priority", Some(task.priority).filter(|&priority| priority != 0));
        fields.some_text("key", task.key.as_ref().map(|key| key.as_str()));
        fields.flag("ordered", task.ordered);
        if let Some(unique) = &task.unique {
            fields.text("unique", unique.name.as_str());
            fields.some_int("name_until", (unique.until == Until::Leased).then_some(1));
        }
        match task.on_conflict {
            OnConflict::Keep => {}
            OnConflict::Replace => fields.text("on_conflict", "replace"),
            OnConflict::Refuse => fields.text("on_conflict", "refuse"),
        }
        // A task for now does not wait, whatever the clock does.
        if task.not_before != When::default() {
            when(fields, task.not_before, ["delay", "at"]);
        }
        if let Some(deadline) = task.deadline {
            when(fields, deadline, ["deadline_delay", "deadline_at"]);
        }
        own_policy(fields, &task.policy);
        fields.some_int("weight", Some(task.weight).filter(|&weight| weight != 1));
        if !task.tags.is_empty() {
            fields.field("tags").list(&task.tags, |packer, tag| packer.text(tag.as_str()));
        }
        fields.some_text("trace", task.trace.as_ref().map(|trace| trace.as_str()));
        if !task.edges.is_empty() {
            fields.field("edges").list(&task.edges, edge);
        }
    });
}

pub(super) fn edge(packer: &mut Packer, edge: &NewEdge) {
    packer.list(0..3, |packer, n| match (n, &edge.name) {
        (0, _) => id(packer, &edge.up),
        (1, Some(name)) => packer.text(name.as_str()),
        (1, None) => packer.flag(false),
        _ => packer.int(number_of(&ON_FAILURES, edge.on_failure)),
    });
}

pub(super) fn number_of<T: PartialEq>(all: &[T], one: T) -> i64 {
    all.iter().position(|other| *other == one).map_or(-1, |at| at as i64)
}

/// A run: its id and token, followed by `more` values.
fn run(packer: &mut Packer, of: (&TaskId, &Token), more: usize, mut pack: impl FnMut(&mut Packer, usize)) {
    packer.list(0..3 + more, |packer, n| match n {
        0 => id(packer, of.0),
        1 => packer.int(micros(of.1.incarnation)),
        2 => packer.int(of.1.attempt),
        n => pack(packer, n - 3),
    });
}

fn step(fields: &mut Fields<'_>, step: &Step) {
    fields.text("worker", step.worker.uuid().as_bytes());
    fields.text("label", step.label.as_str());
    fields.int("sequence", exact(step.sequence));
    fields.int("acknowledged", exact(step.acknowledged));
    fields.int("lease", micros(step.lease));
    fields.field("kinds").list(&step.kinds, |packer, kind| packer.text(kind.as_str()));
    fields.field("complete").list(&step.complete, |packer, completion| {
        let (word, after, text) = outcome(&completion.outcome);
        let words = 1 + usize::from(after.is_some()) + usize::from(text.is_some());
        run(packer, (&completion.id, &completion.token), words, |packer, n| match (n, after, text) {
            (0, ..) => packer.text(word),
            (1, Some(after), _) => packer.int(micros(after)),
            (_, _, text) => packer.text(text.unwrap_or_default()),
        });
    });
    if let Some(holding) = &step.held {
        let held =
            |packer: &mut Packer, (id, token): &(TaskId, Token)| run(packer, (id, token), 0, |_, _| {});
        fields.field("holding").list(holding, held);
    }
    fields.field("progress").list(&step.progress, |packer, (id, token, progress)| {
        run(packer, (id, token), 1, |packer, _| packer.text(self::progress(progress)));
    });
    if !step.log.is_empty() {
        fields.field("log").list(&step.log, |packer, log| {
            run(packer, (&log.id, &log.token), log.lines.len() * 3, |packer, n| {
                let line = &log.lines[n / 3];
                match n % 3 {
                    0 => packer.int(line.number),
                    1 => packer.int(micros(line.age)),
                    _ => packer.text(&line.text),
                }
            });
        });
    }
    fields.int("want", step.want);
    fields.int("ahead", step.ahead);
    fields.some_int("at_least", step.at_least);
    if let Some(room) = step.free_capacity {
        fields.int("room", room.weight);
        fields.flag("empty", room.empty);
    }
}

/// The word, the wait and the text of an outcome. An unknown outcome changes only the lease.
fn outcome(outcome: &Outcome) -> (&'static str, Option<Micros>, Option<&str>) {
    match outcome {
        Outcome::Done(result) => ("done", None, Some(result.as_str())),
        Outcome::Error(why) => ("error", None, Some(why)),
        Outcome::Retry(after, why) => ("retry", Some(*after), Some(why)),
        Outcome::Failed(why) => ("failed", None, Some(why)),
        Outcome::Unable(why) => ("unable", None, Some(why)),
        Outcome::Exchanged => ("exchanged", None, None),
        _ => ("released", None, None),
    }
}

/// Packed as bytes: no rule reads it, and its numbers may exceed those of Lua.
pub(super) fn progress(progress: &Progress) -> Vec<u8> {
    [&progress.done.to_be_bytes()[..], &progress.total.to_be_bytes(), progress.text.as_bytes()].concat()
}

fn settings(fields: &mut Fields<'_>, change: &SettingsChange) {
    match change.max_running {
        MaxRunning::AtMost(limit) => fields.int("max_running", limit),
        MaxRunning::Unlimited => fields.int("max_running", 0),
        _ => {}
    }
    fields.some_int("key_limit", change.key_limit);
    fields.some_int("ageing", change.ageing.map(micros));
    if let Some(keep) = &change.keep {
        let keeps = [keep.done, keep.failed, keep.cancelled].map(|keep| Some(micros(keep)));
        let most = [keep.most_done, keep.most_failed, keep.most_cancelled].map(|most| most.map(i64::from));
        fields.field("keep").list([keeps, most].concat(), |packer, number| match number {
            Some(number) => packer.int(number),
            None => packer.flag(false),
        });
    }
    fields.some_int("max_payload", change.max_payload);
    if let Some(of_queue) = &change.policy {
        policy(fields.field("policy"), of_queue);
    }
    if !change.kinds.is_empty() {
        fields.field("kinds").table(|fields| {
            for (kind, own) in &change.kinds {
                match fields.field(kind.as_str()) {
                    packer if own.is_empty() => packer.flag(false),
                    packer => parts_set(packer, own),
                }
            }
        });
    }
}

fn change(fields: &mut Fields<'_>, change: &Change) -> Result<(), StateError> {
    match change {
        Change::Open(changed, on_existing) => {
            let word = match on_existing {
                OnExisting::Fail => "fail",
                OnExisting::Replace | OnExisting::Reset => "replace",
                OnExisting::Keep => "keep",
                _ => return Err(unknown("policy for a queue that is there")),
            };
            fields.text("what", "open");
            fields.field("settings").table(|fields| settings(fields, changed));
            fields.text("on_existing", word);
        }
        Change::Set(changed) => {
            fields.text("what", "set");
            fields.field("settings").table(|fields| settings(fields, changed));
        }
        Change::Pause => fields.text("what", "pause"),
        Change::Resume => fields.text("what", "resume"),
        Change::Kind(kind, paused) => {
            fields.text("what", "kind");
            fields.text("kind", kind.as_str());
            fields.flag("paused", *paused);
        }
        Change::Key(key, limit) => {
            fields.text("what", "key");
            fields.text("key", key.as_str());
            fields.some_int("limit", *limit);
        }
        Change::Tasks(change) => change_tasks(fields, change),
        Change::Recount => fields.text("what", "recount"),
        Change::DeclareLost(worker) => {
            fields.text("what", "lost");
            fields.text("worker", worker.uuid().as_bytes());
        }
        Change::Note(task, text) => {
            fields.text("what", "note");
            id(fields.field("task"), task);
            fields.text("text", text);
        }
        Change::Schedule(new) => schedule(fields, new),
        Change::Unschedule(name) => {
            fields.text("what", "unschedule");
            fields.text("name", name.as_str());
        }
        _ => return Err(unknown("change")),
    }
    Ok(())
}

fn change_tasks(fields: &mut Fields<'_>, change: &ChangeTasks) {
    fields.text("what", "tasks");
    fields.field("selector").table(|fields| selector(fields, &change.selector));
    fields.text("verb", change.verb.as_str());
    match &change.verb {
        Verb::Delay(delay) => fields.int("delay", micros(*delay)),
        Verb::Priority(priority) => fields.int("priority", *priority),
        Verb::Move(to) => fields.text("to", to.as_str()),
        Verb::Link(edge) => self::edge(fields.field("edge"), edge),
        Verb::Unlink(up) => id(fields.field("up"), up),
        Verb::Tag(tag) | Verb::Untag(tag) => fields.text("tag", tag.as_str()),
        _ => {}
    }
    cursor(fields, change.after);
    fields.some_int("watermark", change.watermark.map(micros));
    fields.int("limit", change.limit);
    fields.flag("dry_run", change.dry_run);
}

fn selector(fields: &mut Fields<'_>, selector: &Selector) {
    fields.field("ids").list(&selector.ids, id);
    fields.field("kinds").list(&selector.kinds, |packer, kind| packer.text(kind.as_str()));
    fields.field("states").list(&selector.states, |packer, state| packer.int(number_of(&State::ALL, *state)));
    fields.some_text("key", selector.key.as_ref().map(|key| key.as_str()));
    fields.some_text("unique", selector.unique.as_ref().map(|name| name.as_str()));
    fields.field("tags").list(&selector.tags, |packer, tag| packer.text(tag.as_str()));
    fields.some_text("schedule", selector.schedule.as_ref().map(|name| name.as_str()));
    fields.some_text("id_suffix", selector.id_suffix.as_ref());
    fields.some_text("payload", selector.payload.as_ref());
    fields.some_text("worker", selector.worker.as_ref().map(|worker| worker.uuid().into_bytes()));
    fields.some_text("error", selector.error.as_ref());
    fields.some_int("added_from", selector.added_from.map(micros));
    fields.some_int("added_before", selector.added_before.map(micros));
    fields.some_int("ended_from", selector.ended_from.map(micros));
    fields.some_int("ended_before", selector.ended_before.map(micros));
}

fn cursor(fields: &mut Fields<'_>, after: Option<Cursor>) {
    if let Some(Cursor { order, at, id: before }) = after {
        fields.field("after").table(|fields| {
            fields.text("order", order.as_str());
            fields.int("at", micros(at));
            id(fields.field("id"), &before);
        });
    }
}

fn schedule(fields: &mut Fields<'_>, new: &NewSchedule) {
    let word = OVERLAPS.into_iter().find(|(_, overlap)| *overlap == new.overlap).map(|(word, _)| word);
    fields.text("what", "schedule");
    fields.text("name", new.name.as_str());
    fields.text("definition", new.definition.as_str());
    fields.some_int("next", new.next.map(micros));
    fields.flag("paused", new.paused);
    fields.some_text("overlap", word);
}

fn fire(fields: &mut Fields<'_>, fire: &Fire) {
    fields.text("schedule", fire.schedule.as_str());
    fields.int("revision", exact(fire.revision));
    fields.int("from", micros(fire.from));
    fields.field("made").list(&fire.made, |packer, (at, task)| {
        packer.list(0..2, |packer, n| match n {
            0 => packer.int(micros(*at)),
            _ => new_task(packer, task),
        });
    });
    fields.some_int("next", fire.next.map(micros));
}

fn read(fields: &mut Fields<'_>, read: &Read) -> Result<(), StateError> {
    match read {
        Read::Clock => fields.text("what", "clock"),
        Read::Overview => fields.text("what", "overview"),
        Read::Tasks(ids) => {
            fields.text("what", "tasks");
            fields.field("ids").list(ids, id);
        }
        Read::Count { selector, after } => {
            fields.text("what", "count");
            fields.field("selector").table(|fields| self::selector(fields, selector));
            cursor(fields, *after);
        }
        Read::Page { selector, after, limit, bodies } => {
            fields.text("what", "page");
            fields.field("selector").table(|fields| self::selector(fields, selector));
            cursor(fields, Some(*after));
            fields.int("limit", *limit);
            fields.flag("bodies", *bodies);
        }
        Read::Inputs { down, after } => {
            fields.text("what", "inputs");
            fields.text("down", down.uuid().as_bytes());
            fields.some_text("after", after.as_ref().map(|after| after.uuid().into_bytes()));
        }
        Read::Downstreams { up, after } => {
            fields.text("what", "downstreams");
            fields.text("up", up.uuid().as_bytes());
            fields.some_text("after", after.as_ref().map(|after| after.uuid().into_bytes()));
        }
        Read::Workers => fields.text("what", "workers"),
        Read::Schedules => fields.text("what", "schedules"),
        Read::Times { kind, from } => {
            fields.text("what", "times");
            fields.text("kind", kind.as_str());
            fields.int("from", micros(*from));
        }
        Read::Days { kind, from } => {
            fields.text("what", "days");
            fields.text("kind", kind.as_str());
            fields.int("from", micros(*from));
        }
        Read::Upcoming(limit) => {
            fields.text("what", "line");
            fields.int("limit", i64::from(*limit));
        }
        Read::KeyLimit(key) => {
            fields.text("what", "key_limit");
            fields.text("key", key.as_str());
        }
        Read::Ready(kinds) => {
            fields.text("what", "ready");
            fields.field("kinds").list(kinds, |packer, kind| packer.text(kind.as_str()));
        }
        _ => return Err(unknown("look")),
    }
    Ok(())
}
