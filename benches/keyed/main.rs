//! Thousands of queues by their keys in one process: what an idle one costs, what one costs in which a job
//! waits, how long it takes to open all, and how well each keeps its pace when all have work.
//!
//!     cargo bench --bench keyed                        all of it: some minutes
//!     cargo bench --bench keyed -- --quick             a tenth of the queues for a moment, to see that it works
//!     cargo bench --bench keyed -- --store redis --queues 10000 --every 2s

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails says so")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

#[path = "../common/mod.rs"]
mod common;
mod keyed_case;
mod keyed_table;
mod measure;
mod process;

use std::time::Duration;

use clap::Parser;

use crate::keyed_case::{Case, Kind};

/// Measures thousands of queues by their keys in one process.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench keyed --", bin_name = "cargo bench --bench keyed --")]
struct Arguments {
    /// Measure only this store; with --queues and --every only this case.
    #[arg(long, value_name = "STORE")]
    store: Option<Kind>,
    /// How many queues.
    #[arg(long, value_name = "N", requires = "store")]
    queues: Option<u32>,
    /// The interval of each queue.
    #[arg(long, value_name = "DURATION", requires = "queues", value_parser = humantime::parse_duration)]
    every: Option<Duration>,
    /// A tenth of the queues for a moment: to see that it works, not to be quoted.
    #[arg(long)]
    quick: bool,
    /// Measure the one case in this process and say what was found as JSON.
    #[arg(long, hide = true)]
    here: bool,
    /// Given by `cargo bench`, but not by `cargo test`.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let mut cases: Vec<Case> = match (arguments.store, arguments.queues) {
        (Some(kind), Some(queues)) => {
            let every = arguments.every.unwrap_or(Duration::from_secs(1));
            vec![Case { kind, queues, every, quick: arguments.quick }]
        }
        (kind, _) => {
            Case::all(arguments.quick).filter(|case| kind.is_none_or(|kind| case.kind == kind)).collect()
        }
    };
    if arguments.here {
        let found = measure::measure(&cases.remove(0));
        println!("{}", serde_json::to_string(&found).unwrap());
    } else if arguments.bench || arguments.quick {
        keyed_table::head();
        cases.iter().for_each(|case| keyed_table::row(case, case.run().as_ref()));
        keyed_table::foot();
    }
}
