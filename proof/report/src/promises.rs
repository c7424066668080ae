//! The promises of stored tasks, and how each was attacked: written by hand.

use crate::table::Table;

const PROMISES: [[&str; 3]; 12] = [
    [
        "T1 Kept",
        "what was acknowledged survives what the store survives",
        "simulation: requests and replies lost and doubled; chaos: producers killed within a batch, logs truncated",
    ],
    [
        "T2 One run at a time",
        "by the store's clock a task is leased to one worker at most; an old token changes nothing",
        "model: every order of steps, losses and late arrivals; simulation: stalls, roll-backs; chaos: workers stopped past their lease",
    ],
    [
        "T3 To the end",
        "a task whose worker died runs again; after its last attempt it has failed and stays",
        "simulation: crashes and outages, until all has ended; chaos: kill -9 at random instants",
    ],
    [
        "T4 Order",
        "ready tasks are leased by due, equals in the order of adding",
        "simulation and model: what each step was given, beside all that was ready",
    ],
    [
        "T5 Pace",
        "with an interval G1 to G10 hold for the starts",
        "simulation: each start of a paced worker beside the slots it was granted; the first half of this page",
    ],
    [
        "T6 Limits",
        "never more live leases than a queue or a key may have; a free place is given at once",
        "simulation: limits changed live, crashes of holders; model; transactions of SQLite in every order",
    ],
    [
        "T7 Edges",
        "a task starts only when its upstreams have ended as its edges ask",
        "simulation: graphs under retries, cancellations and purges; model: ends that are told late or twice",
    ],
    [
        "T8 Schedules",
        "each nominal instant makes exactly one task",
        "the fuzzer of the conformance suite: several workers that fire the same instant, also late and twice",
    ],
    [
        "T9 Control",
        "cancel, retry, release and purge touch what a dry run shows",
        "simulation: an operator among all faults; each real change beside its dry run in the fuzzer of the conformance suite",
    ],
    [
        "T10 Truth",
        "counts equal what is stored, at every instant",
        "simulation, model and malformed input: compared after every command; chaos: looks from other processes",
    ],
    [
        "T11 Quiet",
        "what has ended is kept as long as the queue says, and no longer",
        "simulation: how often idle workers step; the fuzzer of the conformance suite: nothing is kept for too long",
    ],
    [
        "T12 Cost",
        "a command costs the same with few and with many tasks stored",
        "tests that count the rows a command touches, and that each look of SQLite goes by its index",
    ],
];

pub(crate) fn promises() -> String {
    let rows = PROMISES.map(|row| row.map(str::to_owned));
    Table::text(["promise", "what it says", "how it was attacked"], rows)
}
