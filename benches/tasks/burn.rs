//! How many tasks a second processes run that were added before.

use std::time::Duration;

use crate::{
    adds::{per_task, prepare},
    case::Scale,
    place::Place,
    server::Figures,
    task_contender::{ADDED, Contender, PROCESSES},
    task_crew,
};

/// How many tasks wait at most, whatever runs them.
const TASKS: usize = 60_000;

/// Adds tasks, as many as there is time for, and has processes run them for a while.
pub(crate) async fn measure(
    place: &Place,
    contender: &Contender,
    batch: usize,
    size: usize,
    scale: Scale,
) -> Option<Figures> {
    prepare(place, contender).await?;
    let empty = place.server.memory();
    let tasks = TASKS / scale.share;
    let patience = 2 * scale.time;
    let added = task_crew::run(contender.adders(place, PROCESSES, tasks, [ADDED, size]), tasks, patience)
        .await?
        .count;
    let memory = place.server.memory().zip(empty).map(|(full, empty)| (full - empty) / added);
    let dead = place.server.dead().await;
    let before = place.server.work().await;
    let done = task_crew::run(contender.workers(place, batch), added as usize, scale.time).await?;
    let after = place.server.work().await;
    let mut figures = vec![("tasks a second", done.rate()), ("CPU, µs", done.cpu * 1e6 / done.count)];
    if !contender.is_peer() {
        figures.push(("commands", done.commands / done.count));
    }
    figures.extend(per_task(before, after, done.count));
    if let Some(before) = dead {
        // The server counts them a moment later.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let dead = place.server.dead().await? - before;
        figures.push(("dead rows", dead / done.count));
    }
    figures.extend(memory.map(|memory| ("memory of one that waits, bytes", memory)));
    Some(figures)
}
