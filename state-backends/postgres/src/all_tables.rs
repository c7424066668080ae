//! Prints or creates the tables of all components of a store.

use interval_queue_contract::StateError;
use interval_queue_store::Component;

use crate::{PostgresStore, pace::PACE, tasks::TASKS};

const COMPONENTS: [&Component; 2] = [&PACE, &TASKS];

impl PostgresStore {
    /// Returns the SQL that [`make_tables`](Self::make_tables) would run, for a user with the right
    /// to create tables. Empty: the tables of queues and of tasks exist.
    ///
    /// # Errors
    ///
    /// As [`Component::version`], or the server does not answer.
    pub async fn missing_tables(&self) -> Result<String, StateError> {
        let mut missing = String::new();
        for component in COMPONENTS {
            if let Some(sql) = self.tables_made_by(component, false).await? {
                // No component finds a schema, so each script creates one. The second script must
                // accept the schema of the first.
                let sql = sql.replace("CREATE SCHEMA ", "CREATE SCHEMA IF NOT EXISTS ");
                missing += &format!("BEGIN;\n{sql}COMMIT;\n");
            }
        }
        Ok(missing)
    }

    /// Creates the missing tables of queues and of tasks. Returns whether any were missing. The
    /// first command that stores something also creates them; call this as a user with the right to
    /// create tables if the other users lack it.
    ///
    /// # Errors
    ///
    /// As [`migrate`](Self::migrate).
    pub async fn make_tables(&self) -> Result<bool, StateError> {
        let mut were_missing = false;
        for component in COMPONENTS {
            were_missing |= self.tables_made_by(component, true).await?.is_some();
        }
        Ok(were_missing)
    }
}
