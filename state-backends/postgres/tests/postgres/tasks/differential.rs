//! The tables of a server give the rules what those of the memory give.

use interval_queue_task_conformance::{differential::compare, fuzzer::Target};

use super::support::{stage, stage_with_low_marks};

async fn compare_all(seeds: impl IntoIterator<Item = u64>, stage: impl AsyncFn() -> Target) {
    let mut leased = 0;
    for seed in seeds {
        leased += compare(seed, 250, &stage().await).await.unwrap();
    }
    assert!(leased > 75, "{leased} tasks were leased");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn random_commands_do_the_same_as_in_the_memory() {
    compare_all(1..=4, stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn random_commands_agree_with_low_water_marks() {
    compare_all(5..=8, stage_with_low_marks).await;
}
