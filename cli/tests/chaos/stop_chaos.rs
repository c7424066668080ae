//! T2: workers are stopped with SIGSTOP at random instants, for less and for longer than their leases, and go on.

use rand::RngExt;

use crate::{
    harm::Harm,
    outcome::Outcome,
    process::{Scene, ms, now, times},
    scenes::everywhere,
};

everywhere!(workers_stopped);

fn workers_stopped(scene: &mut Scene) {
    let mut harm = Harm::usual(scene, times(8, 100));
    while harm.goes_on(ms(300)) {
        let victim = harm.somebody();
        let is_long = harm.random.random_bool(0.6);
        let length = if is_long { harm.length(ms(1_300), ms(2_200)) } else { harm.length(ms(5), ms(600)) };
        let begun = now();
        let number = harm.freeze(victim, length);
        harm.note(begun, Some(number));
    }
    let outcome = harm.end(scene);
    let promised = "T2: what a stopped worker ran runs elsewhere after its lease of 1 s; what it says of it later changes \
                    nothing, and it is told so";
    outcome.tell(scene, "SIGSTOP of a worker for up to 2.2 s, then SIGCONT", promised);
    // One that is stopped in the middle of a transaction keeps the others waiting until it goes on.
    outcome.assert_sound(scene, ms(2_200) + Outcome::a_lease());
}
