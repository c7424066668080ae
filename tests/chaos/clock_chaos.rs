//! G1 and G4: the host's clock is stepped under a state file or a database, forward and back. The tests' own
//! clock is steady.

use interval_queue_test_support::FakeClock;
use rand::RngExt;

use crate::process::{Chaos, Outcome, Scene, counted, micros, ms, now, on, times};

on! { json_file, file, ["needs libfaketime: scripts/test runs it"]; clock_stepped_far, clock_stepped_a_little }
#[cfg(feature = "sqlite")]
on! { sqlite, sqlite, ["needs libfaketime: scripts/test runs it"]; clock_stepped_far, clock_stepped_a_little }

/// The shards' clock, which is right at first.
fn begin(scene: &mut Scene, times: usize) -> (Chaos, FakeClock) {
    let clock = FakeClock::new();
    scene.variables.extend(clock.variables());
    let mut chaos = Chaos::usual(scene, times);
    chaos.is_clock_stepped = true;
    (chaos, clock)
}

fn clock_stepped_far(scene: &mut Scene) {
    let mut shown = Shown { past: Vec::new(), since: now() };
    let (mut chaos, clock) = begin(scene, times(12, 120));
    let (mut ahead, mut forward) = (0_i64, 0);
    while chaos.goes_on(ms(500)) {
        let true_time = now();
        let step = loop {
            // Short steps as often as long ones.
            let exponent = chaos.random.random_range(1.3..=10.1);
            let step = (f64::exp2(exponent) * 10_000_000.0) as i64;
            let step = if chaos.random.random_bool(0.5) { step } else { -step };
            if shown
                .is_new(true_time.saturating_add_signed(ahead), true_time.saturating_add_signed(ahead + step))
            {
                break step;
            }
        };
        chaos.harm(scene, |_, _| clock.set(ahead + step));
        shown.step(true_time.saturating_add_signed(ahead), true_time.saturating_add_signed(ahead + step));
        ahead += step;
        forward += usize::from(step > 0);
    }
    let outcome = chaos.end(scene);
    let outcome = outcome.note(format!("{} of the steps forward", counted(forward)));
    let promised =
        "G1: on the stepped clock slots keep their distance; G4: a step costs nobody a job and no long wait";
    outcome.tell(scene, "the host's clock stepped by seconds to hours, forward and back", promised);
    hold_to_promises(scene, &outcome);
    outcome.assert_no_pause_beyond(scene, ms(1_000));
}

/// What the clock has shown. It is never set to a time that it has shown before, nor shortly before one:
/// slots of different times cannot be compared on a clock that shows them twice.
struct Shown {
    past: Vec<(u64, u64)>,
    since: u64,
}

impl Shown {
    /// How far ahead slots are granted at most, and more.
    const AHEAD: u64 = 3_000_000;
    /// Longer than any step is left standing.
    const STAY: u64 = 60_000_000;

    fn is_new(&self, from: u64, to: u64) -> bool {
        let mut all = self.past.iter().copied().chain([(self.since, from + Self::AHEAD)]);
        all.all(|(first, last)| to > last || to + Self::STAY < first)
    }

    fn step(&mut self, from: u64, to: u64) {
        self.past.push((self.since, from + Self::AHEAD));
        self.since = to;
    }
}

fn clock_stepped_a_little(scene: &mut Scene) {
    let (mut chaos, clock) = begin(scene, times(8, 100));
    let mut ahead = 0;
    while chaos.goes_on(ms(150)) {
        // Back from the true time and forward to it, so that steps back do not add up to a long one.
        let longest = micros(ms(900)) as i64;
        ahead = if ahead == 0 { -chaos.random.random_range(1..=longest) } else { 0 };
        chaos.harm(scene, |_, _| clock.set(ahead));
    }
    let outcome = chaos.end(scene);
    let promised = "G1: on the stepped clock slots keep their distance; a step back of less than a second costs a wait as \
                    long as the step";
    outcome.tell(scene, "the host's clock stepped by less than a second, forward and back", promised);
    hold_to_promises(scene, &outcome);
    outcome.assert_no_pause_beyond(scene, ms(1_000));
}

fn hold_to_promises(scene: &Scene, outcome: &Outcome) {
    outcome.assert_sound(scene, 0);
    outcome.assert_tickets_unique();
    scene.log.assert_untroubled();
}
