//! Adds and completes tasks within a transaction of the application, by SQL functions: see "Adding
//! tasks in SQL" and "Completing runs in SQL" in the migration.

use std::time::{Duration, UNIX_EPOCH};

use interval_queue_contract::{InvalidInput, Micros, QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Add, Added, Command, Completed, Completion, LATE_ADD, NewTask, OnConflict, OnFailure, State, Unique,
    Until, When, WorkerId, late_add, rules::End,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{ApplicationTransaction, PostgresTasks, transaction::Mode};
use crate::store::quoted;

impl PostgresTasks {
    /// Adds tasks within a transaction of the application, on a connection to the same database.
    /// They are stored if it commits, and only then. Workers do not wait for the transaction.
    /// Watchers are notified with the commit. Returns the outcome for each task, in the order of
    /// `add`.
    ///
    /// A missing queue is created at once, and stays even if the transaction is rolled back. The
    /// SQL function `add_task` does the same for other languages: see the [crate's
    /// documentation](crate).
    ///
    /// # Errors
    ///
    /// As for an `add`, and `Invalid` for a task that replaces another, which would have to wait
    /// for workers, and for a connection that is not in a transaction. After an error the
    /// transaction is as before, unless the connection was lost.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, roll back the transaction.
    pub async fn add_within(
        &self,
        transaction: impl ApplicationTransaction,
        queue: &QueueName,
        add: Add,
    ) -> Result<Vec<Added>, StateError> {
        let replaces = |task: &&NewTask| task.unique.is_some() && task.on_conflict == OnConflict::Replace;
        if let Some(task) = add.tasks.iter().find(replaces) {
            let text = format!(
                "task {} would replace another one, and wait for workers with the transaction open: take keep or refuse, or \
                 add it by itself",
                task.id
            );
            return Err(InvalidInput::new(text).into());
        }
        let command = Command::Add(add);
        command.check()?;
        let Command::Add(add) = command else { return Ok(Vec::new()) };
        // If the transaction created the queue, all workers of the queue would wait for its end.
        if self.headers.of(queue).is_none() {
            self.store(Mode::Add, queue, &Command::Add(Add::default())).await?;
        }
        let kinds = list(&add, |task| task.kind.as_str())?;
        let payloads = list(&add, |task| &task.payload)?;
        let options = list(&add, options)?;
        let (sequence, late) = (add.sequence.to_string(), (add.age > LATE_ADD).then(|| late_add(add.age)));
        let sql = format!(
            "SELECT coalesce(json_agg(json_build_object(t.outcome, t.id) ORDER BY t.ordinality), '[]')::text \
             FROM {}.interval_queue_task_add($1, ARRAY(SELECT json_array_elements_text($2::json)), \
             ARRAY(SELECT json_array_elements($3::json)), ARRAY(SELECT jsonb_array_elements($4::jsonb)), $5::bigint, $6) AS a, \
             unnest(a.outcomes, a.stored) WITH ORDINALITY AS t (outcome, id)",
            quoted(self.schema())
        );
        let texts = [
            Some(queue.as_str()),
            Some(&*kinds),
            Some(&*payloads),
            Some(&*options),
            Some(&*sequence),
            late.as_deref(),
        ];
        let added = transaction.call(&sql, &texts).await?;
        serde_json::from_str(&added).map_err(|error| {
            let text = "the functions of stored tasks were replaced";
            StateError::new(StateErrorKind::Foreign, text).with_source(error)
        })
    }

    /// Completes the run of a task within a transaction of the application, on a connection to the
    /// same database. The effects of the run and its end are stored together or not at all, so each
    /// task has its effects exactly once. The outcome is
    /// [`Done`](interval_queue_task_contract::Outcome::Done) or
    /// [`Failed`](interval_queue_task_contract::Outcome::Failed).
    ///
    /// Until the commit, no lock is held that another process waits for, even if the transaction
    /// stays open for long. The task stays leased to the worker while the worker renews its lease.
    /// **The commit fails if the token is no longer valid, or if the task was cancelled during the
    /// run**, with the SQL state 55000. The SQL functions `complete_task` and `fail_task` do the
    /// same for other languages.
    ///
    /// In a transaction with the isolation `REPEATABLE READ` or stricter, the commit may also fail
    /// with 40001, if the worker has reported progress in between: retry.
    ///
    /// Tasks that wait for this task or its key continue with the next poll of a worker.
    ///
    /// # Errors
    ///
    /// [`Superseded`](StateErrorKind::Superseded) if the token of the run is not valid, or if the
    /// task was cancelled during the run: roll back. `Invalid` for another outcome, or a result
    /// that is too large. `NotFound` if there are no tasks in the schema. After an error the
    /// transaction is as before, unless the connection was lost.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, roll back the transaction.
    pub async fn complete_within(
        &self,
        transaction: impl ApplicationTransaction,
        queue: &QueueName,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, StateError> {
        let (state, result, error) = match completion.end()? {
            End::Done(result) => (State::Done, Some(result.as_str()), None),
            End::Failed(why) => (State::Failed, None, Some(why)),
        };
        let (id, token, worker) =
            (completion.id.to_string(), completion.token.to_string(), worker.to_string());
        let sql = format!(
            "SELECT {}.interval_queue_task_complete($1, $2::uuid, $3, $4::json, $5, $6::uuid)::text",
            quoted(self.schema())
        );
        let texts =
            [Some(queue.as_str()), Some(&*id), Some(&*token), result, error.as_deref(), Some(&*worker)];
        transaction.call(&sql, &texts).await?;
        Ok(Completed::new(completion, state))
    }
}

/// A JSON list with a value for each task.
fn list<'t, T: Serialize>(add: &'t Add, of: impl FnMut(&'t NewTask) -> T) -> Result<String, InvalidInput> {
    let list: Vec<T> = add.tasks.iter().map(of).collect();
    serde_json::to_string(&list).map_err(|error| InvalidInput::new(error.to_string()))
}

/// The options of `add_task`.
fn options(task: &NewTask) -> Map<String, Value> {
    let mut options = Map::new();
    let mut set = |name: &str, value: Value| drop(options.insert(name.to_owned(), value));
    set("id", json!(task.id));
    if task.priority != 0 {
        set("priority", json!(task.priority));
    }
    if let Some(key) = &task.key {
        set("key", json!(key));
        set("ordered", json!(task.ordered));
    }
    if let Some(Unique { name, until }) = &task.unique {
        set("unique", json!(name));
        set("unique_until", json!(if *until == Until::Ended { "ended" } else { "leased" }));
        set("on_conflict", json!(if task.on_conflict == OnConflict::Refuse { "refuse" } else { "keep" }));
    }
    match task.not_before {
        When::After(Micros::ZERO) => {}
        When::After(delay) => set("delay", json!(interval(delay))),
        When::At(at) => set("not_before", json!(instant(at))),
    }
    match task.deadline {
        None => {}
        Some(When::After(left)) => set("deadline", json!(interval(left))),
        Some(When::At(at)) => set("deadline", json!(instant(at))),
    }
    if task.weight != 1 {
        set("weight", json!(task.weight));
    }
    if !task.tags.is_empty() {
        set("tags", json!(task.tags));
    }
    if let Some(trace) = &task.trace {
        set("trace", json!(trace));
    }
    let numbers = [("max_attempts", task.policy.max_attempts), ("max_retries", task.policy.max_retries)];
    for (name, number) in numbers {
        number.into_iter().for_each(|number| set(name, json!(number)));
    }
    let times = [
        ("backoff", task.policy.backoff),
        ("max_backoff", task.policy.max_backoff),
        ("timeout", task.policy.timeout),
    ];
    for (name, time) in times {
        time.into_iter().for_each(|time| set(name, json!(interval(time))));
    }
    if !task.edges.is_empty() {
        let edges = task.edges.iter().map(|edge| {
            let on_failure = match edge.on_failure {
                OnFailure::Cancel => "cancel",
                OnFailure::Run => "run",
                OnFailure::Wait => "wait",
            };
            let mut stated = json!({"name": edge.up, "on_failure": on_failure});
            if let Some(name) = &edge.name {
                stated["as"] = json!(name);
            }
            stated
        });
        set("after", edges.collect());
    }
    options
}

/// In seconds: the number of microseconds may exceed what an `interval` of PostgreSQL 14 reads.
fn interval(of: Micros) -> String {
    format!("{}.{:06} s", of.get() / 1_000_000, of.get() % 1_000_000)
}

fn instant(at: Micros) -> String {
    humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_micros(at.get())).to_string()
}
