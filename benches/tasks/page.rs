//! The page: what was found, store by store, in Markdown.

use interval_queue_report::paragraph;

use crate::{
    case::Case,
    compared,
    figures::figure,
    machine,
    place::{Kind, Setting},
    report::Machine,
    table::{column, table},
};

/// The parts of a section, each with what it measures.
const PARTS: &[(&str, &str)] = &[
    ("Adds", "Processes add tasks, one command after the other."),
    (
        "Burn-down",
        "Tasks are added first, which is not measured. Then four processes run them, from the first start to the last \
         end. *steps* are a worker's commands alone: each completes and leases that many tasks. `Worker` runs that many \
         tasks at once, with an empty handler.",
    ),
    (
        "Steady",
        "Four processes add what they run, 100 tasks at once, with an empty handler. Adding is measured, too.",
    ),
    (
        "Open loop",
        "One process offers tasks at random instants (a Poisson process), at half of the rate that the same workers reach \
         while they add. Tasks that become due within 2 ms are added together. The time is from the instant at which a task \
         is due to its start. Idle: 50 tasks a second, and one worker.",
    ),
    (
        "Degraded",
        "A step completes ten tasks and leases ten. Ratios compare its time with that on an empty store: with ready tasks, \
         after they have ended, with tasks that two keys block, and during an open transaction. In that transaction the \
         given number of tasks ran.",
    ),
    (
        "Backlog",
        "Four processes with a `Worker` of ten jobs add what they run, 100 tasks at once: first alone, then while tasks of \
         two keys wait, and while tasks wait that became due at one instant. The three take turns, seven times. A ratio \
         compares with the rate alone. Tasks of the backlog have a lower priority, so few of them run.",
    ),
    (
        "Killed",
        "One of four workers is killed while it runs ten tasks. The time ends when all ten have started again.",
    ),
];
const RATE: &str = "tasks a second";
const RATIO: &str = "ratio";
/// The text before the sections.
const HEAD: &str = include_str!("../pace/document/stored_tasks.md");

/// The effect of each durability: which files a commit syncs.
fn durability(kind: Kind) -> &'static str {
    match kind {
        Kind::Directory => {
            "*fsync always* syncs each file and its directory before a command returns. *fsync never* syncs nothing, and \
             neither does python-task-queue, except for a counter."
        }
        Kind::Sqlite => {
            "Both durabilities use the write-ahead log. *relaxed* sets `synchronous=NORMAL`: a commit syncs nothing, a \
             checkpoint syncs the log and the file. *full* sets `synchronous=FULL`: each commit syncs the log. effectum \
             sets NORMAL and has no option for FULL. huey runs with both values."
        }
        Kind::Redis => {
            "*AOF everysec* appends each command to a file and syncs it once a second. *no AOF* syncs nothing."
        }
        Kind::Postgres => {
            "*commit on* sets `synchronous_commit=on` for the database: each commit syncs the WAL. With *commit off* the \
             server syncs it later, at most 0.6 s. Both apply to all libraries."
        }
    }
}

/// The limit of the speed of a store.
fn limits(kind: Kind) -> &'static str {
    match kind {
        Kind::Directory => {
            "What limits it: one lock admits one command at a time. A task is a file: it is created, renamed when leased, \
             and written and renamed when it ends. That is work of the kernel, most of it for new small files. With fsync \
             the disk is the limit."
        }
        Kind::Sqlite => {
            "What limits it: SQLite has one writer at a time, and each command is a transaction. Commands of one process \
             share transactions. With full durability a step of one task mostly waits for its sync. An add of one task \
             writes four pages of the database: the task, its indexes and the counts."
        }
        Kind::Redis => {
            "What limits it: the server runs one command at a time, and the rules in it are Lua. With many tasks at once \
             the time per task counts, with one the start of the script and the queue's header."
        }
        Kind::Postgres => {
            "What limits it: the processor of the server. It starts the same statements for each command, and a step of \
             one task pays for them alone. A row is written again when its task is leased and when it ends, with entries \
             in the indexes of its state: that is the WAL. A profile of the server (`perf record -a -g` during \
             `scripts/benchmarks tasks --store postgres --only Worker`) shows a quarter of its time in running \
             statements, a sixth to a fifth in planning them, part of it for new connections, and a tenth in entries of \
             indexes. graphile-worker deletes the row of a job that ends; here it stays for its retention. With keys a \
             step runs alone on its queue and takes two more round trips, since which keys are free is known only after \
             the first."
        }
    }
}

/// Prints the page: a section for each store, with how its figures were made.
pub(crate) fn print(cases: &[Case], made: &str) {
    let Machine { processor, cores, memory_gib, system, disk } = machine::this();
    println!("{HEAD}");
    let made = format!(
        "{made} Machine: {processor}, {cores} cores, {memory_gib} GiB of memory; {system}; files on {disk}."
    );
    for kind in Kind::ALL {
        let is_of = |case: &&Case| case.setting.kind == kind;
        if !cases.iter().any(|case| is_of(&case)) {
            continue;
        }
        println!("### {}\n\n{}", kind.name(), paragraph(&made));
        println!("{}", paragraph(durability(kind)));
        if let Some(table) = compared::table_for(kind, cases) {
            println!("#### {}: Compared\n\n{}\n{table}", kind.name(), paragraph(compared::description(kind)));
        }
        for (part, what) in PARTS {
            let of_part = cases.iter().filter(is_of).filter(|case| case.what.part() == *part);
            let mut rows: Vec<&Case> = of_part.filter(|case| !case.runs.is_empty()).collect();
            rows.sort_by_key(|case| case.setting.is_full);
            if let Some(table) = of_cases(&rows, cases) {
                println!("#### {}: {part}\n\n{}\n{table}", kind.name(), paragraph(what));
            }
        }
        println!("{}", paragraph(limits(kind)));
    }
}

/// The columns are what the rows have: labels, then figures.
fn of_cases(rows: &[&Case], all: &[Case]) -> Option<String> {
    let mut labels = Vec::new();
    let mut figures = Vec::new();
    for row in rows {
        labels.extend(row.what.labels().into_iter().map(|(title, _)| title));
        figures.extend(row.runs.iter().flatten().map(|(title, _)| *title));
    }
    let mut figures = unique(figures);
    if let Some(at) = figures.iter().position(|title| *title == RATE) {
        figures.insert(at + 1, RATIO);
    }
    type Cell<'a> = Box<dyn Fn(&Case) -> String + 'a>;
    let mut cells: Vec<(&str, Cell<'_>)> =
        vec![("durability", Box::new(|case| Setting::durability(case.setting).to_owned()))];
    for title in unique(labels) {
        let label = move |case: &Case| {
            let labels = case.what.labels();
            labels.into_iter().find(|(name, _)| *name == title).map_or(String::new(), |(_, label)| label)
        };
        cells.push((title, Box::new(label)));
    }
    for title in figures {
        let cell = move |case: &Case| {
            let value = if title == RATIO { case.ratio(all, RATE) } else { case.figure(title) };
            value.map_or(String::new(), figure)
        };
        cells.push((title, Box::new(cell)));
    }
    let columns: Vec<_> = cells.iter().map(|(title, cell)| column(title, cell)).collect();
    table(rows, &columns)
}

/// Each once, in the order in which they come first.
fn unique(titles: Vec<&'static str>) -> Vec<&'static str> {
    let mut seen = Vec::new();
    for title in titles {
        if !seen.contains(&title) {
            seen.push(title);
        }
    }
    seen
}
