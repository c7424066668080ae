//! How many tasks a second go through workers while they are added.

use crate::{
    adds::{per_task, prepare},
    case::Scale,
    place::Place,
    server::Figures,
    task_contender::{Contender, PROCESSES, ours},
    task_crew::{self, Done},
};

/// Workers with so many jobs, which add what they run.
pub(crate) async fn measure(place: &Place, jobs: usize, scale: Scale) -> Option<Figures> {
    prepare(place, &Contender::Worker).await?;
    let before = place.server.work().await;
    let done = run(place, jobs, scale).await?;
    let mut figures = vec![
        ("tasks a second", done.rate()),
        ("CPU, µs", done.cpu * 1e6 / done.count),
        ("commands", done.commands / done.count),
    ];
    figures.extend(per_task(before, place.server.work().await, done.count));
    Some(figures)
}

pub(crate) async fn run(place: &Place, jobs: usize, scale: Scale) -> Option<Done> {
    let worker = |_| {
        let mut command = ours("runner", place, [jobs]);
        command.arg("--adding");
        command
    };
    task_crew::run((0..PROCESSES).map(worker), usize::MAX, scale.time).await
}
