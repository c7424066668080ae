//! Checks the server and migrates the tables, which the first transaction that stores something
//! creates.

use futures::future::try_join;
use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_store::{Component, Found};

use super::{
    Durability, Inner, PostgresStore,
    connection::PooledConnection,
    error::{Failure, RetryAction, no_answer},
    sql::{Statement, begin, literal, quoted},
    tables::MAX_ATTEMPTS,
};

/// Older servers do not support all statements.
const OLDEST_SERVER: i32 = 130_000;

/// Names are quoted for SQL.
#[derive(Default)]
pub(super) struct Server {
    database: String,
    user: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Check,
    Make,
}

impl Inner {
    pub(super) async fn check_server(&self) -> Result<Server, Failure> {
        let about = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), \
                     current_database()::text, current_user::text, pg_is_in_recovery(), \
                     current_setting('transaction_read_only')::bool";
        let mut left = MAX_ATTEMPTS;
        let rows = loop {
            match self.read(&Statement::new(about)).await {
                Err(failure) => check_retry(failure, &mut left)?,
                Ok(rows) => break rows,
            }
        };
        let row = rows.first().ok_or_else(no_answer)?;
        let (version, encoding): (i32, String) = (row.get(0), row.get(1));
        let (database, user) = (quoted(row.get(2)), quoted(row.get(3)));
        let unusable = |kind, text| Err(StateError::new(kind, text).into());
        if version < OLDEST_SERVER {
            let (oldest, version) = (OLDEST_SERVER / 10_000, version / 10_000);
            let text = format!("PostgreSQL {version} is too old: use {oldest} or later");
            return unusable(StateErrorKind::Unsupported, text);
        }
        if encoding != "UTF8" && encoding != "SQL_ASCII" {
            let text =
                format!("database {database} has the encoding {encoding}: use one with the encoding UTF8");
            return unusable(StateErrorKind::Unsupported, text);
        }
        let what = match (row.get(4), row.get(5)) {
            (true, _) => {
                "is a replica that is only read: name the primary, or several hosts and target_session_attrs=read-write"
            }
            (_, true) => "is only read: see default_transaction_read_only",
            _ => return Ok(Server { database, user }),
        };
        unusable(StateErrorKind::Denied, format!("the postgres server of database {database} {what}"))
    }

    /// The SQL that creates or upgrades the tables; [`Purpose::Make`] also runs it. `None`: they
    /// are current.
    pub(super) async fn upgrade(
        &self,
        component: &Component,
        purpose: Purpose,
    ) -> Result<Option<String>, Failure> {
        let mut left = MAX_ATTEMPTS;
        loop {
            let on = self.acquire().await?;
            let outcome = self.upgrade_on(&on, component, purpose).await;
            match on.finish(outcome) {
                Err(failure) => check_retry(failure, &mut left)?,
                outcome => return outcome,
            }
        }
    }

    /// A transaction, so that waits for locks have a time-out and a stopped client releases its
    /// locks.
    async fn upgrade_on(
        &self,
        on: &PooledConnection,
        component: &Component,
        purpose: Purpose,
    ) -> Result<Option<String>, Failure> {
        let (schema, Server { database, user }) = (quoted(&self.schema), &self.server);
        let location = format!("schema {schema} of database {database}");
        let mut beginning = begin(self.timeout, Durability::Full);
        if purpose == Purpose::Make {
            // One process at a time, for all components.
            let lock_name = literal(&format!("interval_queue {}", &self.schema));
            beginning += &format!("; SELECT pg_advisory_xact_lock(hashtextextended({lock_name}, 0))");
        }
        // `to_regclass` may return a cached miss from before the wait for the lock.
        let what = "WITH ours AS (SELECT oid FROM pg_namespace WHERE nspname = $1) SELECT EXISTS (SELECT FROM ours), \
                    EXISTS (SELECT FROM pg_class WHERE relname = $2 AND relnamespace IN (SELECT oid FROM ours)), \
                    EXISTS (SELECT FROM pg_class WHERE relname = $3 AND relnamespace IN (SELECT oid FROM ours))";
        let (table, versions) = (component.name, component.version_table());
        let what = Statement::new(what).with(&*self.schema).with(table).with(&versions);
        let parameters = what.parameters();
        let seen = on.query_typed_one(what.sql, &parameters);
        let ((), row) = on.round_trip(try_join(on.batch_execute(&beginning), seen)).await?;
        let has_schema: bool = row.get(0);
        let versions = match row.get(2) {
            false => None,
            true => {
                let stored = format!("SELECT version::bigint FROM {schema}.{versions}");
                let rows = on.round_trip(on.query_typed(&stored, &[])).await;
                let rows = rows.map_err(|failure| denied(failure, component.may_not_use(user, &location)))?;
                // NULL counts as unknown.
                Some(rows.iter().map(|row| row.try_get(0).unwrap_or(0)).collect())
            }
        };
        let advice = "choose another schema";
        let version = component.version(&Found { place: &location, advice, table: row.get(1), versions })?;
        // Even if the schema exists, `IF NOT EXISTS` needs the right to create schemas.
        let create = if has_schema { String::new() } else { format!("CREATE SCHEMA {schema};\n") };
        let steps = component.steps(version);
        // Functions keep this path. A caller's temporary tables come last.
        let steps =
            steps.map(|steps| format!("{create}SET LOCAL search_path TO {schema}, pg_temp;\n{steps}"));
        if let (Some(steps), Purpose::Make) = (&steps, purpose) {
            let made = on.round_trip(on.batch_execute(steps)).await;
            made.map_err(|failure| denied(failure, component.may_not_migrate(user, &location, version)))?;
        }
        on.commit(on.batch_execute("COMMIT")).await?;
        Ok(steps)
    }
}

impl PostgresStore {
    /// Creates the tables of a component in the schema of this store, or upgrades them to its
    /// version: all at once or not at all, one process at a time.
    ///
    /// # Errors
    ///
    /// As [`Component::version`], and `Denied` if the user may not create or change the tables.
    pub async fn migrate(&self, component: &Component) -> Result<(), StateError> {
        let made = self.0.upgrade(component, Purpose::Make).await;
        made.map(drop).map_err(|failure| failure.error)
    }

    /// Also runs the SQL if `makes`. `None`: the tables are current.
    pub(crate) async fn tables_made_by(
        &self,
        component: &Component,
        makes: bool,
    ) -> Result<Option<String>, StateError> {
        let purpose = if makes { Purpose::Make } else { Purpose::Check };
        self.0.upgrade(component, purpose).await.map_err(|failure| failure.error)
    }
}

/// Requires that the transaction stored nothing.
fn check_retry(failure: Failure, left: &mut u32) -> Result<(), Failure> {
    *left -= 1;
    if *left == 0 || failure.action != RetryAction::Retry { Err(failure) } else { Ok(()) }
}

fn denied(failure: Failure, error: StateError) -> Failure {
    match failure.error.kind() {
        StateErrorKind::Denied => error.with_source(failure.error).into(),
        _ => failure,
    }
}
