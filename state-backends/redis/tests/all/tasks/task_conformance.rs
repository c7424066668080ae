//! The suite that every store of tasks passes: by a clock of its own, and by that of the server.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Changes, QueueName, StateError};
use interval_queue_redis::{RedisStore, RedisTasks};
use interval_queue_task_conformance::{Handles, recounted::removed_rows_are_counted};
use interval_queue_task_contract::{Command, Reply, TaskId, TaskStore};
use interval_queue_test_support::RedisServer;

use super::support::is_indexed;

/// A handle with the server, which ends after it.
#[derive(Debug)]
struct Kept {
    tasks: RedisTasks,
    _server: Arc<RedisServer>,
}

#[async_trait]
impl TaskStore for Kept {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.tasks.apply(queue, command).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.tasks.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.tasks.changes(queue).await
    }
}

/// A store that waits for a slow host: the checks are about replies, not about time-outs.
async fn patient(server: &RedisServer) -> RedisStore {
    RedisStore::builder(server.url()).unwrap().timeout(Duration::from_secs(60)).connect().await.unwrap()
}

/// Two handles with connections of their own, as another process would have them.
async fn connected(clock: Option<ManualClock>) -> Handles {
    let server = Arc::new(RedisServer::start());
    let connect = async || {
        let store = patient(&server).await;
        let tasks = match clock.clone() {
            Some(clock) => RedisTasks::with_clock(&store, move || clock.now()),
            None => RedisTasks::on(&store),
        };
        Arc::new(Kept { tasks, _server: server.clone() })
    };
    Handles { one: connect().await, other: connect().await, clock: clock.clone() }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn rows_that_are_removed_by_hand_are_counted() {
    let server = RedisServer::start();
    let store = patient(&server).await;
    let tasks = Arc::new(RedisTasks::on(&store));
    let handles = Handles { one: tasks.clone(), other: tasks, clock: None };
    let rows = std::cell::OnceCell::new();
    let remove = async |queue: &QueueName, ids: &[TaskId]| {
        let rows = rows.get_or_init(|| format!("{{interval-queue:{}}}:t", queue.as_str()));
        let script =
            "local id = string.gsub(ARGV[1], '..', function(hex) return string.char(tonumber(hex, 16)) end)
            return redis.call('HDEL', KEYS[1], id)";
        for id in ids {
            let id = id.to_string().replace('-', "");
            assert_eq!(server.command(&["EVAL", script, "1", &format!("{rows}:tasks"), &id]), ["1"]);
        }
    };
    removed_rows_are_counted(handles, remove).await;
    is_indexed(&server, rows.get().unwrap());
}

mod by_a_clock {
    async fn make() -> super::Handles {
        super::connected(Some(super::ManualClock::new())).await
    }
    interval_queue_task_conformance::task_conformance_tests!(
        #[ignore = "needs redis-server: scripts/test runs it"]
        make
    );
}

mod by_that_of_the_server {
    async fn make() -> super::Handles {
        super::connected(None).await
    }
    interval_queue_task_conformance::task_conformance_tests!(
        #[ignore = "needs redis-server: scripts/test runs it"]
        make, no clock
    );
}
