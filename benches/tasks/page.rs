//! The page: what was found, place by place, in Markdown.

use std::time::Duration;

use interval_queue_report::paragraph;

use crate::{
    case::Case,
    figures::figure,
    machine,
    place::{Kind, Setting},
    report::Machine,
    table::{column, table},
};

/// What is said of each part.
const PARTS: &[(&str, &str)] = &[
    ("Adds", "Four processes add tasks, one command after the other."),
    (
        "Burn-down",
        "Tasks are added first, which is not counted; then four processes run them, from the first start to the last end. \
         *steps* are the commands of a worker by themselves, each of which completes and leases so many; `Worker` is the one of \
         the library with so many jobs, and an empty handler.",
    ),
    (
        "Steady",
        "Four processes with a `Worker` and an empty handler add what they run, 100 at once; adding is counted.",
    ),
    (
        "Open loop",
        "From the instant at which a task was due to be added to its start: at half of what four workers with 16 jobs managed \
         before while they added, and 50 a second with one worker that is idle and hears of each.",
    ),
    (
        "Degraded",
        "A step that completes ten tasks and leases ten, as a multiple of the same on an empty store: with that many ready, then \
         with that many ended, with that many waiting for two keys, and after that many ran beside a transaction that is held open.",
    ),
    (
        "Backlog",
        "Four processes with a `Worker` of ten jobs and an empty handler add what they run, 100 at once: alone, then while that many \
         tasks behind two keys wait to be admitted, and while that many that became due at one instant do, in turn, seven times. A \
         ratio is that to alone, the median of the turns; tasks of the backlog have a lower priority, so they hardly run meanwhile.",
    ),
    (
        "Killed",
        "One of four workers is killed while it runs ten tasks: until all ten have started in the others.",
    ),
];
const RATE: &str = "tasks a second";
const RATIO: &str = "ratio";

/// Why it is not faster.
fn limits(kind: Kind) -> &'static str {
    match kind {
        Kind::Directory => {
            "What limits it: one lock, so one command at a time; and that a task is a file, which is made, renamed to be \
             leased, and written and renamed when it has ended. That is work of the kernel, most of all for small files that \
             are new. With fsync it is the disk."
        }
        Kind::Sqlite => {
            "What limits it: one writer at a time, and a transaction for each command, which commands of a process share. \
             With full durability a step of one is mostly its flush."
        }
        Kind::Redis => {
            "What limits it: the server runs one command at a time, and the rules in it are Lua. With many tasks at once it \
             is what each of them takes there, with one it is the script that is started and the queue that is read."
        }
        Kind::Postgres => {
            "What limits it: the processor of the server. It starts the same statements for a command whatever they find, \
             and a step of one pays for them alone. A row is written anew when its task is leased and when it has ended, with \
             entries in the indexes of its state: that is the WAL. Ten times a second one step does the housekeeping of all, \
             and others wait for it."
        }
    }
}

/// What it begins with.
pub(crate) fn head(command: &str, runs: u32, time: Duration, is_quick: bool) {
    let Machine { processor, cores, memory_gib, system, disk } = machine::this();
    println!("## Stored tasks\n");
    println!(
        "{}",
        paragraph(&format!(
            "How many tasks go through a store, how soon they start, and what that costs. Made by `{command}`; figures are medians \
         of {runs}, everything once before anything again, each measured for {time:?}. A ratio is that to the best of the other \
         libraries in the same case; CPU and what the server does are for each task. Rows of one table may be compared, \
         figures of different machines may not. [How the others are set up](https://github.com/interval-queue/interval-queue/blob/main/benches/peers/README.md#stored-tasks)."
        ))
    );
    if is_quick {
        println!("This was a quick run: nothing to be quoted.\n");
    }
    let machine =
        format!("{processor}, {cores} cores, {memory_gib} GiB of memory; {system}; files on {disk}.");
    println!("{}", paragraph(&machine));
}

/// All tables.
pub(crate) fn tables(cases: &[Case]) {
    for kind in Kind::ALL {
        let is_of = |case: &&Case| case.setting.kind == kind;
        if !cases.iter().any(|case| is_of(&case)) {
            continue;
        }
        println!("### {}\n", kind.name());
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
