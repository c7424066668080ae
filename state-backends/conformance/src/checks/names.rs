//! Distinct names are distinct queues, whatever characters they contain.

use std::time::Duration;

use interval_queue_contract::{Change, MAX_NAME, Micros, OnExisting, QueueName};

use crate::client::{Client, Handles, open, opened, unique};

const ODD: [&str; 40] = [
    "queue", "Queue", "QUEUE", "a/b", "a\\b", "a:b", "a%3Ab", "a%2Fb", "a%b", "a b", "a+b", "a\"b", "a'b",
    "a`b", "a{b}", "{a}b", "a[b]", "a*", "a?", "$a", "#a", "@a", "a;b", "a,b", "a=b", "a&b", "a<b>", "a|b",
    "~", ".", "..", "../a", "-rf", "null", "Straße", "ключ", "é", "e\u{301}", "🦀", "\u{200b}",
];

/// Queues do not affect each other.
pub async fn queues_are_independent(handles: Handles) {
    let (one, _) = opened(handles.clone(), Duration::from_secs(1)).await;
    let (_, other) = opened(handles, Duration::from_secs(2)).await;
    let before = other.record().await;
    one.shard("busy").take(1, 1000).await;
    one.change(Change::Pause).await.unwrap();
    assert_eq!(other.record().await, before);
    assert_eq!(other.shard("busy").take(1, 1).await.first.get(), 1);
    assert_eq!(one.record().await.ticket.get(), 1000);
}

/// Names that are easily confused are distinct queues.
pub async fn odd_names_are_distinct(handles: Handles) {
    let own = unique();
    let long = "x".repeat(MAX_NAME - own.len() - 1);
    let mut names: Vec<String> = ODD.iter().map(|odd| format!("{odd}{own}")).collect();
    names.extend([
        format!("__proto__{own}"),
        format!("日本語{own}"),
        format!("{own}/.."),
        format!("{own}."),
        format!("{own}:"),
    ]);
    names.extend([format!("{long}a{own}"), format!("{long}b{own}")]);
    // Fixed names with fixed intervals, in every run.
    names.extend([".", "..", "/", "*", "0"].map(String::from));

    let (one, other) = handles;
    let mut clients = Vec::new();
    for (interval, name) in (1..).map(Duration::from_secs).zip(names) {
        let queue = QueueName::new(name).unwrap();
        let client = Client::new(one.clone(), queue.clone());
        client.change(open(Some(interval), OnExisting::Replace)).await.unwrap();
        clients.push((Client::new(other.clone(), queue), interval));
    }
    for (client, interval) in &clients {
        let found = client.record().await.interval();
        assert_eq!(found, Micros::from_duration(*interval), "of queue {}", client.queue());
    }
    if let Ok(queues) = other.queues().await {
        let missing = clients.iter().find(|(client, _)| !queues.contains(client.queue()));
        assert!(missing.is_none(), "queue {} is not listed", missing.unwrap().0.queue());
    }
}
