//! G5 and G10: the network between shards and server is slow, breaks, swallows replies, and falls silent.

use crate::process::{Chaos, Scene, counted, ms, on, share_of_rate, times, wait_until};

on! { redis, redis_far_away, ["needs redis-server: scripts/test runs it"];
    latency_and_jitter,
    connections_cut,
    replies_lost,
    black_hole,
}
on! { postgres, postgres_far_away, ["needs postgresql: scripts/test runs it"];
    latency_and_jitter,
    connections_cut,
    replies_lost,
    black_hole,
}

/// Shards that give up waiting for an answer after this long.
fn begin(scene: &mut Scene, times: usize) -> Chaos {
    scene.place.add_parameter("timeout=400ms");
    Chaos::usual(scene, times)
}

fn latency_and_jitter(scene: &mut Scene) {
    let outcome = begin(scene, times(10, 100)).harmed(scene, ms(300), |chaos, scene| {
        let least = chaos.length(ms(0), ms(15));
        let longest = chaos.length(least, ms(40));
        scene.place.proxy().delay(least, longest);
    });
    let starts: Vec<_> = scene.log.starts().into_iter().map(|start| start.at).collect();
    let share = share_of_rate(&starts, ms(10));
    let outcome = outcome.note(format!("{:.0} % of the nominal rate", share * 100.0));
    let promised = "G1, G6: slots keep their distance, and the rate is nominal, not interval plus latency";
    outcome.tell(scene, "latency and jitter of up to 40 ms each way, changed at random", promised);
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    scene.log.assert_kept_pace(starts, ms(10));
}

fn connections_cut(scene: &mut Scene) {
    let outcome = begin(scene, times(15, 120)).harmed(scene, ms(50), |_, scene| scene.place.proxy().cut());
    outcome.tell(scene, "all connections cut", "G10: work goes on by itself, over new connections");
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    outcome.assert_recovery_within(scene, ms(1_000));
}

fn replies_lost(scene: &mut Scene) {
    let mut chaos = begin(scene, times(20, 200));
    let mut lost = 0;
    while chaos.goes_on(ms(50)) {
        let count = u32::from(chaos.length(ms(0), ms(3)) > ms(2)) + 1;
        lost += count as usize;
        chaos.harm(scene, |_, scene| {
            scene.place.proxy().lose_replies(count);
            wait_until("replies are lost", || scene.place.proxy().replies_to_lose() == 0);
        });
    }
    let outcome = chaos.end(scene);
    let outcome = outcome.note(format!("{} replies lost", counted(lost)));
    let promised =
        "G5: a lost reply costs a slot, never a second start; a ticket that was taken is not taken twice";
    outcome.tell(scene, "a connection cut between request and reply", promised);
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    outcome.assert_recovery_within(scene, ms(1_000));
}

fn black_hole(scene: &mut Scene) {
    let mut chaos = begin(scene, times(4, 40));
    while chaos.goes_on(ms(150)) {
        let length = chaos.length(ms(10), ms(1_500));
        chaos.harm_for(
            scene,
            length,
            |scene| scene.place.proxy().fall_silent(),
            |_, scene, ()| scene.place.proxy().speak(),
        );
    }
    let outcome = chaos.end(scene);
    let promised =
        "G10: nothing starts, the application is told after the time-out, and work goes on by itself";
    outcome.tell(
        scene,
        "half-open connections: a black hole for up to 1.5 s that keeps those it swallowed",
        promised,
    );
    assert!(!scene.log.troubles().is_empty(), "G10: a server that does not answer is told of");
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    outcome.assert_quiet_meanwhile(scene);
    // The time-out, and the longest wait between two tries after so short an outage.
    outcome.assert_recovery_within(scene, ms(400) + ms(5_000));
}
