//! The cases in which this library should be at least as fast as another one, or as an empty store.

use crate::{
    case::{Case, LARGE, SMALL, What},
    figures::figure,
    place::Kind,
    table::{column, table},
    task_contender::{Contender, PROCESSES},
};

/// The paragraph above the table of a store.
pub(crate) fn description(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => {
            "The rate of this library, and of another one that does the same. Above 1 this library is faster. The last rows \
             compare the time of a step with that on an empty store: 1 means no difference, above 1 the step is slower."
        }
        _ => {
            "The rate of this library, and of another one that does the same. Above 1 this library is faster."
        }
    }
}
const RATE: &str = "tasks a second";

/// A row of the table.
struct Pair {
    what: &'static str,
    is_full: bool,
    ours: Ours,
    other: Other,
}

enum Ours {
    Adds { processes: usize },
    Runs { jobs: usize, size: usize },
    Steady { jobs: usize },
    Step,
}

enum Other {
    /// A library and its setting; any setting adds alike.
    Library(&'static str, &'static str),
    /// A figure of [`What::Degraded`] that is a ratio already.
    EmptyStore(&'static str),
    Nothing,
}

const SQLITE: &[Pair] = &[
    pair("run, 10 jobs", false, Ours::Runs { jobs: 10, size: SMALL }, Other::Library("effectum", "10 jobs")),
    pair(
        "run, 100 jobs",
        false,
        Ours::Runs { jobs: 100, size: SMALL },
        Other::Library("effectum", "100 jobs"),
    ),
    pair("add one by one", true, Ours::Adds { processes: PROCESSES }, Other::Library("huey", "")),
    pair("add one by one", false, Ours::Adds { processes: PROCESSES }, Other::Library("huey", "")),
    pair("add one by one", false, Ours::Adds { processes: PROCESSES }, Other::Library("effectum", "")),
    pair("add one by one, one process", false, Ours::Adds { processes: 1 }, Other::Library("effectum", "")),
    pair("add one by one, one process", true, Ours::Adds { processes: 1 }, Other::Library("huey", "")),
    pair("add and run, 1 job", false, Ours::Steady { jobs: 1 }, Other::Nothing),
    pair("add and run, 4 jobs", false, Ours::Steady { jobs: 4 }, Other::Nothing),
    pair("add and run, 16 jobs", false, Ours::Steady { jobs: 16 }, Other::Nothing),
];
const GRAPHILE: Other = Other::Library("graphile-worker", "local queue");
const POSTGRES: &[Pair] = &[
    pair("run, 10 jobs", false, Ours::Runs { jobs: 10, size: SMALL }, GRAPHILE),
    pair("run, 10 jobs", true, Ours::Runs { jobs: 10, size: SMALL }, GRAPHILE),
    pair("run, 100 jobs, 4 kB", false, Ours::Runs { jobs: 100, size: LARGE }, GRAPHILE),
    pair("step during an open transaction", false, Ours::Step, Other::EmptyStore("ratio in it")),
    pair("step with tasks that two keys block", false, Ours::Step, Other::EmptyStore("ratio with keys")),
    pair("step after tasks have ended", false, Ours::Step, Other::EmptyStore("ratio after")),
];

const fn pair(what: &'static str, is_full: bool, ours: Ours, other: Other) -> Pair {
    Pair { what, is_full, ours, other }
}

/// The table of a store, without the rows that were not measured. `None`: it has no row.
pub(crate) fn table_for(kind: Kind, cases: &[Case]) -> Option<String> {
    let pairs = match kind {
        Kind::Sqlite => SQLITE,
        Kind::Postgres => POSTGRES,
        Kind::Directory | Kind::Redis => &[],
    };
    let rows: Vec<Row> = pairs.iter().filter_map(|pair| Row::of(pair, kind, cases)).collect();
    let columns = [
        column("case", &|row: &Row| row.what.to_owned()),
        column("durability", &|row| row.durability.to_owned()),
        column("ours a second", &|row| row.ours.map_or(String::new(), figure)),
        column("compared with", &|row| row.other.clone()),
        column("theirs a second", &|row| row.theirs.map_or(String::new(), figure)),
        column("ratio", &|row| row.ratio.map_or(String::new(), figure)),
    ];
    table(&rows.iter().collect::<Vec<_>>(), &columns)
}

struct Row {
    what: &'static str,
    durability: &'static str,
    ours: Option<f64>,
    other: String,
    theirs: Option<f64>,
    ratio: Option<f64>,
}

impl Row {
    /// `None`: it was not measured.
    fn of(pair: &Pair, kind: Kind, cases: &[Case]) -> Option<Self> {
        let cases =
            cases.iter().filter(|case| case.setting.kind == kind && case.setting.is_full == pair.is_full);
        let ours = cases.clone().find(|case| pair.ours.is(&case.what))?;
        let row = |ours, other, theirs, ratio| Self {
            what: pair.what,
            durability: cases.clone().next().map_or("", |case| case.setting.durability()),
            ours,
            other,
            theirs,
            ratio,
        };
        let rate = ours.figure(RATE);
        match pair.other {
            Other::Nothing => Some(row(Some(rate?), String::new(), None, None)),
            Other::EmptyStore(title) => {
                Some(row(None, "an empty store".into(), None, Some(ours.figure(title)?)))
            }
            Other::Library(name, setting) => {
                let is_meant = |case: &&Case| match case.what.contender() {
                    Some(Contender::Peer(peer, number)) => {
                        peer.is(name, setting, *number) && ours.what.is_alike(&case.what)
                    }
                    _ => false,
                };
                let other = cases.clone().find(is_meant)?;
                let theirs = other.figure(RATE)?;
                let title = other.what.labels().into_iter().find(|(title, _)| *title == "what")?.1;
                Some(row(Some(rate?), title, Some(theirs), Some(rate? / theirs)))
            }
        }
    }
}

impl Ours {
    fn is(&self, what: &What) -> bool {
        match (self, what) {
            (
                Self::Adds { processes },
                What::Adds { contender: Contender::Worker, processes: by, batch: 1, size: SMALL },
            ) => processes == by,
            (Self::Runs { jobs, size }, What::Burn { contender: Contender::Worker, batch, size: of }) => {
                (jobs, size) == (batch, of)
            }
            (Self::Steady { jobs }, What::Steady { contender: Contender::Worker, jobs: by }) => jobs == by,
            (Self::Step, What::Degraded) => true,
            _ => false,
        }
    }
}
