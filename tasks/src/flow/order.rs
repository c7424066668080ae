//! The order in which the tasks of a flow are added: each after its upstreams.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use crate::{Task, error::Error};

/// Otherwise in the given order. Unknown names, and tasks that name themselves, are left: adding
/// the flow rejects them.
///
/// # Errors
///
/// Tasks wait for each other in a cycle.
pub(super) fn in_order(tasks: Vec<(String, Task)>) -> Result<Vec<(String, Task)>, Error> {
    let mut downstream: HashMap<String, Vec<usize>> = HashMap::new();
    let names: HashMap<&str, usize> = tasks.iter().map(|(name, _)| name.as_str()).zip(0..).collect();
    let mut waits = vec![0; tasks.len()];
    for (at, (name, task)) in tasks.iter().enumerate() {
        for upstream in task.named_upstreams().filter(|up| up != name && names.contains_key(up)) {
            downstream.entry(upstream.to_owned()).or_default().push(at);
            waits[at] += 1;
        }
    }
    let mut free: BinaryHeap<_> = (0..tasks.len()).filter(|&at| waits[at] == 0).map(Reverse).collect();
    let mut tasks: Vec<Option<(String, Task)>> = tasks.into_iter().map(Some).collect();
    let mut ordered = Vec::with_capacity(tasks.len());
    while let Some(Reverse(at)) = free.pop() {
        let Some((name, task)) = tasks[at].take() else { continue };
        for down in downstream.remove(&name).unwrap_or_default() {
            waits[down] -= 1;
            if waits[down] == 0 {
                free.push(Reverse(down));
            }
        }
        ordered.push((name, task));
    }
    let left: Vec<_> = tasks.into_iter().flatten().collect();
    if left.is_empty() {
        return Ok(ordered);
    }
    let text = format!("{}: a task cannot wait for itself, directly or through others", cycle(&left));
    Err(Error::invalid(text))
}

/// All of `left` wait for another task of `left`.
fn cycle(left: &[(String, Task)]) -> String {
    let named: HashMap<&str, &Task> = left.iter().map(|(name, task)| (name.as_str(), task)).collect();
    let (mut way, mut places): (Vec<&str>, HashMap<&str, usize>) = Default::default();
    let mut next = left.first().map(|(name, _)| name.as_str());
    while let Some(name) = next {
        if let Some(&begin) = places.get(name) {
            let cycle: Vec<String> = way[begin..].iter().map(|name| format!("{name:?}")).collect();
            return format!("{} waits for {}", cycle.join(" waits for "), cycle[0]);
        }
        places.insert(name, way.len());
        way.push(name);
        next = named.get(name).and_then(|task| task.named_upstreams().find(|up| named.contains_key(up)));
    }
    format!("{:?} waits for itself", left[0].0)
}
