//! Checks after all faults are over: every job of a living shard starts, and nothing is
//! left.

use std::{sync::Mutex, time::Duration};

use interval_queue::IntervalQueue;
use tokio::time::{sleep, timeout};

use crate::{
    check::Promise,
    execution::{Execution, Host, STALL_TIMEOUT, weight},
    service::locked,
};

impl Execution<'_> {
    pub(crate) async fn end(&self) {
        let world = &self.world;
        // Stopped and new shards get there in that time.
        sleep(Duration::from_secs(10)).await;
        world.heal();
        let weights: u32 = self.plan.events.iter().map(|timed| weight(&timed.event)).sum();
        let limit = STALL_TIMEOUT * 10 + self.plan.lease * 4 + self.interval * weights * 2;
        let deadline = world.now() + limit;
        let mut rounds = 0_u32;
        loop {
            if rounds.is_multiple_of(20) {
                // A shard may be the only one to remember a pause: it reports it with its tick, and
                // only then can all resume.
                let in_vain = timeout(limit, self.wake_all()).await.is_err();
                if in_vain {
                    world.violate(Promise::NoLostPlace, "a tick is never answered".into());
                    return;
                }
            }
            rounds += 1;
            sleep(Duration::from_millis(500)).await;
            world.check(|checks| checks.check_stall(world.now() - world.began()));
            if self.is_done() {
                break;
            }
            if world.now() > deadline {
                let jobs =
                    |host: &Mutex<Host>| locked(&locked(host).waiting).keys().copied().collect::<Vec<_>>();
                let stuck: Vec<_> = self.hosts.iter().flat_map(jobs).collect();
                let what =
                    format!("{} jobs are stuck {limit:?} after the last fault: {stuck:?}", stuck.len());
                world.violate(Promise::NoLostPlace, what);
                return;
            }
        }
        self.check_quiet().await;
        if self.plan.is_faultless() {
            world.check(|checks| checks.check_faultless(world.now() - world.began()));
        }
        world.check(|checks| checks.check_reported(world.now() - world.began()));
    }

    async fn wake_all(&self) {
        let world = &self.world;
        for _ in 0..2 {
            let queues = self.alive();
            let Some(first) = queues.first() else { return };
            // Fails only if something is still wrong; retried.
            let _ = first.resume().await;
            for queue in &queues {
                queue.tick().await;
            }
        }
        world.check(|checks| checks.woken(world.now() - world.began()));
        self.alive().iter().for_each(IntervalQueue::start);
    }

    fn alive(&self) -> Vec<IntervalQueue> {
        let hosts = self.hosts.iter().map(locked);
        hosts.filter(|host| !host.process.is_dead()).filter_map(|host| host.open.borrow().clone()).collect()
    }

    fn is_done(&self) -> bool {
        self.hosts.iter().all(|host| {
            let host = locked(host);
            let idle = |queue: &IntervalQueue| queue.waiting() == 0 && queue.running() == 0;
            let done = || locked(&host.waiting).is_empty() && host.open.borrow().as_ref().is_some_and(idle);
            host.process.is_dead() || done()
        })
    }

    /// Idle shards leave nothing.
    async fn check_quiet(&self) {
        let world = &self.world;
        // Shards that could not leave at once retry a few times.
        sleep(Duration::from_secs(30)).await;
        let mut left = Vec::new();
        for host in &self.hosts {
            let host = locked(host);
            // The service itself waits for jobs.
            if !host.process.is_dead() && host.process.unended() > 1 {
                left.push(format!("{} has {} tasks", host.process.name(), host.process.unended() - 1));
            }
            let id = host.open.borrow().as_ref().map(IntervalQueue::shard_id);
            let present = |id| world.is_present(&self.queue, &id);
            if !host.process.is_dead() && id.is_some_and(present) {
                left.push(format!("{} is in the record", host.process.name()));
            }
        }
        if !left.is_empty() {
            let what = format!("nothing waits or runs, but {}", left.join(", "));
            world.violate(Promise::Quiet, what);
        }
    }
}
