//! How many tasks a second go through workers while they are added.

use crate::{
    adds::{per_task, prepare},
    case::Scale,
    place::Place,
    server::Figures,
    task_contender::Contender,
    task_crew::{self, Done},
};

/// Workers, ours with `jobs` at once, which add what they run.
pub(crate) async fn measure(
    place: &Place,
    contender: &Contender,
    jobs: usize,
    scale: Scale,
) -> Option<Figures> {
    let before = place.server.work().await;
    let done = run(place, contender, jobs, scale).await?;
    let mut figures = vec![("tasks a second", done.rate()), ("CPU, µs", done.cpu * 1e6 / done.count)];
    if !contender.is_peer() {
        figures.push(("commands", done.commands / done.count));
    }
    figures.extend(per_task(before, place.server.work().await, done.count));
    Some(figures)
}

pub(crate) async fn run(place: &Place, contender: &Contender, jobs: usize, scale: Scale) -> Option<Done> {
    prepare(place, contender).await?;
    task_crew::run(contender.steady(place, jobs), usize::MAX, scale.time).await
}
