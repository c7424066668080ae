//! How trust in quick commands is earned.

use super::*;

/// How many commands that take so long it needs to be trusted.
fn commands_until_proven(swiftness: &mut LatencyEstimate, took: Duration) -> Option<usize> {
    (0..100).find(|_| {
        swiftness.is_quick() || {
            swiftness.note(took);
            false
        }
    })
}

#[test]
fn trust_is_earned_by_quick_commands_and_lost_by_slow_ones() {
    let mut swiftness = LatencyEstimate::default();
    assert_eq!(commands_until_proven(&mut swiftness, QUICK), None);
    let mut swiftness = LatencyEstimate::default();
    let at_first = commands_until_proven(&mut swiftness, QUICK / 10).unwrap();
    assert!((2..10).contains(&at_first), "{at_first}");
    (0..10).for_each(|_| swiftness.note(QUICK / 10));

    swiftness.note(QUICK * 5);
    assert!(swiftness.is_quick(), "a busy machine makes one slow now and then");
    swiftness.note(QUICK * 100);
    assert!(!swiftness.is_quick());
    let after = commands_until_proven(&mut swiftness, QUICK / 10).unwrap();
    assert!((at_first..50).contains(&after), "{after}");

    (0..20).for_each(|_| swiftness.note(QUICK * 2));
    assert!(!swiftness.is_quick());
}
