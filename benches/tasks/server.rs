//! The work of a store's server, as far as it reports it.

use std::{fs, sync::Arc};

use interval_queue_test_support::{PostgresServer, RedisServer};
use rustix::param::clock_ticks_per_second;
use tokio_postgres::{Client, NoTls};

/// The server of a place.
#[derive(Debug)]
pub(crate) enum Server {
    None,
    Redis(RedisServer),
    /// With the name of its database.
    Postgres(Arc<PostgresServer>, String),
}

/// Figures with what they are called in a table.
pub(crate) type Figures = Vec<(&'static str, f64)>;

impl Server {
    /// All that rises while it works; what rose for a task is a figure.
    pub(crate) async fn work(&self) -> Figures {
        match self {
            Self::None => Vec::new(),
            Self::Redis(server) => vec![("server CPU, µs", cpu(server.pid().unwrap()) * 1e6)],
            Self::Postgres(server, name) => {
                let first = server.pid().unwrap();
                let all = cpu(first) + children(first).into_iter().map(cpu).sum::<f64>();
                let told = server.psql(&format!(
                    "SELECT pg_current_wal_lsn() - '0/0', (SELECT wal_sync FROM pg_stat_wal), \
                     (SELECT xact_commit FROM pg_stat_database WHERE datname = '{name}')"
                ));
                let told: Vec<f64> = told[0].split('|').map(|number| number.parse().unwrap()).collect();
                let titles = ["WAL, bytes", "fsyncs", "transactions"];
                let mut figures = vec![("server CPU, µs", all * 1e6)];
                figures.extend(titles.into_iter().zip(told));
                figures
            }
        }
    }

    /// How many rows of its tables have become dead, as far as the server has counted: each that was replaced
    /// or deleted.
    pub(crate) async fn dead(&self) -> Option<f64> {
        let client = self.client().await?;
        let dead = "SELECT coalesce(sum(n_tup_upd + n_tup_del), 0)::float8 FROM pg_stat_user_tables";
        Some(client.query_one(dead, &[]).await.unwrap().get(0))
    }

    /// Bytes of memory that it uses.
    pub(crate) fn memory(&self) -> Option<f64> {
        let Self::Redis(server) = self else { return None };
        let lines = server.command(&["INFO", "memory"]).concat();
        lines.lines().find_map(|line| line.strip_prefix("used_memory:"))?.trim().parse().ok()
    }

    /// A connection to the database of the place. None: it has none.
    pub(crate) async fn client(&self) -> Option<Client> {
        let Self::Postgres(server, name) = self else { return None };
        let url = format!("{}/{name}", server.url().trim_end_matches("/postgres"));
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Some(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Self::Postgres(server, name) = self {
            // Otherwise the disk fills up. A process that is still connected has ended its measurement.
            let _ = server.try_psql(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}

/// CPU time of a process and of its children that have ended, in seconds.
pub(crate) fn cpu(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program may have spaces.
    let words = text.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks: u64 = words.skip(11).take(4).filter_map(|word| word.parse::<u64>().ok()).sum();
    ticks as f64 / clock_ticks_per_second() as f64
}

fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}
