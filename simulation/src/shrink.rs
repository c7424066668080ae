//! Finds a short plan that breaks the same promise, by leaving out what is not needed (delta debugging:
//! Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002).

use crate::{
    check::Promise,
    plan::{Plan, Timed},
    run::run,
    store::Rules,
};

/// How many plans are tried at most.
const TRIES: usize = 2_000;

/// The shortest plan it can find that breaks `promise` as `plan` does.
pub fn shrink(plan: &Plan, promise: Promise, rules: Rules) -> Plan {
    let breaks =
        |plan: &Plan| run(plan, rules).violation.is_some_and(|violation| violation.promise == promise);
    let mut shortest = plan.clone();
    let mut tries = 0;
    let mut chunk = shortest.events.len().div_ceil(2);
    while chunk > 0 && tries < TRIES {
        let mut start = 0;
        let mut removed = false;
        while start < shortest.events.len() && tries < TRIES {
            let end = (start + chunk).min(shortest.events.len());
            let rest: Vec<Timed> = [&shortest.events[..start], &shortest.events[end..]].concat();
            let shorter = Plan { events: rest, ..shortest.clone() };
            tries += 1;
            if breaks(&shorter) {
                shortest = shorter;
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
