//! G8 and G9: a person edits the state file while shards run: another interval, a pause.

use std::fs;

use serde_json::Value;

use crate::process::{Chaos, Scene, ms, on_file, times, wait_until};

on_file!(interval_edited, pause_edited);

const EDIT: &str = "an edit that races a command is an old copy put back: at most one early start (G9)";

fn interval_edited(scene: &mut Scene) {
    let mut chaos = Chaos::usual(scene, times(10, 100));
    let mut slow = false;
    while chaos.goes_on(ms(150)) {
        slow = !slow;
        let interval = if slow { 25_000 } else { 10_000 };
        chaos.harm(scene, |_, scene| edit(scene, "/meters/0/interval", interval.into()));
        // The shards work with it, and do not take it for a loss.
        assert_eq!(scene.place.record().interval().get(), interval, "G8: the edited interval is in force");
    }
    let outcome = chaos.end(scene);
    outcome.tell(
        scene,
        "the interval edited by hand in the state file",
        &format!("G8: in force for all shards; {EDIT}"),
    );
    outcome.assert_sound(scene, outcome.injections.len());
    outcome.assert_recovery_within(scene, ms(1_000));
    scene.log.assert_untroubled();
}

fn pause_edited(scene: &mut Scene) {
    let mut chaos = Chaos::usual(scene, times(3, 30));
    while chaos.goes_on(ms(150)) {
        let length = chaos.length(ms(1_000), ms(1_400));
        chaos.harm_for(
            scene,
            length,
            |scene| edit(scene, "/paused", true.into()),
            |chaos, scene, ()| {
                edit(scene, "/paused", false.into());
                // After a pause a shard that went idle goes on with its next tick.
                chaos.workers.iter_mut().for_each(|worker| worker.begin_to_tick());
            },
        );
    }
    let outcome = chaos.end(scene);
    let promised = format!("G8: all shards stop within a second, and go on with a tick; {EDIT}");
    outcome.tell(scene, "a pause edited by hand into the state file, and out of it", &promised);
    outcome.assert_sound(scene, outcome.injections.len());
    outcome.assert_quiet_meanwhile(scene);
    outcome.assert_recovery_within(scene, ms(1_000));
}

/// Changes one field as a person does with an editor, who takes no lock. A command that is under way may undo
/// that; then the person edits again. Once the lock was to be had, all commands that had read the file before
/// are over.
fn edit(scene: &Scene, pointer: &str, value: Value) {
    let path = scene.place.path();
    let file = || -> Value { serde_json::from_slice(&fs::read(&path).unwrap()).unwrap() };
    wait_until("an edit stays", || {
        let mut edited = file();
        *edited["queues"]["test"].pointer_mut(pointer).unwrap() = value.clone();
        let copy = path.with_extension("edited");
        fs::write(&copy, edited.to_string()).unwrap();
        fs::rename(copy, &path).unwrap();
        !scene.place.is_locked() && file()["queues"]["test"].pointer(pointer) == Some(&value)
    });
}
