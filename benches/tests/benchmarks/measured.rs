//! What `cargo bench --bench pace` makes of the notes of its workers, and that it works.

use std::{collections::BTreeSet, fs::File, io::Write};

use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    analysis::{Clocks, Facts, Killed, spread},
    assignment::{Assignment, Offer},
    notes::{Grant, Keep, Log, Notebook, Start},
    order::inversions,
    report::{Kill, Report},
    scenario::{Plan, table},
    trace::finished_calls,
};

/// Nanoseconds of an interval of 10 ms.
const INTERVAL: u64 = 10_000_000;
/// The monotonic clock shows this when the wall clock shows 1,000 s.
const BEGIN: u64 = 5_000_000_000;
const WALL: u64 = 1_000_000_000_000;

fn start(job: u64, started: u64) -> Start {
    Start { job, called: started - 1_000, accepted: Some(started - 500), started }
}

/// Ticket n has slot n; the clocks run alike.
fn grant(ticket: u64) -> Grant {
    let slot = (WALL + ticket * INTERVAL) / 1000;
    Grant { ticket, slot, sent: slot - 2_000 }
}

/// Two workers that start 100 µs after their slots, in turns, as many as given.
fn punctual(slots: impl Iterator<Item = u64>) -> Facts {
    let mut logs = vec![Log::default(); 2];
    for slot in slots {
        let log = &mut logs[slot as usize % 2];
        log.grants.push(grant(slot));
        log.starts.push(start(slot / 2, BEGIN + slot * INTERVAL + 100_000));
    }
    let clocks = Clocks { before: (BEGIN, WALL), after: (BEGIN + INTERVAL, WALL + INTERVAL) };
    Facts { interval: 10_000, jobs_each: 50, logs, clocks, ..Facts::default() }
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-6
}

#[test]
fn a_perfect_pace_is_found_perfect() {
    let run = punctual(0..100).analyse();
    assert_eq!((run.started, run.lost, run.twice, run.close, run.inversions), (100, 0, 0, 0, 0));
    assert!(near(run.rate, 1.0) && near(run.gaps.min, 10_000.0) && near(run.gaps.max, 10_000.0));
    let late = run.lateness.unwrap();
    assert!(near(late.min, 100.0) && near(late.max, 100.0), "{late:?}");
    assert_eq!(run.closest_slots, Some(10_000));
    assert!(near(run.waited.unwrap().p50, 1.0));
    assert_eq!((run.operations, run.cpu, run.server_cpu, run.kill), (None, None, None, None));
}

#[test]
fn gaps_jobs_and_costs_are_counted() {
    let mut facts = punctual(0..100);
    // Job 9 of worker 1 starts 1.5 ms early, so the gap before it is close; job 10 never; job 11 twice.
    facts.logs[1].starts[9].started -= 1_500_000;
    facts.logs[1].starts.remove(10);
    let again = facts.logs[1].starts[10];
    facts.logs[1].starts.push(Start { started: again.started + 1, ..again });
    (facts.logs[0].cpu, facts.logs[0].operations) = (Some(50_000_000), Some(100));
    facts.server_cpu = Some(700.0);
    // Of two processors for 500 ms half was used, 50.7 ms of it by the worker and the server.
    facts.clocks.after = (BEGIN + 500_000_000, WALL + 500_000_000);
    (facts.busy, facts.cores) = (Some(0.5), 2);
    let run = facts.analyse();
    assert_eq!((run.started, run.lost, run.twice), (100, 1, 1));
    assert_eq!(run.close, 2, "the early one, and the one that started twice");
    assert!(near(run.gaps.min, 0.001) && near(run.gaps.max, 20_000.0));
    // Worker 0 alone tells: 100 commands and 50 ms for its 50 jobs.
    assert!(near(run.operations.unwrap(), 2.0) && near(run.cpu.unwrap(), 1_000.0));
    assert!(near(run.server_cpu.unwrap(), 7.0) && near(run.others.unwrap(), 0.5 - 0.0507), "{run:?}");
}

#[test]
fn a_slot_that_was_given_up_is_skipped() {
    let mut facts = punctual(0..100);
    // Ticket 4 got another slot before, which it gave up. That slot counts among the distances.
    facts.logs[0].grants.insert(2, Grant { slot: grant(4).slot - 4_000, ..grant(4) });
    let run = facts.analyse();
    assert!(near(run.lateness.unwrap().max, 100.0));
    assert_eq!(run.closest_slots, Some(4_000));
    // More starts than slots: nobody knows which was for what.
    facts.logs[0].grants.pop();
    assert_eq!(facts.analyse().lateness, None);
}

#[test]
fn the_clocks_may_drift() {
    let mut facts = punctual(0..100);
    // In a second the wall clock shows 100 µs less than the monotonic one.
    facts.clocks.after = (BEGIN + 1_000_000_000, WALL + 999_900_000);
    let late = facts.analyse().lateness.unwrap();
    // Half a second on, a slot comes 50 µs later than the clocks at the beginning say.
    assert!((late.p50 - 50.0).abs() < 2.0, "{late:?}");
}

/// Worker 0 is killed after slot 99; its lease ends half a slot before slot 200. What starts afterwards, as
/// slots with the tickets that were granted them, starts in worker 1.
fn after_a_kill(slots: impl IntoIterator<Item = (u64, u64)>) -> Kill {
    let mut facts = punctual(0..100);
    for (slot, ticket) in slots {
        facts.logs[1].grants.push(Grant { ticket, ..grant(slot) });
        facts.logs[1].starts.push(start(ticket, BEGIN + slot * INTERVAL + 100_000));
    }
    let at = BEGIN + 99 * INTERVAL + 200_000;
    let lease_end = Some((WALL + 200 * INTERVAL - INTERVAL / 2) / 1000);
    facts.killed = Some(Killed { worker: 0, at, offered: 130, lease_end });
    facts.analyse().kill.unwrap()
}

/// The odd slots until the lease ends, and then all.
fn own_and_all() -> impl Iterator<Item = u64> {
    (101..200).step_by(2).chain(200..400)
}

#[test]
fn a_killed_worker_costs_its_own_slots() {
    let kill = after_a_kill(own_and_all().map(|slot| (slot, slot)));
    assert_eq!((kill.waiting, kill.at, kill.lease), (80, 990_100, 1_004_800));
    assert_eq!((kill.slots_lost, kill.own_slots), (50, Some(50)));
    assert!(near(kill.rate_during.unwrap(), 0.5) && near(kill.rate_after.unwrap(), 1.0), "{kill:?}");
}

#[test]
fn slots_that_the_living_lose_during_the_lease_are_told_apart() {
    // Ten of their tickets get slots only in the end.
    let late = |slot: u64| (130..150).contains(&slot);
    let moved = own_and_all().filter(|slot| late(*slot)).zip(400..).map(|(ticket, slot)| (slot, ticket));
    let others = own_and_all().filter(|slot| !late(*slot)).map(|slot| (slot, slot));
    let kill = after_a_kill(others.chain(moved));
    assert_eq!((kill.slots_lost, kill.own_slots), (60, Some(50)));
    assert!(near(kill.rate_during.unwrap(), 0.4) && near(kill.rate_after.unwrap(), 1.0), "{kill:?}");
}

#[test]
fn a_hole_that_begins_with_the_end_of_the_lease_counts_against_the_time_after() {
    let slots = own_and_all().filter(|slot| !(200..250).contains(slot));
    let kill = after_a_kill(slots.map(|slot| (slot, slot)));
    assert_eq!(kill.slots_lost, 50);
    assert!(near(kill.rate_after.unwrap(), 149.0 / 199.0), "{kill:?}");
    let nothing_after = after_a_kill(own_and_all().take(20).map(|slot| (slot, slot)));
    assert_eq!(nothing_after.rate_after, None);
}

#[test]
fn inversions_are_those_of_a_comparison_of_all_pairs() {
    let mut random = StdRng::seed_from_u64(1);
    for jobs in [0, 1, 2, 10, 200] {
        let starts: Vec<Start> = (0..jobs)
            .map(|job| {
                // Few different instants, so that many are equal.
                let called = random.random_range(0..jobs);
                let accepted = random.random_bool(0.7).then(|| called + random.random_range(0..5));
                Start { job, called, accepted, started: called + random.random_range(0..30) }
            })
            .collect();
        let is_inverted =
            |a: &Start, b: &Start| a.accepted.unwrap_or(a.called) < b.called && b.started < a.started;
        let pairs = starts.iter().map(|a| starts.iter().filter(|b| is_inverted(a, b)).count() as u64);
        let expected: u64 = pairs.sum();
        assert!(expected > 0 || jobs <= 2);
        assert_eq!(inversions(&starts), expected, "of {jobs}");
    }
}

#[test]
fn percentiles_are_values_that_were_measured() {
    let of_hundred = spread((0..=100).map(f64::from)).unwrap();
    assert_eq!((of_hundred.min, of_hundred.p1, of_hundred.p50), (0.0, 1.0, 50.0));
    assert_eq!((of_hundred.p99, of_hundred.max), (99.0, 100.0));
    let of_one = spread([7.0]).unwrap();
    assert_eq!((of_one.min, of_one.p50, of_one.max), (7.0, 7.0, 7.0));
    assert_eq!(spread([]), None);
}

#[test]
fn what_is_noted_is_read_again_and_a_torn_line_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    for keep in [Keep::Nothing, Keep::Grants, Keep::All] {
        let path = &directory.path().join(format!("{keep:?}"));
        let book = Notebook::open(path, keep, 2).unwrap();
        let known = Start { job: 0, called: 10, accepted: Some(20), started: 30 };
        let again = Start { job: 0, called: 10, accepted: Some(20), started: 35 };
        let unknown = Start { job: 1, called: 11, accepted: None, started: 40 };
        for start in [known, again, unknown] {
            book.start(start);
        }
        book.grants([Grant { ticket: 7, slot: 5, sent: 4 }]);
        let lines = std::fs::read_to_string(path).unwrap().lines().count();
        assert_eq!(
            lines,
            match keep {
                Keep::Nothing => 4,
                Keep::Grants => 3,
                Keep::All => 0,
            }
        );
        book.finish(9, Some(2));
        File::options().append(true).open(path).unwrap().write_all(b"S 5 1").unwrap();

        let mut log = Log::read(path).unwrap();
        log.starts.sort_by_key(|start| start.started);
        assert_eq!(log.starts, [known, again, unknown]);
        assert_eq!(log.grants, [Grant { ticket: 7, slot: 5, sent: 4 }]);
        assert_eq!((log.cpu, log.operations), (Some(9), Some(2)));
    }
}

#[test]
fn a_job_may_be_accepted_by_another_process_than_starts_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes");
    std::fs::write(&path, "S 1 2 - 5\nS 2 3 - 6\nS 3 4 - 7\nA 1 4\nA 2 8\n").unwrap();
    let accepted: Vec<_> = Log::read(&path).unwrap().starts.iter().map(|start| start.accepted).collect();
    assert_eq!(accepted, [Some(4), None, None], "the second had started before");
}

#[test]
fn notes_that_say_nothing_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes");
    for line in ["S 1 2 3", "S 1 x 3 4", "hello", "C", ""] {
        std::fs::write(&path, format!("{line}\n")).unwrap();
        assert!(Log::read(&path).is_err(), "{line:?}");
    }
    std::fs::write(&path, "S 1 2 - 4 what others add\n").unwrap();
    assert_eq!(Log::read(&path).unwrap().starts.len(), 1);
}

/// When four workers offer 500 jobs each.
fn offers(offer: Offer) -> Vec<Vec<u64>> {
    let of_worker = |worker| {
        let (store, out) = (String::new(), Default::default());
        let interval_us = INTERVAL / 1000;
        Assignment { store, interval_us, jobs: 500, worker, workers: 4, out, offer, seed: 1 }
            .offers()
            .collect()
    };
    (0..4).map(of_worker).collect()
}

#[test]
fn workers_together_offer_twice_the_rate_evenly() {
    let mut all = offers(Offer::Saturated).concat();
    all.sort_unstable();
    assert!(all.iter().zip(0..).all(|(at, n)| *at == n * INTERVAL / 2));
}

#[test]
fn workers_together_offer_half_the_rate_at_random() {
    let each = offers(Offer::Sparse);
    for (n, worker) in each.iter().enumerate() {
        // 500 gaps with a mean of eight intervals: their sum is within five deviations.
        let sum = worker[499] as f64 / (8 * INTERVAL * 500) as f64;
        assert!((0.77..1.23).contains(&sum), "{sum}");
        assert!(worker.is_sorted() && each[..n].iter().all(|other| other != worker));
        // As often as not a gap is shorter than ln 2 times the mean.
        let short = worker.windows(2).filter(|pair| pair[1] - pair[0] < 55_451_774).count();
        assert!((190..310).contains(&short), "{short}");
    }
    assert_eq!(each, offers(Offer::Sparse));
}

#[test]
fn every_plan_has_a_name_of_its_own_and_as_many_jobs_for_each_process() {
    for quick in [false, true] {
        let plans = table(quick);
        let names: BTreeSet<String> = plans.iter().map(Plan::name).collect();
        assert_eq!(names.len(), plans.len());
        for plan in &plans {
            assert!(plan.jobs > 0 && plan.jobs % u64::from(plan.processes) == 0, "{plan:?}");
            let Some(after) = plan.kill_after else { continue };
            // Until the lease has ended and two seconds more the queue is full.
            let until = after + plan.lease.unwrap() + std::time::Duration::from_secs(2);
            let left = plan.jobs - plan.jobs / u64::from(plan.processes);
            assert!(plan.interval * u32::try_from(left).unwrap() > until, "{plan:?}");
        }
    }
}

#[test]
fn waits_that_a_trace_interrupts_are_no_system_calls() {
    let quiet = "1 restart_syscall(<... resuming interrupted read ...> <unfinished ...>\n\
                 2 epoll_wait(3, [], 1024, -1) = -1 EINTR (Interrupted system call)\n\
                 2 epoll_wait(3,  <detached ...>\n";
    assert_eq!(finished_calls(quiet), 0);
    let busy = "1 <... restart_syscall resumed>)    = -1 ETIMEDOUT (Connection timed out)\n\
                1 munmap(0x7f5112775000, 16048)     = 0\n\
                1 exit(0)                           = ?\n\
                1 +++ exited with 0 +++\n";
    assert_eq!(finished_calls(&format!("{quiet}{busy}")), 3);
}

#[test]
#[ignore = "needs cargo to build the benchmark: scripts/test runs it"]
fn the_benchmark_measures_and_stores() {
    let directory = tempfile::tempdir().unwrap();
    let stored = directory.path().join("new").join("pace.json");
    // With the features of `scripts/test`, so that little is left to be built.
    let output = super::cargo()
        .args(["test", "--quiet", "--workspace", "--all-features", "--bench", "pace", "--"])
        .args(["--quick", "--only", "saturated tmpfs 1ms", "--only", "saturated memory 1ms", "--json"])
        .arg(&stored)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("interval-queue saturated memory"));
    let report: Report = serde_json::from_slice(&std::fs::read(&stored).unwrap()).unwrap();
    assert!(!report.machine.processor.is_empty() && report.versions.contains_key("interval-queue"));
    for pace in &report.paces {
        assert_eq!(pace.failure, None);
        let [run] = &*pace.runs else { panic!("{} runs", pace.runs.len()) };
        assert_eq!((run.started, run.lost, run.twice), (pace.jobs, 0, 0), "{}", pace.state);
        assert!(run.closest_slots.unwrap() >= pace.interval && run.rate > 0.1, "{run:?}");
        assert!(run.operations.unwrap() > 0.0 && run.cpu.unwrap() > 0.0 && run.lateness.unwrap().min >= 0.0);
        assert_eq!(pace.sample.len() as u64, pace.jobs);
    }
}
