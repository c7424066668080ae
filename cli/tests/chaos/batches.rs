//! T1: the producer is killed in the middle of a batch, which is added whole or not at all; sent again by the next one
//! it adds nothing twice.

use crate::{
    harm::Harm,
    log::{Made, Said},
    outcome::Outcome,
    process::{Scene, counted, ms, now, times},
    scenes::everywhere,
};

everywhere!(producers_killed);

fn producers_killed(scene: &mut Scene) {
    let mut harm = Harm::usual(scene, times(15, 300));
    let (mut whole, mut none) = (0, 0);
    while harm.goes_on(ms(30)) {
        let number = harm.producer.number;
        harm.wait_until("a batch is under way", |log| {
            let last = log.lines.iter().rfind(|line| line.who == number);
            last.is_some_and(|line| matches!(line.said, Said::Adding(_)))
        });
        let moment = harm.length(ms(0), ms(3));
        std::thread::sleep(moment);
        let begun = now();
        let mut left: Option<(Vec<Made>, bool)> = None;
        harm.kill_producer(scene, |harm| left = left_by(harm, number));
        if let Some((batch, was_there)) = left {
            let is_there = is_repeated(&mut harm, &batch);
            assert!(is_there || !was_there, "T1: what is sent twice is added once");
            *(if is_there { &mut whole } else { &mut none }) += 1;
        }
        harm.note(begun, None);
    }
    let unknown = format!(
        "of {} batches of which the killed one had heard nothing {} were stored as a whole and {} not at all",
        counted(whole + none),
        counted(whole),
        counted(none)
    );
    let outcome = harm.end(scene).note(unknown);
    let promised = "T1: a batch is added whole or not at all, and one that is sent again adds nothing twice";
    outcome.tell(scene, "kill -9 of the producer in the middle of a batch", promised);
    outcome.assert_sound(scene, Outcome::a_lease());
}

/// The batch of which a killed producer did not hear what became of it, and whether it is there.
fn left_by(harm: &mut Harm, number: usize) -> Option<(Vec<Made>, bool)> {
    harm.log.refresh();
    let last = harm.log.lines.iter().rfind(|line| line.who == number)?;
    let Said::Adding(batch) = &last.said else { return None };
    let batch = batch.clone();
    let ids: Vec<_> = batch.iter().map(|made| made.id).collect();
    let are_there = harm.reader.are_there(&ids);
    let is_there = are_there[0];
    assert!(are_there.iter().all(|one| *one == is_there), "T1: a part of a batch was added: {are_there:?}");
    Some((batch, is_there))
}

/// Whether the next producer, which has sent the batch again, heard that all of it was there. The server may
/// have stored it only after [`left_by`] looked: the commands of a killed process are carried out to their end.
fn is_repeated(harm: &mut Harm, batch: &[Made]) -> bool {
    let next = harm.producer.number;
    let added = harm.log.lines.iter().find_map(|line| match &line.said {
        Said::Added(ids, again) if line.who == next => Some((ids, *again)),
        _ => None,
    });
    let (ids, again) = added.unwrap();
    assert!(ids.iter().eq(batch.iter().map(|made| &made.id)), "T1: the batch is sent again");
    assert!(again == 0 || again == batch.len(), "T1: a part of a batch was there: {again}");
    again > 0
}
