//! `cargo bench --bench tasks` works.

use std::{env, process::Command};

/// The rows of the table below a heading, cell by cell, without its head.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let (_, below) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading:?} in {page}"));
    let table = below.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with('|'));
    table.skip(2).map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// A figure as the page shows it.
fn number(cell: &str) -> f64 {
    cell.replace(',', "").parse().unwrap_or_else(|_| panic!("{cell:?} is no number"))
}

#[test]
#[ignore = "needs cargo to build the benchmark: scripts/test runs it"]
fn the_benchmark_of_stored_tasks_measures() {
    // With the features of `scripts/test`, so that little is left to be built.
    let output = Command::new(env::var_os("CARGO").unwrap())
        .args(["test", "--quiet", "--workspace", "--all-features", "--bench", "tasks", "--"])
        .args(["--quick", "--ours"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(page.starts_with("# What stored tasks cost\n"), "{page}");
    assert!(page.contains("nothing to be quoted"), "{page}");

    let speed = rows(&page, "## Tasks a second");
    let by = |what: &str| -> Vec<&[&str]> {
        speed.iter().filter(|row| row[3] == what).map(|row| &row[..3]).collect()
    };
    assert_eq!(speed.len(), 16, "{page}");
    assert_eq!(by("steps"), by("`Worker`"), "both do all: {page}");
    for row in &speed {
        assert!([4, 5, 6].iter().all(|column| number(row[*column]) > 0.0), "{row:?}");
    }

    let full = rows(&page, "## A full table");
    assert_eq!(full.iter().map(|row| row[0]).collect::<Vec<_>>(), ["nothing", "ready", "ended"], "{page}");
    assert!(full.iter().flat_map(|row| &row[1..]).all(|cell| number(cell) > 0.0), "{page}");

    let (_, pickup) = page.split_once("is idle: ").unwrap();
    assert!(number(pickup.split(' ').next().unwrap()) > 0.0, "{page}");
}
