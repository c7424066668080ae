//! What is shown on the terminal.

use crate::keyed_case::{Case, Doing, Found};

/// A column: its head, its width and what was found.
struct Column(&'static str, usize, fn(&Found) -> String);

const COLUMNS: [Column; 15] = [
    Column("open s", 7, |found| format!("{:.2}", found.opened)),
    Column("idle B", 7, |found| format!("{:.0}", found.idle)),
    Column("waiting B", 9, |found| format!("{:.0}", found.waiting)),
    Column("idle: wakes/s", 13, |found| wakes(&found.quiet)),
    Column("cpu ms/s", 8, |found| cpu(&found.quiet)),
    Column("waiting: wakes/s", 16, |found| wakes(&found.patient)),
    Column("cpu ms/s", 8, |found| cpu(&found.patient)),
    Column("burst s", 7, |found| format!("{:.2}", found.burst)),
    Column("shutdown s", 10, |found| format!("{:.2}", found.shut_down)),
    Column("fds", 4, |found| found.descriptors.to_string()),
    Column("conns", 5, |found| found.connections.map_or("-".into(), |count| count.to_string())),
    Column("failures", 9, |found| format!("{}+{}", found.failures, found.failures_at_pace)),
    Column("rate %", 6, |found| format!("{:.1}", found.rate * 100.0)),
    Column("gap p1 p50 p99 max %", 24, |found| found.gaps.map(|gap| format!("{:.1}", gap * 100.0)).join(" ")),
    Column("cpu+server %", 12, |found| {
        let server = found.server_cpu.map_or("-".into(), |used| format!("{:.0}", used * 100.0));
        format!("{:.0}+{server}", found.cpu * 100.0)
    }),
];

fn wakes(doing: &Doing) -> String {
    format!("{:.1}", doing.wakes as f64 / doing.seconds)
}

fn cpu(doing: &Doing) -> String {
    format!("{:.2}", doing.cpu * 1000.0 / doing.seconds)
}

pub(crate) fn head() {
    println!("{:<28}{}", "", line(|column| column.0.to_owned()));
}

pub(crate) fn row(case: &Case, found: Option<&Found>) {
    match found {
        Some(found) => println!("{:<28}{}", case.name(), line(|column| column.2(found))),
        None => println!("{:<28} is not to be had here", case.name()),
    }
}

pub(crate) fn foot() {
    println!(
        "\nB: bytes of this process for each queue. burst: from the instant in which a job is added to each of them until all\n\
         have started. failures: of which the application was told, before and while the pace was measured. rate and gaps: of\n\
         the starts of each queue while all have work, as parts of what its interval allows. cpu: of one processor."
    );
}

fn line(cell: impl Fn(&Column) -> String) -> String {
    COLUMNS.iter().map(|column| format!(" {:>width$}", cell(column), width = column.1)).collect()
}
