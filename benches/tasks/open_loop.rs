//! How soon tasks start that come at a rate of their own, whatever runs them.

use std::time::Duration;

use crate::{
    adds::prepare,
    case::Scale,
    place::{Place, Places},
    server::Figures,
    steady,
    task_contender::{Contender, JOBS, PROCESSES},
    task_crew::{self, Done},
};

/// How many come in a second where they find idle workers.
const IDLE: f64 = 50.0;
/// Workers take a moment to come to work.
const LEAST: Duration = Duration::from_secs(1);

/// At half of what the same workers manage while they add, and on an idle queue.
pub(crate) async fn measure(
    place: &Place,
    contender: &Contender,
    places: &mut Places,
    scale: Scale,
) -> Option<Figures> {
    // In less time the tasks that are added before the first start would count too much.
    let longer = Scale { time: (2 * scale.time).max(LEAST), ..scale };
    let capacity = steady::run(&places.make(place.setting), contender, JOBS, longer).await?.rate();
    let rate = (capacity / 2.0).round().max(1.0);
    let done = offer(place, contender, PROCESSES, rate, (2 * scale.time).max(LEAST)).await?;
    let (started, offered) = (done.late.len() as f64, done.count - done.late.len() as f64);
    let idle = places.make(place.setting);
    let idle = offer(&idle, contender, 1, IDLE, (4 * scale.time).max(LEAST)).await?;
    Some(vec![
        ("offered a second", rate),
        ("not started, %", 100.0 * (1.0 - started / offered).max(0.0)),
        ("p50, µs", quantile(&done, 0.5)?),
        ("p99, µs", quantile(&done, 0.99)?),
        ("idle p50, µs", quantile(&idle, 0.5)?),
        ("idle p99, µs", quantile(&idle, 0.99)?),
    ])
}

async fn offer(
    place: &Place,
    contender: &Contender,
    workers: usize,
    rate: f64,
    time: Duration,
) -> Option<Done> {
    prepare(place, contender).await?;
    task_crew::run(contender.open_loop(place, workers, rate), usize::MAX, time).await
}

/// The lateness that this part of the tasks does not exceed.
fn quantile(done: &Done, part: f64) -> Option<f64> {
    let mut late = done.late.clone();
    late.sort_by(f64::total_cmp);
    late.get(((late.len() as f64 * part) as usize).min(late.len().saturating_sub(1))).copied()
}
