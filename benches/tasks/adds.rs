//! How many tasks a second processes add.

use crate::{case::Scale, hand::Hand, place::Place, server::Figures, task_contender::Contender, task_crew};

/// More than there is time for.
const NO_END: usize = 1 << 40;

/// Has processes add for a while, so many at once.
pub(crate) async fn measure(
    place: &Place,
    contender: &Contender,
    processes: usize,
    batch: [usize; 2],
    scale: Scale,
) -> Option<Figures> {
    prepare(place, contender).await?;
    let before = place.server.work().await;
    let adders = contender.adders(place, processes, NO_END, batch);
    let done = task_crew::run(adders, NO_END, scale.time).await?;
    let mut figures = vec![("tasks a second", done.rate()), ("CPU, µs", done.cpu * 1e6 / done.count)];
    figures.extend(per_task(before, place.server.work().await, done.count));
    Some(figures)
}

/// Makes what is needed in a fresh place, such as tables: what that costs is not counted.
pub(crate) async fn prepare(place: &Place, contender: &Contender) -> Option<()> {
    match contender {
        Contender::Peer(peer, _) => peer.prepare(place).await,
        _ => {
            Hand::at(&place.url).await;
            Some(())
        }
    }
}

/// The work of the server for each task.
pub(crate) fn per_task(
    before: Figures,
    after: Figures,
    count: f64,
) -> impl Iterator<Item = (&'static str, f64)> {
    before.into_iter().zip(after).map(move |((title, before), (_, after))| (title, (after - before) / count))
}
