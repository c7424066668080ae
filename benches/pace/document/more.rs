//! Idle queues, many shards, many jobs.

use interval_queue_report::{counted, paragraph};

use super::{
    bullet, one_line, picture,
    table::{Column, column, table},
};
use crate::{
    figures::{figure, interval, percent},
    pictures::Picture,
    report::{Crowd, Idle, LongLine, Report},
};

const IDLE: &[Column<'static, Idle>] = &[
    column("store", &|idle| idle.state.clone()),
    column("samples", &|idle| counted(idle.samples)),
    column("start p50, µs", &|idle| figure(idle.start.p50)),
    column("start p99, µs", &|idle| figure(idle.start.p99)),
    column("round trip p50, µs", &|idle| figure(idle.round_trip.p50)),
    column("round trip p99, µs", &|idle| figure(idle.round_trip.p99)),
    column("round trips", &|idle| {
        let trips = idle.start.p50 / idle.round_trip.p50;
        if trips.is_finite() { figure(trips) } else { String::new() }
    }),
    column("operations", &|idle| figure(idle.operations)),
    column("system calls when quiet", &|idle| {
        idle.system_calls.map_or(String::new(), |calls| format!("{calls} in {} s", idle.quiet_seconds))
    }),
];

const CROWD: &[Column<'static, Crowd>] = &[
    column("store", &|crowd| crowd.state.clone()),
    column("shards", &|crowd| counted(crowd.shards)),
    column("processes", &|crowd| crowd.processes.to_string()),
    column("interval", &|crowd| interval(crowd.interval)),
    column("rate, %", &|crowd| percent(crowd.rate)),
    column("gap p1, %", &|crowd| percent(crowd.gaps.p1 / crowd.interval.max(1) as f64)),
    column("close", &|crowd| counted(crowd.close)),
    column("operations per second", &|crowd| figure(crowd.operations_per_second)),
    column("operations per job", &|crowd| figure(crowd.operations)),
    column("CPU of the server, %", &|crowd| crowd.server_share.map_or(String::new(), percent)),
    column("CPU of the processes, %", &|crowd| percent(crowd.cpu_share)),
    column("record, bytes", &|crowd| crowd.record_bytes.map_or(String::new(), counted)),
];

const LINE: &[Column<'static, LongLine>] = &[
    column("store", &|line| line.state.clone()),
    column("jobs", &|line| counted(line.jobs)),
    column("memory per job, bytes", &|line| figure(line.bytes_per_job)),
    column("to add them, s", &|line| figure(line.add_seconds)),
    column("to cancel them, s", &|line| figure(line.cancel_seconds)),
    column("starts per second", &|line| line.starts_per_second.map_or(String::new(), figure)),
];

pub(super) fn idle(report: &Report) -> Option<String> {
    let table = table(&report.idle.iter().collect::<Vec<_>>(), IDLE)?;
    let what = paragraph(
        "The time from `add` on an idle queue to the first poll of the job, and one round trip to the same store after the \
         same pause. A queue whose last job has ended should make no system call.",
    );
    Some(format!("## Idle\n\n{what}\n{table}"))
}

pub(super) fn crowds(report: &Report, pictures: &[Picture]) -> Option<String> {
    let (ran, failed): (Vec<&Crowd>, Vec<_>) =
        report.crowds.iter().partition(|crowd| crowd.failure.is_none());
    let table = table(&ran, CROWD)?;
    let what = paragraph("Many shards in a few processes wait on one queue.");
    let mut parts = vec![format!("## Crowds\n\n{what}")];
    parts.extend(picture(pictures, "crowds"));
    parts.push(table);
    let failures = failed.iter().map(|crowd| {
        let why = one_line(crowd.failure.as_deref().unwrap_or_default());
        let (shards, each) = (counted(crowd.shards), interval(crowd.interval));
        bullet(&format!("{shards} shards, {}, one job per {each}: {why}", crowd.state))
    });
    let failures: String = failures.collect();
    if !failures.is_empty() {
        parts.push(format!("These did not run:\n\n{failures}"));
    }
    Some(parts.join("\n"))
}

pub(super) fn lines(report: &Report) -> Option<String> {
    let table = table(&report.lines.iter().collect::<Vec<_>>(), LINE)?;
    let what = paragraph(
        "Many jobs wait in one shard. Then all are cancelled. The last column is how many start in a second if the rate \
         allows more than the processor can do.",
    );
    Some(format!("## Many jobs\n\n{what}\n{table}"))
}
