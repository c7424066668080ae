//! How a queue stands, as people and programs read it.

use interval_queue::MemoryState;
use interval_queue_conformance::Faulty;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::common::{memory, ms, open};

async fn json_of(queue: &interval_queue::IntervalQueue) -> Value {
    serde_json::to_value(queue.status().await).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_status_can_be_serialized_and_its_reason_has_one_shape() {
    let (_, state) = memory();
    let queue = open(state, ms(100)).await;
    let status = json_of(&queue).await;
    assert_eq!(status["reason"], json!({ "kind": "empty" }));
    assert_eq!(
        (&status["waiting"], &status["running"], &status["closed"]),
        (&json!(0), &json!(0), &json!(false))
    );
    assert_eq!(status["queue"], queue.name().as_str());
    assert_eq!(status["shared"]["record"]["meters"][0]["interval"], 100_000);

    drop(queue.turn().await.unwrap());
    let waits = tokio::spawn({
        let queue = queue.clone();
        async move { queue.turn().await.map(drop) }
    });
    sleep(ms(10)).await;
    let reason = &json_of(&queue).await["reason"];
    assert_eq!((&reason["kind"], &reason["ticket"]), (&json!("next"), &json!(2)), "{reason}");
    assert!(
        reason["slot_in_us"].as_u64().unwrap() <= 100_000 && reason["lease_ends_in_us"].is_u64(),
        "{reason}"
    );
    assert_eq!(reason["shard"], queue.shard_id().as_str());
    queue.hold(ms(5_000)).await.unwrap();
    let reason = &json_of(&queue).await["reason"];
    assert!(reason["kind"] == "held" && reason["ends_in_us"].as_u64().unwrap() > 4_000_000, "{reason}");
    queue.pause().await.unwrap();
    let status = queue.status().await;
    assert_eq!(serde_json::to_value(&status).unwrap()["reason"], json!({ "kind": "paused" }));
    assert_eq!(status.to_string(), format!("{}: paused; here 1 wait and 0 run", queue.name()));
    queue.shutdown(ms(0)).await;
    waits.await.unwrap().unwrap_err();
    assert!(queue.status().await.to_string().ends_with("here 0 wait and 0 run, and no more are taken"));
}

#[tokio::test(start_paused = true)]
async fn a_status_reports_a_lost_store() {
    let memory = MemoryState::new();
    let wire = Faulty::new(memory.clone());
    let queue = open(wire.clone(), ms(100)).await;
    memory.restore(queue.name(), None);
    assert_eq!(json_of(&queue).await["reason"], json!({ "kind": "gone" }));
    wire.change(|faults| faults.outage = true);
    let status = json_of(&queue).await;
    assert_eq!((&status["reason"]["kind"], &status["shared"]), (&json!("state_unreachable"), &Value::Null));
    assert_eq!((&status["reason"]["alone_us"], &status["reason"]["since_us"]), (&Value::Null, &json!(0)));
    assert!(status["reason"]["error"].as_str().unwrap().contains("cut off"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_reports_outages_pauses_and_the_next_start() {
    let faulty = Faulty::new(MemoryState::new());
    let queue = open(faulty.clone(), ms(100)).await;
    let mut connection = queue.connection();
    assert_eq!(queue.starts_within(ms(500), 1, 100), 6);
    assert_eq!(queue.starts_within(ms(500), 1, 3), 3);
    drop(queue.turn().await.unwrap());
    assert!(connection.has_changed().unwrap());
    assert!(connection.borrow_and_update().failing.is_none());

    faulty.change(|faults| faults.outage = true);
    let waits = tokio::spawn({
        let queue = queue.clone();
        async move { queue.turn().await.map(drop) }
    });
    let failing = connection.wait_for(|connection| connection.failing.is_some()).await.unwrap().clone();
    assert!(failing.failing.unwrap().error.is_retryable());
    faulty.change(|faults| faults.outage = false);
    let answered = connection.wait_for(|connection| connection.failing.is_none()).await.unwrap().clone();
    assert!(answered.next_start.is_some() && !answered.paused);
    waits.await.unwrap().unwrap();
}
