//! Runs a world in virtual time.

use std::time::Duration;

use tokio::runtime::Builder;

use crate::world::{Settings, World};

/// Runs `what` in a world of its own, on this thread and in virtual time, and gives its result.
///
/// Everything in it is repeated exactly under the same seed, as long as `what` takes its time from tokio or
/// the world, and its chance from the world.
///
/// ```
/// use std::time::Duration;
/// use interval_queue_sim::{Settings, simulate};
///
/// let violation = simulate(Settings::seeded(7), |world| async move {
///     for number in 0..3 {
///         let process = world.start_process(format!("worker {number}"), 0);
///         let service = process.clone();
///         process.run(async move {
///             let queue = service.queue("mail").interval(Duration::from_millis(100)).open(service.clone()).await;
///             let queue = queue.expect("the store can be reached");
///             for _ in 0..10 {
///                 queue.add(async { /* what the service does */ }).await.expect("it is in the line");
///             }
///         });
///         if number == 1 {
///             tokio::time::sleep(Duration::from_millis(300)).await;
///             process.kill();
///         }
///     }
///     world.lose_state();
///     tokio::time::sleep(Duration::from_secs(60)).await;
///     world.violation()
/// });
/// assert_eq!(violation, None);
/// ```
///
/// # Panics
///
/// If the operating system refuses what a tokio runtime needs, or `what` panics.
pub fn simulate<T, F: Future<Output = T>>(settings: Settings, what: impl FnOnce(World) -> F) -> T {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    #[allow(clippy::expect_used, reason = "documented; it needs no more than memory")]
    let runtime = runtime.expect("a runtime without I/O");
    let result = runtime.block_on(async { what(World::new(&settings)).await });
    runtime.shutdown_timeout(Duration::ZERO);
    result
}
