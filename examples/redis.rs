//! A queue over Redis or Valkey. Start it several times, on one host or many: together they keep one pace.
//!
//!     cargo run --features redis --example redis -- redis://127.0.0.1:6379
//!
//! Ctrl-C gives the places of the waiting jobs up and lets the running one finish.

use std::{env, time::Duration};

use interval_queue::IntervalQueue;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let queue = IntervalQueue::builder("example")
        .interval(Duration::from_millis(250))
        .max_running(3)
        .on_error(|error| eprintln!("the state fails: {error}; jobs wait"))
        .connect(&url)
        .await
        .map_err(|error| format!("{error}. Is a server there? Try `redis-server --port 6379`"))?;
    println!("queue {:?}, one start every {:?} over all processes", queue.name().as_str(), queue.interval());

    let mut jobs = Vec::new();
    for number in 1..=20 {
        let job = queue.add(async move {
            tokio::time::sleep(Duration::from_millis(400)).await;
            number * number
        });
        jobs.push(job.await?);
    }
    let results = async {
        for job in jobs {
            let ticket = job.ticket().await?;
            println!("ticket {ticket}: {}", job.await?);
        }
        Ok::<_, interval_queue::Error>(())
    };
    tokio::select! {
        done = results => done?,
        _ = tokio::signal::ctrl_c() => {
            let ended = queue.shutdown(Duration::from_secs(2)).await;
            println!("{} jobs cancelled, {} aborted", ended.cancelled, ended.aborted);
        }
    }
    println!("{}", queue.status().await.reason);
    Ok(())
}
