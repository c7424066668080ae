//! What tasks cost a server. Bytes are compared with a bound; time is told, and compared with nothing.

use interval_queue_contract::QueueName;
use interval_queue_redis::RedisTasks;
use interval_queue_task_contract::{Json, NewTask, TaskId, TaskStore};
use interval_queue_test_support::RedisServer;
use uuid::Uuid;

use super::support::{FLOWS, Hand, add, assert_linear, connect, done, flow, mail};

/// Of a waiting task with a payload of a hundred bytes.
const MAX_BYTES: u64 = 330;

fn info(server: &RedisServer, what: &str) -> f64 {
    let all = server.command(&["INFO", "everything"]).join("\n");
    let line = all.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    line.unwrap().trim().parse().unwrap()
}

/// The processor time of the server, in microseconds.
fn busy(server: &RedisServer) -> f64 {
    (info(server, "used_cpu_user_main_thread") + info(server, "used_cpu_sys_main_thread")) * 1e6
}

/// As time-ordered ids are: they rise, and their ends are random.
fn new(n: u64) -> NewTask {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let time = 1_790_000_000_000 + n / 10;
    let id =
        u128::from(time) << 80 | 0x7 << 76 | u128::from(n % 10) << 64 | 0x8 << 60 | u128::from(mixed >> 4);
    NewTask::new(TaskId::new(Uuid::from_u128(id)), Json::of(&"x".repeat(98)).unwrap())
}

async fn fill(store: &RedisTasks, from: u64, count: u64) {
    for first in (from..from + count).step_by(1_000) {
        store.apply(&mail(), add((first..first + 1_000).map(new))).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_waiting_task_takes_few_bytes() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    fill(&store, 0, 1_000).await;
    let before = info(&server, "used_memory");
    fill(&store, 1_000, 30_000).await;
    let each = (info(&server, "used_memory") - before) / 30_000.0;
    println!("{each:.0} bytes for a waiting task");
    assert!(each < MAX_BYTES as f64, "{each:.0} bytes for a waiting task");
}

/// `INTERVAL_QUEUE_WAITING=1000000` measures with as many that wait.
#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn the_cost_of_a_task_is_reported() {
    let waiting = std::env::var("INTERVAL_QUEUE_WAITING").map_or(0, |text| text.parse().unwrap());
    let server = RedisServer::start();
    let store = connect(&server).await;
    fill(&store, 0, waiting).await;
    let mut next = waiting;
    let mut hand = Hand::new(&store, 1);
    hand.step(Vec::new(), 0).await;
    for size in [1, 10, 100] {
        let rounds = 2_000 / size;
        let mut held = Vec::new();
        let begun = busy(&server);
        for _ in 0..rounds {
            store.apply(&mail(), add((next..next + size).map(new))).await.unwrap();
            next += size;
            held = hand.step(done(&held), size as u32).await.leased;
            assert_eq!(held.len() as u64, size);
        }
        let each = (busy(&server) - begun) / (rounds * size) as f64;
        hand.step(done(&held), 0).await;
        println!("{waiting} waiting, steps of {size}: {each:.1} µs of the server for a task");
    }
}

/// How many commands its scripts have sent to the server itself.
fn commands(server: &RedisServer) -> u64 {
    let all = server.command(&["INFO", "commandstats"]).join("\n");
    let calls =
        all.lines().filter_map(|line| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok());
    calls.sum()
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn an_add_sends_commands_in_proportion_to_its_tasks() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    let mut sent = [0; 4];
    for (n, count) in FLOWS.into_iter().enumerate() {
        let queue = QueueName::new(format!("flow {count}")).unwrap();
        let before = commands(&server);
        store.apply(&queue, flow(count)).await.unwrap();
        sent[n] = commands(&server) - before;
    }
    assert_linear(sent, "commands");
}
