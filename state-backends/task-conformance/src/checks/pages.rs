//! Pages of tasks in each order, searches and numbers of tasks.

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_task_contract::{
    ChangeTasks, Command, Cursor, Json, MAX_SCANNED, NewTask, OnFailure, Order, Outcome, Read, Reply,
    Selector, State, Task, TaskId, Verb,
};

use crate::client::{Client, Handles, behind, done, kind, refusal, task, touch, usual};

/// The ids of all pages of two tasks each.
async fn ids_of(client: &Client, selector: &Selector, order: Order) -> Vec<TaskId> {
    let (mut ids, mut after) = (Vec::new(), Some(order.start()));
    while let Some(from) = after {
        let page = client.page(selector.clone(), from, 2).await;
        ids.extend(page.tasks.iter().map(|stored| stored.task.id));
        after = page.next;
    }
    ids
}

/// The ids of these tasks by a time, latest first.
fn latest_first(rows: &[Task], time: impl Fn(&Task) -> Option<Micros>) -> Vec<TaskId> {
    let mut rows: Vec<_> = rows.iter().filter_map(|row| Some((time(row)?, row.id))).collect();
    rows.sort_unstable_by(|one, other| other.cmp(one));
    rows.into_iter().map(|(_, id)| id).collect()
}

async fn number(client: &Client, selector: &Selector) -> u64 {
    let (mut number, mut after) = (0, None);
    loop {
        match client.read(Read::Count { selector: selector.clone(), after }).await {
            Reply::Count(tally) => {
                number += tally.number;
                after = tally.next;
            }
            other => panic!("a number was answered by {other:?}"),
        }
        if after.is_none() {
            return number;
        }
    }
}

/// Pages list tasks by the time of adding or of their end, whether or not their downstreams know of
/// it, and go on after a task that is gone.
pub async fn pages_follow_each_order(handles: Handles) {
    let (one, other) = usual(handles).await;
    let first = one.add((0..4).map(|_| task())).await;
    let down = one.add_one(behind([first[0]], OnFailure::Cancel)).await;
    one.add([NewTask { kind: kind("unserved"), ..task() }]).await;
    let mut worker = one.worker();
    let runs = worker.lease(4).await;
    for (n, run) in runs.iter().enumerate() {
        let outcome = if n % 2 == 0 { done() } else { Outcome::Failed("no".into()) };
        worker.end((run.task.id, run.task.token), outcome).await;
    }
    one.touch(Verb::Cancel, [down]).await;
    let rows = one.rows().await;
    let all = Selector::default();
    let newest = latest_first(&rows, |row| Some(row.added));
    assert_eq!(ids_of(&other, &all, Order::Newest).await, newest);
    assert_eq!(ids_of(&other, &all, Order::Oldest).await, newest.iter().rev().copied().collect::<Vec<_>>());
    let ended = latest_first(&rows, |row| row.ended);
    assert_eq!((ids_of(&other, &all, Order::Ended).await, ended.len()), (ended.clone(), 5));
    let failed = Selector::states([State::Failed]);
    let of_state = latest_first(&rows, |row| row.ended.filter(|_| row.state == State::Failed));
    assert_eq!(ids_of(&other, &failed, Order::Ended).await, of_state);

    // Times of a selector bound an order at both ends.
    let times: Vec<_> = rows.iter().filter_map(|row| row.ended).collect();
    let (from, before) = (*times.iter().min().unwrap(), *times.iter().max().unwrap());
    let between = Selector { ended_from: Some(from), ended_before: Some(before), ..all.clone() };
    let expected = latest_first(&rows, |row| row.ended.filter(|ended| (from..before).contains(ended)));
    for order in Order::ALL {
        let mut found = ids_of(&other, &between, order).await;
        found.sort_by_key(|id| expected.iter().position(|of| of == id));
        assert_eq!(found, expected, "{order:?}");
    }

    let page = other.page(failed.clone(), Order::Ended, 1).await;
    let gone = one.touch(Verb::Purge, [page.tasks[0].task.id]).await;
    assert_eq!(gone, [of_state[0]]);
    let next = other.page(failed, page.next.unwrap(), 1).await;
    assert_eq!(next.tasks[0].task.id, of_state[1], "a cursor outlives its task");
}

/// A search examines a bounded number of tasks in a command, and the next one goes on.
pub async fn a_search_is_bounded_and_continued(handles: Handles) {
    let (one, other) = usual(handles).await;
    let with = |text: &str| NewTask { payload: Json::new(text.to_owned()).unwrap(), ..task() };
    let early = one.add_one(with(r#"{"to": "ada@example.org"}"#)).await;
    one.add((0..MAX_SCANNED + 100).map(|_| with("1"))).await;
    let late = one.add_one(with(r#"{"to":"ada@example.org","n":2}"#)).await;
    let ada = Selector { payload: Some("\"ada@example.org\"".into()), ..Selector::default() };
    for (order, first, last) in [(Order::Oldest, early, late), (Order::Newest, late, early)] {
        let page = other.page(ada.clone(), order, 9).await;
        let found: Vec<_> = page.tasks.iter().map(|stored| stored.task.id).collect();
        assert_eq!(found, [first], "{order:?}: the other one is out of reach");
        let page = other.page(ada.clone(), page.next.unwrap(), 9).await;
        let found: Vec<_> = page.tasks.iter().map(|stored| stored.task.id).collect();
        assert_eq!((found, page.next), (vec![last], None), "{order:?}");
    }
    assert_eq!(number(&other, &ada).await, 2);
    let spaced = Selector { payload: Some("\"to\": ".into()), ..Selector::default() };
    assert_eq!(ids_of(&other, &spaced, Order::Newest).await, [early], "the payload as it was added");
    assert_eq!(number(&other, &Selector::default()).await, u64::from(MAX_SCANNED) + 102);

    // The counts know that there is none, however many tasks there are.
    for none in
        [Selector::states([State::Failed]), Selector { kinds: vec![kind("none")], ..Selector::default() }]
    {
        let page = other.page(none.clone(), Order::Oldest, 9).await;
        assert_eq!((page.tasks.len(), page.next), (0, None), "{none:?}");
        assert_eq!(number(&other, &none).await, 0);
    }

    // A change goes on as a page does.
    let change = ChangeTasks { selector: ada.clone(), ..touch(Verb::Priority(7), Selector::default()) };
    let touched = one.try_touch(change.clone()).await.unwrap();
    assert_eq!(touched.ids, [early]);
    let next = ChangeTasks { after: touched.next, watermark: Some(touched.watermark), ..change };
    let touched = one.try_touch(next).await.unwrap();
    assert_eq!((touched.ids, touched.next), (vec![late], None));
}

/// A selector or a cursor that cannot be meant is refused.
pub async fn an_odd_selector_is_refused(handles: Handles) {
    let (one, _) = usual(handles).await;
    one.add_one(task()).await;
    for suffix in ["", "a1b2c3d", "A1B2C3D4", "a1b2c3dx"] {
        let selector = Selector { id_suffix: Some(suffix.into()), ..Selector::default() };
        let read = Read::Page { selector, after: Order::Newest.start(), limit: 1, bodies: false };
        assert_eq!(refusal(one.apply(Command::Read(read)).await), StateErrorKind::Invalid, "{suffix:?}");
    }
    let after = Some(Cursor { at: Micros::new(1), ..Order::Newest.start() });
    let read = Read::Count { selector: Selector::default(), after };
    assert_eq!(refusal(one.apply(Command::Read(read)).await), StateErrorKind::Invalid);
}
