//! `cargo bench --bench keyed` works.

use std::process::Command;

#[test]
#[ignore = "needs cargo to build the benchmark: scripts/test runs it"]
fn the_benchmark_of_many_queues_measures() {
    // With the features of `scripts/test`, so that little is left to be built.
    let output = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--workspace", "--all-features", "--bench", "keyed", "--"])
        .args(["--quick", "--store", "memory"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("memory 1000, one per 1s") && shown.contains(" 0+0 "), "{shown}");
}
