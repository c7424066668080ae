//! What must hold at the end, when the faults are over.

use interval_queue_contract::Micros;
use interval_queue_task_contract::Overlap;

use super::{
    judge::{Judge, ensure},
    operator::APART,
    picture::Picture,
    plan::seconds,
};

impl Judge {
    pub(super) fn ending(&self, last: &Picture, all_added: bool) -> Result<(), String> {
        ensure!(all_added, "T1: the producer gets no answer");
        let left = last.rows().find(|x| !x.state.is_ended() || !x.told);
        ensure!(left.is_none(), "T3: a task is left: {left:?}");
        let lost =
            self.accepted.iter().find(|id| !last.tasks.contains_key(id) && !self.gone.contains_key(id));
        ensure!(
            lost.is_none() || self.was_rolled_back(),
            "T1: task {lost:?} was acknowledged, and never there"
        );
        let kept: Vec<_> = last.rows().map(|x| (x.id, x.state, x.ended_tick, x.wanted)).collect();
        ensure!(kept.is_empty(), "T11: tasks are kept for longer than they are to be: {kept:?}");
        if self.overlap == Overlap::Allow && !self.was_rolled_back() {
            let found: Vec<Micros> = self.nominal.keys().copied().collect();
            let nth = |n: usize| self.first_instant + seconds(APART * n as u64);
            let wanted: Vec<Micros> = (0..found.len()).map(nth).collect();
            ensure!(found == wanted, "T8: these instants made a task: {found:?}");
        }
        Ok(())
    }
}
