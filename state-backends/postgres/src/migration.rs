//! The tables: made by the first command that stores something, and brought up to date by a newer program.

use interval_queue_contract::{StateError, StateErrorKind};
use tokio_postgres::types::Type;

use crate::{
    connection::{Connections, Lent},
    error::Trouble,
    statements::{begin, literal, quoted},
};

/// What makes each version of the tables out of the one before. They run in the schema, in one transaction.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/1.sql")];

/// The oldest server whose statements these are.
const OLDEST_SERVER: i32 = 130_000;

/// Whether the tables are there and are those of this version. An error if they can be neither used nor made.
pub(crate) async fn check(connections: &Connections, schema: &str) -> Result<bool, StateError> {
    bring_to(connections, schema, MIGRATIONS, Purpose::Look).await.map_err(|trouble| trouble.error)
}

/// Sees to it that they are.
pub(crate) async fn prepare(connections: &Connections, schema: &str) -> Result<(), StateError> {
    let made = bring_to(connections, schema, MIGRATIONS, Purpose::Make).await;
    made.map(drop).map_err(|trouble| trouble.error)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Look,
    Make,
}

async fn bring_to(
    connections: &Connections,
    schema: &str,
    migrations: &[&str],
    purpose: Purpose,
) -> Result<bool, Trouble> {
    let on = connections.lend().await?;
    let outcome = Tables { connections, on: &on, schema, migrations }.bring_up(purpose).await;
    on.after(outcome)
}

/// What has to be known of the server.
struct Server {
    database: String,
    user: String,
    is_standby: bool,
    is_read_only: bool,
}

impl Server {
    fn check_that_it_can_be_written(&self) -> Result<(), StateError> {
        let what = match self {
            Self { is_standby: true, .. } => {
                "is a replica that is only read: name the primary, or several hosts and target_session_attrs=read-write"
            }
            Self { is_read_only: true, .. } => "is only read: see default_transaction_read_only",
            _ => return Ok(()),
        };
        let text = format!("the postgres server of database {} {what}", quoted(&self.database));
        Err(StateError::new(StateErrorKind::Denied, text))
    }
}

/// The tables of a schema, seen by one connection.
struct Tables<'a> {
    connections: &'a Connections,
    on: &'a Lent,
    schema: &'a str,
    migrations: &'a [&'a str],
}

impl Tables<'_> {
    /// A transaction, so that no lock is waited for longer than the server is, nor held by who stopped.
    async fn bring_up(&self, purpose: Purpose) -> Result<bool, Trouble> {
        let Self { connections, on, migrations, .. } = *self;
        connections.ask(on.batch_execute(&begin(connections.timeout))).await?;
        let server = self.server().await?;
        let is_old = self.version(&server).await? < migrations.len();
        server.check_that_it_can_be_written()?;
        if is_old && purpose == Purpose::Make {
            self.migrate(&server).await?;
        }
        connections.commit(on.batch_execute("COMMIT")).await?;
        Ok(!is_old || purpose == Purpose::Make)
    }

    async fn server(&self) -> Result<Server, Trouble> {
        let about = self.on.query_typed_one(
            "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), \
             current_database()::text, current_user::text, pg_is_in_recovery(), \
             current_setting('transaction_read_only')::bool",
            &[],
        );
        let row = self.connections.ask(about).await?;
        let (version, encoding): (i32, String) = (row.get(0), row.get(1));
        if version < OLDEST_SERVER {
            let (oldest, version) = (OLDEST_SERVER / 10_000, version / 10_000);
            let text = format!("PostgreSQL {version} is too old: use {oldest} or later");
            return Err(StateError::new(StateErrorKind::Unsupported, text).into());
        }
        let database: String = row.get(2);
        if encoding != "UTF8" && encoding != "SQL_ASCII" {
            let database = quoted(&database);
            let text =
                format!("database {database} has the encoding {encoding}: use one with the encoding UTF8");
            return Err(StateError::new(StateErrorKind::Unsupported, text).into());
        }
        Ok(Server { database, user: row.get(3), is_standby: row.get(4), is_read_only: row.get(5) })
    }

    /// The version of the tables; 0: there are none.
    async fn version(&self, server: &Server) -> Result<usize, Trouble> {
        let schema = quoted(self.schema);
        // Not to_regclass: it may remember from before the turn was waited for that there was none.
        let tables = "SELECT count(*) FILTER (WHERE relname = 'interval_queue') > 0, \
                      count(*) FILTER (WHERE relname = 'interval_queue_schema') > 0 FROM pg_catalog.pg_class \
                      JOIN pg_catalog.pg_namespace AS schema ON schema.oid = relnamespace WHERE nspname = $1";
        let row =
            self.connections.ask(self.on.query_typed_one(tables, &[(&self.schema, Type::TEXT)])).await?;
        match (row.get(0), row.get(1)) {
            (false, false) => return Ok(0),
            (true, true) => {}
            _ => return Err(self.foreign("has only one of the two tables of interval queues").into()),
        }
        let versions = format!("SELECT version::int FROM {schema}.interval_queue_schema");
        let rows = self
            .connections
            .ask(self.on.query_typed(&versions, &[]))
            .await
            .map_err(|trouble| self.denied(server, trouble))?;
        let known = self.migrations.len();
        match rows.as_slice() {
            [row] => match row.try_get::<_, i32>(0).ok().and_then(|version| usize::try_from(version).ok()) {
                Some(version) if version > known => {
                    let text = format!(
                        "the tables in schema {schema} have version {version}, this program knows up to {known}: upgrade the program"
                    );
                    Err(StateError::new(StateErrorKind::NewerVersion, text).into())
                }
                Some(version) if version > 0 => Ok(version),
                _ => Err(self.foreign("has a table interval_queue_schema with no version from 1").into()),
            },
            _ => Err(self.foreign("has a table interval_queue_schema that does not have one row").into()),
        }
    }

    /// One process at a time.
    async fn migrate(&self, server: &Server) -> Result<(), Trouble> {
        let Self { connections, on, schema, migrations } = *self;
        let turn = literal(&format!("interval_queue {schema}"));
        let locked = format!("SELECT pg_advisory_xact_lock(hashtextextended({turn}, 0))");
        connections.ask(on.batch_execute(&locked)).await?;
        // Somebody else may have been quicker.
        let version = self.version(server).await?;
        if version < migrations.len() {
            let steps = self.steps(version).await?;
            connections
                .ask(on.batch_execute(&steps))
                .await
                .map_err(|trouble| self.cannot_migrate(server, version, trouble))?;
        }
        Ok(())
    }

    async fn steps(&self, from: usize) -> Result<String, Trouble> {
        let schema = quoted(self.schema);
        let is_there = "SELECT count(*) > 0 FROM pg_catalog.pg_namespace WHERE nspname = $1";
        let is_there =
            self.connections.ask(self.on.query_typed_one(is_there, &[(&self.schema, Type::TEXT)])).await?;
        let mut steps = String::new();
        // Even to find that a schema is there takes the right to create one.
        if !is_there.get::<_, bool>(0) {
            steps += &format!("CREATE SCHEMA {schema};\n");
        }
        steps += &format!("SET LOCAL search_path TO {schema};\n");
        for migration in &self.migrations[from..] {
            steps += migration;
        }
        Ok(steps + &format!("UPDATE interval_queue_schema SET version = {};\n", self.migrations.len()))
    }

    fn foreign(&self, what: &str) -> StateError {
        let text =
            format!("schema {} {what}: choose another schema; nothing was changed", quoted(self.schema));
        StateError::new(StateErrorKind::Foreign, text)
    }

    fn denied(&self, server: &Server, trouble: Trouble) -> Trouble {
        if trouble.error.kind() != StateErrorKind::Denied {
            return trouble;
        }
        let Server { database, user, .. } = server;
        let (user, schema, database) = (quoted(user), quoted(self.schema), quoted(database));
        let text =
            format!("user {user} may not use schema {schema} of database {database}: grant it {GRANTS}");
        StateError::new(StateErrorKind::Denied, text).with_source(trouble.error).into()
    }

    fn cannot_migrate(&self, server: &Server, version: usize, trouble: Trouble) -> Trouble {
        if trouble.error.kind() != StateErrorKind::Denied {
            return trouble;
        }
        let Server { database, user, .. } = server;
        let (user, schema, database) = (quoted(user), quoted(self.schema), quoted(database));
        let (found, wanted) = (version, self.migrations.len());
        let text = match found {
            0 => format!(
                "user {user} may not create the tables in schema {schema} of database {database}: let an owner open a queue once, then grant {user} {GRANTS}"
            ),
            _ => format!(
                "the tables in schema {schema} of database {database} have version {found}, this program needs {wanted}, and user {user} \
                 may not change them: let their owner open a queue once"
            ),
        };
        StateError::new(StateErrorKind::Denied, text).with_source(trouble.error).into()
    }
}

const GRANTS: &str =
    "USAGE on the schema, SELECT on interval_queue_schema, and SELECT, INSERT, UPDATE on interval_queue";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use deadpool_postgres::{Config, Runtime};
    use interval_queue_test_support::PostgresServer;
    use tokio_postgres::NoTls;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(120);

    fn connections(server: &PostgresServer, user: &str) -> Connections {
        let mut config = Config::new();
        config.url = Some(format!("postgres://{user}@127.0.0.1:{}/postgres", server.port()));
        Connections::new(config.create_pool(Some(Runtime::Tokio1), NoTls).unwrap(), "a test", TIMEOUT)
    }

    fn version(server: &PostgresServer) -> Vec<String> {
        server.psql("SELECT version FROM place.interval_queue_schema")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs postgresql: scripts/test runs it"]
    async fn ten_at_once_migrate_once() {
        let server = PostgresServer::start();
        let next = "ALTER TABLE interval_queue ADD COLUMN colour text NOT NULL DEFAULT 'red';";
        prepare(&connections(&server, "postgres"), "place").await.unwrap();
        let tasks = (0..10).map(|_| {
            let connections = connections(&server, "postgres");
            tokio::spawn(async move {
                bring_to(&connections, "place", &[MIGRATIONS[0], next], Purpose::Make).await
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap().unwrap();
        }
        assert_eq!(version(&server), ["2"]);
        server.psql("SELECT colour FROM place.interval_queue");
        let older = prepare(&connections(&server, "postgres"), "place").await.unwrap_err();
        assert_eq!(older.kind(), StateErrorKind::NewerVersion);
        assert!(older.to_string().contains("version 2") && older.to_string().contains("upgrade"), "{older}");
    }

    #[tokio::test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    async fn a_migration_that_fails_changes_nothing() {
        let server = PostgresServer::start();
        let connections = connections(&server, "postgres");
        prepare(&connections, "place").await.unwrap();
        for next in ["CREATE TABLE more (id int); SELECT 1 / 0;", "CREATE TABLE more (id int); COLOUR;"] {
            bring_to(&connections, "place", &[MIGRATIONS[0], next], Purpose::Make).await.unwrap_err();
            assert_eq!(version(&server), ["1"]);
            assert_eq!(server.psql("SELECT to_regclass('place.more') IS NULL"), ["t"]);
        }
        prepare(&connections, "place").await.unwrap();
    }

    #[tokio::test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    async fn who_may_not_migrate_is_told_who_may() {
        let server = PostgresServer::start();
        prepare(&connections(&server, "postgres"), "place").await.unwrap();
        server.psql("CREATE ROLE pacer LOGIN; GRANT USAGE ON SCHEMA place TO pacer");
        server.psql("GRANT SELECT ON ALL TABLES IN SCHEMA place TO pacer");
        let next = "ALTER TABLE interval_queue ADD COLUMN colour text;";
        let refused =
            bring_to(&connections(&server, "pacer"), "place", &[MIGRATIONS[0], next], Purpose::Make).await;
        let error = refused.unwrap_err().error;
        assert_eq!(error.kind(), StateErrorKind::Denied);
        let text = error.to_string();
        for word in ["\"pacer\"", "\"place\"", "version 1", "needs 2", "owner"] {
            assert!(text.contains(word), "{text}");
        }
        assert_eq!(version(&server), ["1"]);
    }
}
