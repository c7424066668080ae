//! The tables of a server give the rules what those of the memory give.

use interval_queue_task_conformance::differential::compare;

use super::support::stage;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn random_commands_do_the_same_as_in_the_memory() {
    let mut leased = 0;
    for seed in 0..4 {
        leased += compare(seed, 250, &stage().await).await.unwrap();
    }
    assert!(leased > 150, "{leased} tasks were leased");
}
