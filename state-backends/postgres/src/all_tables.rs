//! The tables of all that is kept on a store: printed, or made before they are used.

use interval_queue_contract::StateError;
use interval_queue_store::Component;

use crate::{PostgresStore, pace::PACE, tasks::TASKS};

const COMPONENTS: [&Component; 2] = [&PACE, &TASKS];

impl PostgresStore {
    /// Returns the SQL that [`make_tables`](Self::make_tables) would carry out, for a user who may make tables. It is
    /// empty if the tables of queues and of tasks are there.
    ///
    /// # Errors
    ///
    /// Those of [`Component::version`], and those of a server that does not answer.
    pub async fn missing_tables(&self) -> Result<String, StateError> {
        let mut missing = String::new();
        for component in COMPONENTS {
            if let Some(sql) = self.tables_made_by(component, false).await? {
                // Each of them finds no schema; the second one is to find that of the first.
                let sql = sql.replace("CREATE SCHEMA ", "CREATE SCHEMA IF NOT EXISTS ");
                missing += &format!("BEGIN;\n{sql}COMMIT;\n");
            }
        }
        Ok(missing)
    }

    /// Makes the tables of queues and of tasks that are missing. Returns whether any were. The first command that
    /// stores makes them, too: this is for a user who may, on behalf of others who may not.
    ///
    /// # Errors
    ///
    /// Those of [`migrate`](Self::migrate).
    pub async fn make_tables(&self) -> Result<bool, StateError> {
        let mut were_missing = false;
        for component in COMPONENTS {
            were_missing |= self.tables_made_by(component, true).await?.is_some();
        }
        Ok(were_missing)
    }
}
