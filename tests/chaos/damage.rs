//! G9: the state file is deleted, rewound and damaged while shards run, and its lock is deleted.

use std::{fs, path::Path, thread};

use rand::RngExt;

use crate::process::{Chaos, Outcome, Scene, micros, ms, now, on_file, times, wait_until};

on_file!(file_deleted, old_copy_put_back, lock_deleted, file_truncated, file_overwritten_with_garbage);

const LOSES: &str = "G9: a loss costs a wait of an interval and the longest lead, at most one early start, and never a \
                     job or a burst";
const REFUSED: &str =
    "it is refused, told and never overwritten; once a person has put it right work goes on by itself";
/// The longest wait between two tries, with jitter.
const RETRY: u64 = 10_000;

fn assert_made_good(scene: &Scene, outcome: &Outcome) {
    outcome.assert_sound(scene, outcome.injections.len());
    outcome.assert_recovery_within(scene, ms(RETRY));
    scene.place.assert_no_litter(false);
}

fn file_deleted(scene: &mut Scene) {
    let mut chaos = Chaos::usual(scene, times(15, 120));
    while chaos.goes_on(ms(80)) {
        // It may be that nobody has made it again since the last time.
        chaos.harm(scene, |_, scene| drop(fs::remove_file(scene.place.path())));
    }
    let outcome = chaos.end(scene);
    outcome.tell(scene, "the state file deleted", LOSES);
    assert_made_good(scene, &outcome);
}

fn old_copy_put_back(scene: &mut Scene) {
    let elsewhere = tempfile::tempdir_in(scene.place.path().parent().unwrap().parent().unwrap()).unwrap();
    let old = elsewhere.path().join("old");
    let mut chaos = Chaos::usual(scene, times(12, 120));
    while chaos.is_to_go_on() {
        fs::copy(scene.place.path(), &old).unwrap();
        let age = chaos.length(ms(0), ms(500));
        thread::sleep(age);
        chaos.harm(scene, |_, scene| put(&old, &scene.place.path()));
    }
    let outcome = chaos.end(scene);
    outcome.tell(scene, "an old copy of the state file put back, up to 0.6 s old", LOSES);
    assert_made_good(scene, &outcome);
}

fn lock_deleted(scene: &mut Scene) {
    let outcome = Chaos::usual(scene, times(15, 120)).harmed(scene, ms(50), |_, scene| {
        let lock = scene.place.path().with_extension("json.lock");
        assert!(fs::remove_file(lock).is_ok(), "G1: the lock was made anew");
    });
    outcome.tell(scene, "the lock file deleted", "G1, G2: the lock is made anew, and goes on to exclude");
    outcome.assert_tickets_unique();
    outcome.assert_sound(scene, 0);
    assert_made_good(scene, &outcome);
}

fn file_truncated(scene: &mut Scene) {
    let refused = Chaos::usual(scene, times(5, 40))
        .harmed(scene, ms(100), |chaos, scene| {
            let half = chaos.random.random_bool(0.5);
            let length = chaos.length(ms(0), ms(200));
            let path = scene.place.path();
            let bytes = fs::read(&path).unwrap();
            let left = if half { &bytes[..bytes.len() / 2] } else { &[] };
            damage(scene, left);
            thread::sleep(length);
            assert_eq!(fs::read(&path).unwrap(), left, "G9: a damaged file is never overwritten");
            // A person does what the error says.
            fs::remove_file(&path).unwrap();
        })
        .noting_refused();
    refused.tell(scene, "the state file truncated to nothing or to half", &format!("G9: {REFUSED}"));
    assert_made_good(scene, &refused);
}

fn file_overwritten_with_garbage(scene: &mut Scene) {
    const GARBAGE: [&[u8]; 5] = [
        b"{\"interval_queue\": 1, \"queues\": {\"test\": {\"version\": 1}}}",
        b"{\"interval_queue\": 1, \"queues\": {\"test\": {",
        b"paused: true\n",
        b"\xff\xfe\x00",
        b"[1, 2, 3]",
    ];
    let mut chaos = Chaos::usual(scene, times(5, 40));
    let mut copy = Vec::new();
    while chaos.goes_on(ms(100)) {
        let garbage = GARBAGE[chaos.random.random_range(0..GARBAGE.len())];
        let length = chaos.length(ms(0), ms(200));
        chaos.harm(scene, |_, scene| {
            let path = scene.place.path();
            copy = fs::read(&path).unwrap();
            damage(scene, garbage);
            thread::sleep(length);
            assert_eq!(fs::read(&path).unwrap(), garbage, "G9: garbage is refused and never overwritten");
            let good = path.with_file_name("good");
            fs::write(&good, &copy).unwrap();
            put(&good, &path);
        });
    }
    let outcome = chaos.end(scene).noting_refused();
    outcome.tell(
        scene,
        "the state file overwritten with garbage, later replaced by a good copy",
        &format!("G9: {REFUSED}"),
    );
    assert_made_good(scene, &outcome);
}

/// Leaves nothing but these bytes in the state file. Whoever had read it before may still replace it, so this
/// is done again until a shard has noticed; from then on nobody may.
fn damage(scene: &Scene, bytes: &[u8]) {
    let told = scene.log.count_of_troubles("");
    wait_until("a shard tells of the damage", || {
        // A command that is just overwriting the file leaves a mixture.
        while fs::read(scene.place.path()).ok().as_deref() != Some(bytes) {
            fs::write(scene.place.path(), bytes).unwrap();
        }
        let begun = now();
        while now() < begun + micros(ms(50)) && scene.log.count_of_troubles("") == told {
            thread::sleep(ms(1));
        }
        scene.log.count_of_troubles("") > told
    });
}

/// Puts one file in the place of another at once, so that nobody reads half of it.
fn put(file: &Path, place: &Path) {
    let copy = file.with_extension("copy");
    fs::copy(file, &copy).unwrap();
    fs::rename(copy, place).unwrap();
    if file.parent() == place.parent() {
        fs::remove_file(file).unwrap();
    }
}
