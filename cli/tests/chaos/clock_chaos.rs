//! T1 to T3: the host's clock is stepped under the workers and the producer, forward and back.

use interval_queue_test_support::FakeClock;
use rand::RngExt;

use crate::{
    harm::Harm,
    outcome::Outcome,
    process::{Scene, ms, times},
    scenes::on,
};

on! { sqlite, sqlite, ["needs libfaketime: scripts/test runs it"]; clock_stepped }

fn clock_stepped(scene: &mut Scene) {
    let clock = FakeClock::new();
    scene.variables.extend(clock.variables());
    let mut harm = Harm::usual(scene, times(10, 120));
    let (mut ahead, mut highest) = (0_i64, 0);
    while harm.goes_on(ms(400)) {
        // Short steps as often as long ones: from 10 ms to three hours.
        let exponent = harm.random.random_range(0.0..=20.0);
        let step = (f64::exp2(exponent) * 10_000.0) as i64;
        ahead += if harm.random.random_bool(0.5) { step } else { -step };
        highest = highest.max(ahead);
        harm.harm(scene, |_, _| clock.set(ahead));
    }
    // A retry waits for an instant of the stepped clock.
    clock.set(highest);
    let outcome = harm.end(scene);
    let promised =
        "T1 to T3: a step costs nobody a task, makes none run twice at a time, and forgets none too early";
    outcome.tell(scene, "the host's clock stepped by 10 ms to three hours, forward and back", promised);
    outcome.assert_sound(scene, Outcome::a_lease());
}
