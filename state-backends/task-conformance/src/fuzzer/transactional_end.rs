//! Completions within transactions of an application.

use std::time::Duration;

use interval_queue_contract::StateErrorKind;
use interval_queue_task_contract::{Completion, Outcome as End};

use super::{Event, Fuzzer};

impl Fuzzer {
    /// Whether this run completes within a transaction. It runs until the commit.
    pub(super) fn ends_within(&mut self, worker: usize, completion: &Completion) -> bool {
        let can = self.within.is_some() && matches!(completion.outcome, End::Done(_) | End::Failed(_));
        if !can || self.rng.bool() {
            return false;
        }
        let at = self.now + self.rng.u64(0..=20);
        self.at(at, Event::EndWithin(worker, completion.clone()));
        true
    }

    pub(super) async fn end_within(&mut self, number: usize, complete: Completion) -> Result<(), String> {
        let Some(within) = self.within.clone().filter(|_| self.workers[number].is_alive) else {
            return Ok(());
        };
        let worker = self.workers[number].id;
        if self.plan.is_out(self.now) {
            self.workers[number].knows(&complete, Some(End::Error("the database is out of reach".into())));
            return Ok(());
        }
        self.arrived += 1;
        self.set_clock();
        let outcome = within.end(&self.queue, worker, &complete).await.map_err(|error| error.kind());
        self.commands += 1;
        let after = self.dump().await?;
        let now = Duration::from_secs(self.now);
        self.judge.completed_within(now, &self.stored, &after, worker, &complete, &outcome).map_err(
            |promise| format!("{promise}\n{worker} ends {complete:?} within a transaction: {outcome:?}"),
        )?;
        self.stored = after;
        let chance = self.chance(0.1);
        match outcome {
            Ok(_) if self.rng.f64() < chance => {
                // The worker dies after the commit.
                self.workers[number].is_alive = false;
                self.at(self.now, Event::StartWorker);
            }
            // The reply to the commit is lost: the handler reports an error.
            Ok(_) if self.rng.f64() < chance => {
                self.workers[number].knows(&complete, Some(End::Error("the commit was not answered".into())));
            }
            Ok(_) => self.workers[number].knows(&complete, None),
            Err(StateErrorKind::Superseded) => {
                self.workers[number].knows(&complete, Some(End::Error("it was rolled back".into())));
            }
            Err(kind) => return Err(format!("T3: {complete:?} within a transaction is refused: {kind:?}")),
        }
        Ok(())
    }
}
