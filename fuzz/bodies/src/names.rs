//! Names of queues, labels and ids of shards, and the Redis keys made of names.

use interval_queue::contract::{InvalidInput, Label, MAX_LABEL, MAX_NAME, QueueName, ShardId};
use interval_queue_redis::internals::Keys;

use crate::promise::{Verdict, refuses};

/// Prefixes of keys that look like patterns, escapes and keys.
const PREFIXES: [&str; 5] = ["interval-queue", "", "{x}%", "a:b", "*[a]?\\"];

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Verdict::Refused;
    };
    let of_shard = ShardId::new(text);
    let label = Label::new(text);
    let queue = QueueName::new(text);
    check(bytes, of_shard.as_ref().map(ShardId::as_str), MAX_LABEL);
    check(bytes, label.as_ref().map(Label::as_str), MAX_LABEL);
    check(bytes, queue.as_ref().map(QueueName::as_str), MAX_NAME);
    assert_eq!(text.parse().as_ref(), queue.as_ref());
    assert_eq!(label.is_ok(), of_shard.is_ok() || text.is_empty());

    for prefix in PREFIXES.map(Keys::new) {
        // A key taken for a header is the header of that queue.
        if let Some(found) = prefix.queue(text) {
            assert_eq!(prefix.of(&found)[0], text);
        }
        let Ok(queue) = &queue else { continue };
        let keys = prefix.of(queue);
        assert_eq!(prefix.queue(&keys[0]).as_ref(), Some(queue));
        // One hash slot: between the first brace and the next closing one.
        let slot =
            |key: &str| key.split_once('{').and_then(|(_, key)| key.split_once('}')).unwrap().0.to_owned();
        assert!(keys.iter().all(|key| slot(key) == slot(&keys[0]) && !slot(key).is_empty()), "{keys:?}");
    }
    if queue.is_ok() { Verdict::Read } else { Verdict::Refused }
}

fn check(bytes: &[u8], name: Result<&str, &InvalidInput>, longest: usize) {
    match name {
        Ok(name) => {
            assert_eq!(name.as_bytes(), bytes);
            assert!(name.len() <= longest && name.trim() == name && !name.chars().any(char::is_control));
        }
        Err(error) => {
            let _ = refuses(error, bytes);
        }
    }
}
