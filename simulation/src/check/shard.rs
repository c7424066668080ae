//! One process's shard: how late it may start a job, and whether its failures were reported.

use std::time::Duration;

use interval_queue_contract::Step;

const MIN_INTERVAL: Duration = Duration::from_millis(10);

const MAX_DOUBLINGS: u32 = 17;

#[derive(Default)]
pub(super) struct Behaviour {
    /// Tolerance by each of the last two steps.
    tolerances: [Duration; 2],
    /// How often in a row a ticket with an unused grant got another one.
    pub(super) overruns: u32,
    pub(super) failures: u64,
    pub(super) reported: u64,
}

impl Behaviour {
    pub(super) fn stepped(&mut self, step: &Step) {
        // For the host, and for the reply.
        let host = step.memory.interval().to_duration().max(MIN_INTERVAL);
        let least = host + step.lead.to_duration().max(host);
        // It doubles with each step that brought grants that were given up, which shows only when
        // they are granted again.
        let doubled = least * (1 << (self.overruns + 1).min(MAX_DOUBLINGS));
        self.tolerances = [self.tolerances[1], doubled];
    }

    pub(super) fn started(&mut self) -> Duration {
        self.overruns = 0;
        self.tolerances[0].max(self.tolerances[1])
    }
}
