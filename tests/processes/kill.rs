//! G4 on real processes: whoever is killed, the others lose nothing but the slots of the dead until its lease
//! ends. Killing at random instants is in `chaos/kill.rs`.

use std::thread;

use crate::process::{Options, Scene, everywhere, finish, keep, micros, ms, now, stop_and_finish};

everywhere!(
    two_killed_while_they_wait_cost_their_slots_until_their_leases_end,
    one_killed_while_its_jobs_run_frees_its_share,
);

fn two_killed_while_they_wait_cost_their_slots_until_their_leases_end(scene: &mut Scene) {
    let (interval, lease) = (ms(20), ms(2_000));
    let mut workers = scene.workers::<4>(Options::every(interval).lease(lease));
    keep(&mut workers, 15);
    scene.wait_for_starts(40);
    let [mut first, mut second, others @ ..] = workers;
    first.kill();
    second.kill();
    let killed = now();
    scene.wait_for_starts(scene.log.count_of_starts() + 120);
    stop_and_finish(others);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_tickets_unique();
    log.assert_paced(interval, 0);
    log.assert_in_order(interval);
    // Of the slots that came before the leases ended, half were those of the others, who may have been late
    // for some.
    let end = killed + micros(lease);
    let at = |from, to| log.slots_between(from, to).into_iter().map(|slot| slot.at);
    log.assert_kept_pace(at(killed, end), interval * 4);
    log.assert_kept_pace(at(end + micros(interval) * 4, u64::MAX), interval);
    assert!(scene.place.record().shards.is_empty());
}

fn one_killed_while_its_jobs_run_frees_its_share(scene: &mut Scene) {
    const LIMIT: u32 = 2;
    let lease = ms(1_000);
    let options = Options::every(ms(10)).lease(lease).max_running(LIMIT);
    let [mut victim, mut first, mut second] = scene.workers::<3>(options);
    victim.add_lasting(u64::from(LIMIT), ms(3_600_000));
    scene.wait_for_starts(LIMIT as usize);
    first.add_lasting(4, ms(30));
    second.add_lasting(4, ms(30));
    // Longer than the lease: it is renewed while jobs run.
    thread::sleep(lease + ms(500));
    assert_eq!(scene.log.starts().len(), LIMIT as usize, "no room while the jobs of the victim run");

    victim.kill();
    let killed = now();
    let expires_at = scene
        .place
        .record()
        .shards
        .values()
        .find(|presence| presence.head.is_none())
        .unwrap()
        .expires_at
        .get();
    finish([first, second]);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    let freed = log.starts_since(killed);
    assert_eq!(freed.len(), 8);
    let first = log.slots_between(killed, u64::MAX)[0];
    assert!(first.granted >= expires_at, "granted {} µs before the lease ended", expires_at - first.granted);
    let most = micros(ms(5_000)) + log.explained(expires_at, first.granted);
    assert!(first.granted < expires_at + most, "{} µs after the lease", first.granted - expires_at);
    // A job says that it ends before its room is free.
    let ends = log.ends();
    for start in &freed {
        let begun = freed.iter().filter(|other| other.at <= start.at).count();
        let ended = ends.iter().filter(|end| **end <= start.at).count();
        assert!(begun - ended <= LIMIT as usize, "{} ran at once", begun - ended);
    }
    assert!(scene.place.record().shards.is_empty());
}
