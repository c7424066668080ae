//! G9: a replica takes the place of a master that is frozen, and the old master comes back later.

use std::thread;

use interval_queue_test_support::{RedisServer, SENTINEL_MASTER};

use crate::process::{Chaos, Injection, Scene, ms, now, on, times};

on! { redis, redis_with_sentinel, ["needs redis-server: scripts/test runs it"];
    a_replica_promoted,
    a_failover_ordered,
}

fn a_replica_promoted(scene: &mut Scene) {
    scene.place.add_parameter("timeout=500ms");
    let mut chaos = Chaos::usual(scene, times(1, 5));
    while chaos.goes_on(ms(300)) {
        let servers = scene.place.redis_servers();
        let [first, second, sentinel] = servers else { panic!("a master, a replica and a sentinel") };
        let first_leads = master(sentinel) == first.port();
        let (old, new) = if first_leads { (first, second) } else { (second, first) };
        let begun = now();
        old.freeze();
        sentinel.wait_until("the replica is promoted", |sentinel| master(sentinel) == new.port());
        chaos.note(scene, Injection::since(begun, None));

        let servers = scene.place.redis_servers();
        let old = &servers[usize::from(!first_leads)];
        old.thaw();
        let goes_on = scene.log.count_of_starts() + 50;
        scene.wait_for_starts(goes_on);
        if chaos.is_to_go_on() {
            let old = &scene.place.redis_servers()[usize::from(!first_leads)];
            old.wait_until("the old master follows the new one", |old| {
                let follows =
                    |info: &str| info.contains("role:slave") && info.contains("master_link_status:up");
                // It hangs up when its role changes.
                old.try_command(&["INFO", "replication"]).is_ok_and(|info| follows(&info.concat()))
            });
            // A sentinel does not replace a master again so soon.
            thread::sleep(ms(3_000));
        }
    }
    let outcome = chaos.end(scene);
    let promised =
        "G9: a failover that loses the last writes costs at most one early start, never a job or a burst";
    outcome.tell(
        scene,
        "the master frozen, its replica promoted by Sentinel, the old master back later",
        promised,
    );
    assert!(!scene.log.troubles().is_empty(), "G10: the outage is told");
    outcome.assert_sound(scene, outcome.injections.len());
    outcome.assert_recovery_within(scene, ms(10_000));
}

/// As before a maintenance: the old master serves on until it is told that it is a replica now. What it
/// granted meanwhile the new one does not know.
fn a_failover_ordered(scene: &mut Scene) {
    scene.place.add_parameter("timeout=500ms");
    let outcome = Chaos::usual(scene, times(1, 4)).harmed(scene, ms(300), |_, scene| {
        let [first, second, sentinel] = scene.place.redis_servers() else { panic!("three servers") };
        let old = if master(sentinel) == first.port() { first } else { second };
        sentinel.wait_until("the sentinel finds a good replica", |sentinel| {
            sentinel.try_command(&["SENTINEL", "FAILOVER", SENTINEL_MASTER]).is_ok()
        });
        old.wait_until("the old master has become a replica", |old| {
            let info = old.try_command(&["INFO", "replication"]);
            info.is_ok_and(|info| info.concat().contains("role:slave"))
        });
    });
    let promised =
        "G9: a failover that loses the last writes costs at most one early start, never a job or a burst";
    outcome.tell(scene, "a failover ordered from Sentinel while all serve", promised);
    outcome.assert_sound(scene, outcome.injections.len());
    outcome.assert_recovery_within(scene, ms(10_000));
}

/// The port of the server that the sentinel names.
fn master(sentinel: &RedisServer) -> u16 {
    sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SENTINEL_MASTER])[1].parse().unwrap()
}
