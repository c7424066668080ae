//! `cargo bench --bench tasks` works.

/// The tables of a page, with the headings above them, row by row.
fn tables(page: &str) -> Vec<(&str, Vec<Vec<&str>>)> {
    let mut tables = Vec::new();
    for part in page.split("\n#### ").skip(1) {
        let (heading, below) = part.split_once('\n').unwrap();
        let lines = below.lines().filter(|line| line.starts_with('|'));
        let rows = lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect());
        tables.push((heading, rows.collect()));
    }
    tables
}

/// A figure as the page shows it.
fn number(cell: &str) -> f64 {
    cell.replace(',', "").parse().unwrap_or_else(|_| panic!("{cell:?} is no number"))
}

#[test]
#[ignore = "needs cargo to build the benchmark: scripts/test runs it"]
fn the_benchmark_of_stored_tasks_measures() {
    // With the features of `scripts/test`, so that little is left to be built.
    let output = super::cargo()
        .args(["test", "--quiet", "--workspace", "--all-features", "--bench", "tasks", "--"])
        .args(["--quick", "--store", "sqlite"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(page.starts_with("## Stored tasks\n"), "{page}");
    assert!(page.contains("its figures mean nothing"), "{page}");

    let tables = tables(&page);
    let headings: Vec<_> = tables.iter().map(|(heading, _)| *heading).collect();
    let parts = ["Compared", "Adds", "Burn-down", "Steady", "Open loop", "Degraded", "Backlog", "Killed"];
    assert_eq!(headings, parts.map(|part| format!("SQLite: {part}")), "{page}");
    let rows = [3, 5, 6, 3, 1, 1, 1, 1];
    for ((heading, table), rows) in tables.iter().zip(rows) {
        assert_eq!(table.len(), rows + 2, "{heading}: {page}");
    }

    let figure = |part: usize, row: usize, title: &str| {
        let (_, table) = &tables[part];
        number(table[row + 2][table[0].iter().position(|name| *name == title).unwrap()])
    };
    assert!((0..5).all(|row| figure(1, row, "tasks a second") > 0.0), "{page}");
    // A step with one task is a command for each; with a hundred it is fewer.
    assert!(figure(2, 0, "commands") > figure(2, 2, "commands"), "{page}");
    assert!((0..3).all(|row| figure(3, row, "tasks a second") > 0.0), "{page}");
    assert!(figure(4, 0, "p99, µs") >= figure(4, 0, "p50, µs"), "{page}");
    assert!(figure(5, 0, "waiting") >= 1_000.0 && figure(5, 0, "ratio then") > 0.0, "{page}");
    assert!(figure(6, 0, "wait for keys") >= 1_000.0 && figure(6, 0, "ratio with these") > 0.0, "{page}");
    assert!(figure(7, 0, "until all ran again, ms") > 0.0, "{page}");
}
