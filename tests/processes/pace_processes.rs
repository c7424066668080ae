//! G1, G2, G6 on real processes: they start their jobs at one interval, in the order of adding, and waste no
//! slot.

use crate::process::{Options, Scene, Slot, everywhere, finish, ms, now};

everywhere!(
    four_processes_share_one_pace,
    forty_processes_at_once_lose_nothing,
    the_newer_of_two_intervals_holds_for_all,
    tickets_go_on_after_all_processes_were_restarted,
);

fn four_processes_share_one_pace(scene: &mut Scene) {
    let interval = ms(20);
    let mut workers = scene.workers::<4>(Options::every(interval));
    for worker in &mut workers {
        worker.begin_to_add(25);
        worker.feed(25, ms(5));
    }
    finish(workers);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_tickets_unique();
    log.assert_paced(interval, 0);
    log.assert_in_order(interval);
    log.assert_kept_pace(log.slots().iter().map(|slot| slot.at), interval);
    assert!(scene.place.record().shards.is_empty());
    scene.place.assert_no_litter(false);
    log.assert_untroubled();
}

fn forty_processes_at_once_lose_nothing(scene: &mut Scene) {
    let interval = ms(10);
    let mut workers: Vec<_> = (0..40).map(|_| scene.spawn(Options::every(interval))).collect();
    workers.iter_mut().for_each(|worker| worker.begin_to_add(3));
    finish(workers);

    let log = &scene.log;
    assert_eq!(log.starts().len(), 120);
    log.assert_nothing_lost_or_doubled();
    log.assert_tickets_unique();
    log.assert_paced(interval, 0);
    assert!(scene.place.record().shards.is_empty());
}

fn the_newer_of_two_intervals_holds_for_all(scene: &mut Scene) {
    let mut old = scene.worker(Options::every(ms(60)));
    old.add(40);
    scene.wait_for_starts(5);
    let mut new = scene.worker(Options::every(ms(20)));
    let changed = now();
    new.add(20);
    finish([old, new]);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_paced(ms(20), 0);
    // The old one keeps the new interval as well as the new one does.
    let since: Vec<Slot> = log.slots_between(changed, u64::MAX);
    log.assert_kept_pace(since.iter().map(|slot| slot.at), ms(20));
    assert_eq!(scene.place.record().interval().to_duration(), ms(20));
}

fn tickets_go_on_after_all_processes_were_restarted(scene: &mut Scene) {
    let interval = ms(20);
    let options = Options::every(interval).lease(ms(500));
    let mut tickets = 0;
    for round in 0..3 {
        let mut workers = scene.workers::<2>(options);
        workers.iter_mut().for_each(|worker| worker.add(10));
        tickets += 20;
        // The second round ends without a word, and with jobs that wait.
        if round == 1 {
            workers.iter_mut().for_each(|worker| worker.kill());
        } else {
            finish(workers);
        }
        assert_eq!(scene.place.record().ticket.get(), tickets);
    }
    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_tickets_unique();
    log.assert_paced(interval, 0);
    log.assert_in_order(interval);
    let record = scene.place.record();
    assert_eq!(record.current.get(), tickets);
    assert!(record.shards.is_empty());
}
