//! The conditions at the end, after all faults.

use interval_queue_contract::Micros;
use interval_queue_task_contract::Overlap;

use super::{
    Fuzzer,
    operator::{FIRST_INSTANT, SCHEDULE_INTERVAL},
    plan::seconds,
};

impl Fuzzer {
    pub(super) fn check_end(&self) -> Result<(), String> {
        if !self.producer.is_done() {
            return Err("T1: the producer gets no answer".into());
        }
        self.judge.ending(&self.stored)?;
        let kept: Vec<_> =
            self.stored.rows().map(|x| (x.id, x.state, x.ended_lease_clock, x.retained)).collect();
        if !kept.is_empty() {
            return Err(format!("T11: tasks are kept for longer than they are to be: {kept:?}"));
        }
        if self.plan.overlap == Overlap::Allow && !self.judge.was_rolled_back() {
            let found: Vec<Micros> = self.judge.nominal().collect();
            let nth = |n: usize| self.plan.clock(0) + seconds(FIRST_INSTANT + SCHEDULE_INTERVAL * n as u64);
            let expected: Vec<Micros> = (0..found.len()).map(nth).collect();
            if found != expected {
                return Err(format!("T8: these instants made a task: {found:?}"));
            }
        }
        Ok(())
    }
}
