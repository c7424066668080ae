//! Payloads, results and schedules keep their text.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Change, Command, Imported, Json, NewEdge, NewSchedule, NewTask, OnFailure, Order, Outcome, Overlap, Read,
    Reply, Selector,
};

use crate::client::{Handles, key, task, usual};

/// Texts that change if a store parses and rewrites them.
fn texts() -> Vec<Json> {
    let mut texts: Vec<String> = [
        "18446744073709551616",
        "123456789012345678901234567890",
        "123456.789012345678901234567890",
        "1.10",
        "-0",
        "1E+2",
        "1e-7",
        "{\"b\":1,\"a\":2}",
        "{\"a\":1,\"a\":2}",
        "[ 1 ,\r\n\t{ } ]",
        "\"\\u00e9\\/\\u0000\\ud83e\\udd80\"",
        "\"\u{e9}e\u{301}/'\\\\\"",
        "[[],{}]",
        "false",
    ]
    .map(str::to_owned)
    .into();
    // Larger than stores keep inside a row.
    texts.push(format!("[{}0]", "1.10, ".repeat(20_000)));
    texts.push(format!("0.{}", "1".repeat(200_000)));
    texts.into_iter().map(|text| Json::new(text).unwrap()).collect()
}

/// Payloads and results come back byte for byte, however they are read.
pub async fn json_keeps_its_text(handles: Handles) {
    let (one, other) = usual(handles.clone()).await;
    let texts = texts();
    let ups: Vec<_> = texts.iter().map(|payload| NewTask { payload: payload.clone(), ..task() }).collect();
    let edges = ups.iter().zip(0..).map(|(up, n)| NewEdge {
        up: up.id,
        name: Some(key(&format!("{n:02}"))),
        on_failure: OnFailure::Cancel,
    });
    let down = NewTask { edges: edges.collect(), ..task() };
    let down_id = down.id;
    let ids = one.add(ups.into_iter().chain([down])).await;
    let of = |id| ids.iter().position(|known| *known == id).map(|at| &texts[at]);
    let mut worker = other.worker();
    let mut runs = 0;
    while runs < texts.len() {
        let leased = worker.lease(99).await;
        assert!(!leased.is_empty(), "{runs} have run");
        for run in leased {
            assert_eq!(Some(&run.payload), of(run.task.id), "leased");
            worker.end((run.task.id, run.task.token), Outcome::Done(run.payload)).await;
            runs += 1;
        }
    }
    let Reply::Inputs(inputs) = one.read(Read::Inputs { down: down_id, after: None }).await else {
        panic!("no inputs")
    };
    assert_eq!(inputs.inputs.len(), texts.len());
    for input in inputs.inputs {
        assert_eq!(input.result.as_ref(), of(input.up), "an input");
    }
    let page = Read::Page {
        selector: Selector::ids(ids.clone()),
        after: Order::Oldest.start(),
        limit: 100,
        bodies: true,
    };
    let Reply::Page(page) = one.read(page).await else { panic!("no page") };
    let (there, again) = usual(handles).await;
    let mut moved = Vec::new();
    for stored in page.tasks.into_iter().filter(|stored| stored.task.id != down_id) {
        let text = of(stored.task.id);
        assert_eq!((stored.payload.as_ref(), stored.result.as_ref()), (text, text), "a page");
        let alone = other.stored(stored.task.id).await;
        assert_eq!((alone.payload.as_ref(), alone.result.as_ref()), (text, text), "a task");
        moved.push(Imported {
            task: stored.task,
            payload: stored.payload.unwrap(),
            result: stored.result,
            log: Vec::new(),
            edges: Vec::new(),
        });
    }
    assert_eq!(moved.len(), texts.len());
    there.apply(Command::Import(moved.into())).await.unwrap();
    for (id, text) in ids.iter().zip(&texts) {
        let stored = again.stored(*id).await;
        assert_eq!((stored.payload.as_ref(), stored.result.as_ref()), (Some(text), Some(text)), "imported");
    }
    for (text, n) in texts.iter().zip(0..) {
        one.change(Change::Schedule(NewSchedule {
            name: key(&format!("{n:02}")),
            definition: text.clone(),
            next: Some(Micros::new(4_000_000_000_000_000)),
            paused: false,
            overlap: Overlap::Allow,
        }))
        .await;
    }
    let Reply::Schedules(schedules) = other.read(Read::Schedules).await else { panic!("no schedules") };
    assert!(schedules.iter().map(|schedule| &schedule.definition).eq(&texts), "a schedule");
}
