//! Counts the outcomes of random commands.

use interval_queue_contract::{Reply, StateErrorKind, Stepped, WaitReason};

/// Counts of the outcomes of a [`Load`](crate::Load)'s commands. Default: zero.
///
/// An outcome that never occurred was not compared: see [`Tally::rarest`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    granted: u64,
    taken: u64,
    behind: u64,
    missed: u64,
    paused: u64,
    at_max_running: u64,
    superseded: u64,
    refused: u64,
}

impl Tally {
    /// Counts the outcome of a command.
    pub fn count(&mut self, outcome: Result<&Reply, StateErrorKind>) {
        match outcome {
            Ok(Reply::Stepped(stepped)) => self.step(stepped),
            Ok(_) => {}
            Err(StateErrorKind::Superseded) => self.superseded += 1,
            Err(_) => self.refused += 1,
        }
    }

    fn step(&mut self, stepped: &Stepped) {
        self.granted += u64::from(!stepped.grants.is_empty());
        self.taken += u64::from(stepped.taken.is_some());
        match stepped.wait.as_ref().map(|wait| &wait.reason) {
            Some(WaitReason::Behind { .. }) => self.behind += 1,
            Some(WaitReason::Missed) => self.missed += 1,
            Some(WaitReason::Paused) => self.paused += 1,
            Some(WaitReason::AtMaxRunning) => self.at_max_running += 1,
            _ => {}
        }
    }

    /// The count of the rarest outcome.
    pub fn rarest(&self) -> u64 {
        let Self { granted, taken, behind, missed, paused, at_max_running, superseded, refused } = *self;
        let all = [granted, taken, behind, missed, paused, at_max_running, superseded, refused];
        all.into_iter().min().unwrap_or_default()
    }
}
