//! T1 to T3: workers are killed with `kill -9` at random instants, and others take their places.

use crate::{
    harm::Harm,
    outcome::Outcome,
    process::{Scene, ms, now, times},
    scenes::everywhere,
};

everywhere!(workers_killed);

fn workers_killed(scene: &mut Scene) {
    let mut harm = Harm::usual(scene, times(15, 320));
    while harm.goes_on(ms(600)) {
        let victim = harm.somebody();
        let begun = now();
        let number = harm.kill(scene, victim);
        harm.note(begun, Some(number));
    }
    let outcome = harm.end(scene);
    let promised = "T1 to T3: what a dead worker ran runs again after its lease of 1 s, never beside it, and none is lost";
    outcome.tell(scene, "kill -9 of a worker at a random instant", promised);
    outcome.assert_sound(scene, Outcome::a_lease());
}
