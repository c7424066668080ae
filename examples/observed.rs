//! What can be seen of two shards: the log lines of each request with those of its job, and the metrics of
//! both.
//!
//!     cargo run --features metrics --example observed
//!
//! An exporter takes the place of the printed snapshot in a service: `metrics-exporter-prometheus`, say.

use std::time::Duration;

use interval_queue::{IntervalQueue, MemoryState};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tracing::{Instrument, info, info_span};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_target(false).init();
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install()?; // before the queue is opened

    let state = MemoryState::new();
    let open = || IntervalQueue::builder("mail").interval(Duration::from_millis(50)).open(state.clone());
    let shards = [open().await?, open().await?];
    for id in 0..6 {
        let job = async move {
            info!("sent");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        shards[id % 2].add(job).instrument(info_span!("request", id)).await?;
    }
    shards[1].hold(Duration::from_millis(300)).await?; // both will say so
    for shard in &shards {
        shard.close().await;
    }

    println!();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let labels = key.key().labels().map(|label| format!("{}={}", label.key(), label.value()));
        let shown = match value {
            DebugValue::Counter(0) => continue,
            DebugValue::Histogram(samples) if samples.is_empty() => continue,
            DebugValue::Counter(count) => count.to_string(),
            DebugValue::Gauge(level) => level.to_string(),
            DebugValue::Histogram(samples) => {
                let sum: f64 = samples.iter().map(|sample| sample.0).sum();
                format!("{} times, {:.4} s on average", samples.len(), sum / samples.len() as f64)
            }
        };
        println!("{} {{{}}}: {shown}", key.key().name(), labels.collect::<Vec<_>>().join(", "));
    }
    Ok(())
}
