//! How soon tasks start that come at a rate of their own, whatever runs them.

use std::time::Duration;

use crate::{
    case::Scale,
    place::{Place, Places},
    server::Figures,
    steady,
    task_contender::{PROCESSES, ours},
    task_crew::{self, Done},
};

/// How many run at once in a worker.
const JOBS: usize = 16;
/// How many come in a second where they are to find idle workers.
const SELDOM: f64 = 50.0;
/// Workers take a moment to come to work.
const LEAST: Duration = Duration::from_secs(1);

/// At half of what workers manage while they add, and on an idle queue.
pub(crate) async fn measure(place: &Place, places: &mut Places, scale: Scale) -> Option<Figures> {
    let half = steady::run(&places.make(place.setting), JOBS, scale).await?.rate() / 2.0;
    let done = offer(place, PROCESSES, half, (2 * scale.time).max(LEAST)).await?;
    let idle = offer(&places.make(place.setting), 1, SELDOM, (4 * scale.time).max(LEAST)).await?;
    let (started, offered) = (done.late.len() as f64, done.count - done.late.len() as f64);
    Some(vec![
        ("offered a second", half),
        ("not started, %", 100.0 * (1.0 - started / offered).max(0.0)),
        ("p50, µs", quantile(&done, 0.5)?),
        ("p99, µs", quantile(&done, 0.99)?),
        ("idle p50, µs", quantile(&idle, 0.5)?),
        ("idle p99, µs", quantile(&idle, 0.99)?),
    ])
}

async fn offer(place: &Place, workers: usize, rate: f64, time: Duration) -> Option<Done> {
    let mut adder = ours("adder", place, [1, 0, 0]);
    adder.args(["--rate", &rate.to_string()]);
    let workers = (0..workers).map(|_| ours("runner", place, [JOBS]));
    task_crew::run(workers.chain([adder]), usize::MAX, time).await
}

/// So late at most is that part of them.
fn quantile(done: &Done, part: f64) -> Option<f64> {
    let mut late = done.late.clone();
    late.sort_by(f64::total_cmp);
    late.get(((late.len() as f64 * part) as usize).min(late.len().saturating_sub(1))).copied()
}
