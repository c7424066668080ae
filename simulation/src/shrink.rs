//! Finds a short plan that breaks the same promise, by leaving out what is not needed (delta debugging:
//! Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002).

use crate::{
    check::Promise,
    plan::{Plan, Timed},
    run::run,
    store::Rules,
};

const MAX_RUNS: usize = 2_000;

/// The shortest plan it can find that breaks `promise` as `plan` does.
pub fn shrink(plan: &Plan, promise: Promise, rules: Rules) -> Plan {
    let of = |events: &[Timed]| Plan { events: events.to_vec(), ..plan.clone() };
    let breaks = |events: &[Timed]| {
        run(&of(events), rules).violation.is_some_and(|violation| violation.promise == promise)
    };
    of(&shortest(&plan.events, breaks))
}

pub(crate) fn shortest<E: Clone>(events: &[E], breaks: impl Fn(&[E]) -> bool) -> Vec<E> {
    let mut shortest = events.to_vec();
    let mut runs = 0;
    let mut chunk = shortest.len().div_ceil(2);
    while chunk > 0 && runs < MAX_RUNS {
        let mut start = 0;
        let mut removed = false;
        while start < shortest.len() && runs < MAX_RUNS {
            let end = (start + chunk).min(shortest.len());
            let rest: Vec<E> = [&shortest[..start], &shortest[end..]].concat();
            runs += 1;
            if breaks(&rest) {
                shortest = rest;
                removed = true;
            } else {
                start = end;
            }
        }
        if !removed {
            chunk /= 2;
        }
    }
    shortest
}
