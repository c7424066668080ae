//! Prints or creates the tables of all components of a database.

use interval_queue_contract::StateError;
use interval_queue_store::Component;

use crate::{SqliteStore, pace::QUEUES, tasks::TASKS};

static COMPONENTS: [&Component; 2] = [&QUEUES, &TASKS];

impl SqliteStore {
    /// Returns the SQL that [`make_tables`](Self::make_tables) would run. Empty: the tables of
    /// queues and of tasks exist.
    ///
    /// # Errors
    ///
    /// As [`SqliteTasks::on`](crate::SqliteTasks::on).
    pub async fn missing_tables(&self) -> Result<String, StateError> {
        let mut missing = String::new();
        for component in COMPONENTS {
            if self.read(component, |_| Ok(())).await?.is_none() {
                let steps = component.steps(0).unwrap_or_default();
                missing += &format!("BEGIN;\n{steps}COMMIT;\n");
            }
        }
        Ok(missing)
    }

    /// Creates the missing tables of queues and of tasks, and the database if there is none.
    /// Returns whether any tables were missing. The first command that stores something also
    /// creates them.
    ///
    /// # Errors
    ///
    /// As [`SqliteTasks::on`](crate::SqliteTasks::on).
    pub async fn make_tables(&self) -> Result<bool, StateError> {
        let mut were_missing = false;
        for component in COMPONENTS {
            were_missing |= self.read(component, |_| Ok(())).await?.is_none();
            // The connection may have been opened for other tables.
            let store = self.clone();
            self.change(component, move |on| store.upgrade(component, on)).await?;
        }
        Ok(were_missing)
    }
}
