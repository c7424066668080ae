//! Adds tasks within a transaction of the application: committed or rolled back with it.

use interval_queue_contract::{InvalidInput, QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{Add, Added, Command, NewTask, OnConflict, Reply};
use tokio_postgres::{Transaction, types::Type};

use super::{
    MAX_TRIES, PostgresTasks,
    find::{self, Locks, Scope},
    read_ahead,
    transaction::{Mode, fetch_all_typed},
    view::{Outcome, ReadSet, decide},
    write,
};
use crate::store::{Failure, Query, RetryAction, quoted};

/// Allows the application's transaction to continue if adding fails.
const SAVE: &str = "SAVEPOINT interval_queue_add";
const UNDO: &str = "ROLLBACK TO SAVEPOINT interval_queue_add; RELEASE SAVEPOINT interval_queue_add";
const KEEP: &str = "RELEASE SAVEPOINT interval_queue_add";

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
    /// for workers. After an error the transaction is as before, unless the connection was lost.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, roll back the transaction.
    pub async fn add_within(
        &self,
        transaction: &Transaction<'_>,
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
        // If the transaction created the queue, all workers of the queue would wait for its end.
        if self.headers.of(queue).is_none() {
            self.store(Mode::Add, queue, &Command::Add(Add::default())).await?;
        }
        let mut left = MAX_TRIES;
        loop {
            run(transaction, SAVE).await?;
            let failed = match self.add_once(transaction, queue, &command).await {
                Ok(Ok(reply)) => {
                    run(transaction, KEEP).await?;
                    return reply.added();
                }
                Ok(Err(refused)) => Failure::from(refused),
                Err(failure) => failure,
            };
            run(transaction, UNDO).await?;
            left -= 1;
            // Retries if another process was first to add one of the tasks. If the server has rolled back
            // the whole transaction, there is nothing to retry.
            if failed.action != RetryAction::Retry || left == 0 {
                return Err(failed.error);
            }
        }
    }

    async fn add_once(
        &self,
        on: &Transaction<'_>,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Result<Reply, StateError>, Failure> {
        let failed = |error| Failure::of_query(error);
        let search_path = on.query_typed_one("SELECT pg_catalog.current_setting('search_path')", &[]).await;
        let search_path: String = search_path.and_then(|row| row.try_get(0)).map_err(failed)?;
        let set_search_path = async |path: String| {
            let set_search_path =
                Query::new("SELECT pg_catalog.set_config('search_path', $1, true)").with(path, Type::TEXT);
            on.query_typed(&set_search_path.sql, &set_search_path.parameters())
                .await
                .map(drop)
                .map_err(failed)
        };
        set_search_path(format!("pg_catalog, {}, pg_temp", quoted(self.schema()))).await?;
        let mut read_set = ReadSet::default();
        let start_query = Self::start_query(queue, command);
        let row = on.query_typed_one(&start_query.sql, &start_query.parameters()).await.map_err(failed)?;
        let start = self.read_start(queue, &row, &mut read_set)?;
        let scope = Scope {
            queue: start.number,
            locks: Locks::KeyShare,
            writes: true,
            is_read_ahead: true,
            has_low_marks: false,
        };
        let header = self.headers.of(queue);
        let mut lookups = header
            .map_or_else(Vec::new, |header| read_ahead::lookups(command, Mode::Add, &header, self.clock()));
        let (reply, written) = loop {
            let lookup_queries = find::lookup_queries(scope, lookups);
            let results = fetch_all_typed(on, &lookup_queries).await.map_err(failed)?;
            for (lookup_query, rows) in lookup_queries.iter().zip(results) {
                lookup_query.add_rows(&rows, &mut read_set)?;
            }
            match decide(&read_set, start.now, command) {
                Outcome::Decided(Ok(reply), written) => break (reply, written),
                Outcome::Decided(Err(refused), _) => return Ok(Err(refused)),
                Outcome::Missing(missing) => lookups = missing,
            }
        };
        if !written.is_added() || written.queue.is_some() {
            let text =
                "the queue is gone since, or something else has to be written: add the tasks by themselves";
            return Err(StateError::new(StateErrorKind::Conflict, text).into());
        }
        let mut statements = write::statements(start.number, &written, false);
        statements.extend(write::events(start.number, &written, false));
        for query in statements {
            on.execute_typed(&query.sql, &query.parameters()).await.map_err(failed)?;
        }
        if written.notifies {
            let notification = self.store.notification_query(queue.as_str().to_owned());
            on.query_typed(&notification.sql, &notification.parameters()).await.map_err(failed)?;
        }
        set_search_path(search_path).await?;
        Ok(Ok(reply))
    }
}

async fn run(transaction: &Transaction<'_>, sql: &str) -> Result<(), StateError> {
    transaction.batch_execute(sql).await.map_err(|error| Failure::of_query(error).error)
}
