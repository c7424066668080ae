//! How trust in quick commands is earned.

use super::*;

/// How many commands that take so long it needs to be trusted.
fn commands_until_proven(estimate: &mut LatencyEstimate, took: Duration) -> Option<usize> {
    (0..100).find(|_| {
        estimate.is_quick() || {
            estimate.note(took);
            false
        }
    })
}

#[test]
fn trust_is_earned_by_quick_commands_and_lost_by_slow_ones() {
    let mut estimate = LatencyEstimate::default();
    assert_eq!(commands_until_proven(&mut estimate, QUICK_COMMAND), None);
    let mut estimate = LatencyEstimate::default();
    let at_first = commands_until_proven(&mut estimate, QUICK_COMMAND / 10).unwrap();
    assert!((2..10).contains(&at_first), "{at_first}");
    (0..10).for_each(|_| estimate.note(QUICK_COMMAND / 10));

    estimate.note(QUICK_COMMAND * 5);
    assert!(estimate.is_quick(), "a busy machine makes one slow now and then");
    estimate.note(QUICK_COMMAND * 100);
    assert!(!estimate.is_quick());
    let after = commands_until_proven(&mut estimate, QUICK_COMMAND / 10).unwrap();
    assert!((at_first..50).contains(&after), "{after}");

    (0..20).for_each(|_| estimate.note(QUICK_COMMAND * 2));
    assert!(!estimate.is_quick());
}
