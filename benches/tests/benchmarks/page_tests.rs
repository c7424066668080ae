//! The page of the benchmark says what was measured, and its pictures show it.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock};

use crate::{
    choice, made_up,
    render::{render, sections},
    report::{Pace, Report, Run, Scenario, Spread},
};

/// The page, its pictures and their data, by their names.
fn files(docs: &Path) -> BTreeMap<String, String> {
    let pictures = fs::read_dir(docs.join("benchmarks")).unwrap().map(|entry| entry.unwrap().path());
    let paths = pictures.chain(["benchmarks.md", "benchmarks.json"].map(|name| docs.join(name)));
    let name = |path: &Path| path.strip_prefix(docs).unwrap().to_string_lossy().into_owned();
    paths.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

fn rendered(report: &Report) -> BTreeMap<String, String> {
    let docs = tempfile::tempdir().unwrap();
    render(report, docs.path()).unwrap();
    files(docs.path())
}

/// Fails where the files are not what they should be, without showing all of them.
fn compare(are: &BTreeMap<String, String>, should: &BTreeMap<String, String>) {
    let again = "run: scripts/benchmarks render";
    assert_eq!(are.keys().collect::<Vec<_>>(), should.keys().collect::<Vec<_>>(), "{again}");
    for (name, should) in should {
        let differs = are[name].lines().zip(should.lines()).position(|(is, should)| is != should);
        assert!(are[name] == *should, "docs/{name} is another after line {differs:?}; {again}");
    }
}

/// What the report that nobody measured becomes.
fn made_up_files() -> &'static BTreeMap<String, String> {
    static FILES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| rendered(&made_up::report()));
    &FILES
}

/// The lines of a page that begin with this.
fn lines<'a>(page: &'a str, start: &str) -> Vec<&'a str> {
    page.lines().filter(|line| line.starts_with(start)).collect()
}

/// The names of the pictures that a page shows.
fn shown(page: &str) -> Vec<String> {
    let names = lines(page, "![").into_iter().filter_map(|line| line.split_once("](")?.1.strip_suffix(')'));
    let mut names: Vec<_> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_page_tells_what_its_figures_say() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs"));
    let data = fs::read_to_string(docs.join("benchmarks.json")).unwrap();
    compare(&files(docs), &rendered(&serde_json::from_str(&data).unwrap()));
}

#[test]
fn every_picture_is_shown() {
    let files = made_up_files();
    let pictures: Vec<_> = files.keys().filter(|name| name.ends_with(".svg")).cloned().collect();
    assert_eq!(shown(&files["benchmarks.md"]), pictures);
    assert_eq!(pictures.len(), 5, "{pictures:?}");
}

#[test]
fn pictures_can_be_read() {
    for (name, svg) in made_up_files().iter().filter(|(name, _)| name.ends_with(".svg")) {
        let attribute = |line: &str, name: &str| {
            let value = line.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0;
            value.parse::<f64>().ok()
        };
        let begin = svg.lines().next().unwrap();
        let scale =
            svg.split_once("viewBox=\"0 0 ").unwrap().1.split(' ').next().unwrap().parse::<f64>().unwrap()
                / attribute(begin, "width").unwrap();
        let texts = svg.lines().filter_map(|line| attribute(line, "font-size"));
        let smallest = texts.map(|size| size / scale).fold(f64::MAX, f64::min);
        assert!((11.99..20.0).contains(&smallest), "{name}: letters of {smallest} pixels");
        let paper = svg.lines().nth(1).unwrap();
        assert!(
            paper.starts_with("<rect x=\"0\" y=\"0\"") && paper.contains("fill=\"#FFFFFF\""),
            "{name}: {paper}"
        );
    }
}

#[test]
fn timelines_show_the_starts_they_speak_of() {
    for name in ["starts", "kill"] {
        let svg = &made_up_files()[&format!("benchmarks/{name}.svg")];
        let facts = svg.lines().filter_map(|line| line.strip_suffix(" slots")?.split_once(" starts in "));
        let spoken_of: Vec<usize> = facts.map(|(starts, _)| starts.parse().unwrap()).collect();
        assert_eq!(spoken_of.len(), 5, "{name}");
        assert_eq!(svg.matches("<circle").count(), spoken_of.iter().sum::<usize>(), "{name}");
    }
}

#[test]
fn ours_comes_first() {
    assert_ne!(made_up::report().paces[0].contender, choice::OURS);
    for (name, text) in made_up_files() {
        let places = ["Bottleneck", choice::OURS].map(|contender| {
            let is_named = |line: &str| line == contender || line.starts_with(&format!("| {contender} "));
            text.lines().position(|line| is_named(&line.replace('*', "")))
        });
        assert!(places[0] >= places[1], "{name}: {places:?}");
    }
    let ours: Vec<_> = lines(&made_up_files()["benchmarks.md"], "| **interval-queue**");
    let states = ours.iter().filter_map(|line| Some(line.split('|').nth(2)?.trim())).collect::<Vec<_>>();
    assert_eq!(states, ["redis", "file on tmpfs", "file on disk"]);
}

#[test]
fn what_was_not_measured_is_left_out() {
    let files = rendered(&Report::default());
    assert_eq!(files.len(), 2);
    let titles = lines(&files["benchmarks.md"], "#");
    assert_eq!(
        titles,
        ["# Benchmarks", "## What limits it", "## How it is measured", "## Machine and versions"]
    );

    let mut alone = made_up::report();
    alone.paces.retain(choice::is_ours);
    alone.paces.retain(|pace| pace.state != "redis");
    alone.crowds.clear();
    let files = rendered(&alone);
    let page = &files["benchmarks.md"];
    assert!(!page.contains("in the same run") && !page.contains("server CPU per job, µs"), "{page}");
    assert_eq!(
        shown(page),
        ["gap_error", "kill", "recovery", "starts"].map(|name| format!("benchmarks/{name}.svg"))
    );
    assert!(lines(page, "## Crowds").is_empty() && lines(page, "## Far").is_empty(), "{page}");
}

#[test]
fn the_summary_takes_medians_and_sums() {
    let run = |rate, p1, close, operations| Run {
        started: 1_001,
        rate,
        close,
        gaps: Spread { p1, ..Spread::default() },
        inversions: close,
        operations: Some(operations),
        ..Run::default()
    };
    let pace = Pace {
        contender: choice::OURS.into(),
        state: "redis".into(),
        scenario: Scenario::Saturated,
        interval: choice::INTERVAL,
        processes: 4,
        jobs: 1_001,
        runs: vec![run(0.5, 9_000.0, 0, 1.25), run(0.999_9, 9_870.0, 1, 2.5), run(1.0, 9_880.0, 5, 1.125)],
        sample: Vec::new(),
        failure: Some("one run\nwas lost".into()),
    };
    let other = Pace { contender: "another".into(), state: "sqlite".into(), ..pace.clone() };
    let files = rendered(&Report { paces: vec![other, pace], ..Report::default() });
    let page = &files["benchmarks.md"];
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>().join("|");
    assert_eq!(
        cells(lines(page, "| **interval-queue**")[0]),
        "|**interval-queue**|redis|99.99|98.7|2.00|3,000|1|1.25|"
    );
    assert!(page.lines().any(|line| line.starts_with("|--------------------|--------|--------:|")), "{page}");
    let rows: Vec<_> = lines(page, "| ").into_iter().map(cells).collect();
    assert!(rows.iter().any(|row| row.starts_with("|another|sqlite|99.99 (50.0–100.00)|")), "{rows:?}");
    assert!(
        page.contains("- another, sqlite, one job per 10 ms, after 3 runs: one run was lost\n"),
        "{page}"
    );
}

#[test]
fn pictures_of_an_earlier_report_are_removed() {
    let docs = tempfile::tempdir().unwrap();
    fs::create_dir(docs.path().join("benchmarks")).unwrap();
    fs::write(docs.path().join("benchmarks/crowds.svg"), "<svg/>").unwrap();
    render(&Report::default(), docs.path()).unwrap();
    assert_eq!(files(docs.path()).len(), 2);
}

#[test]
fn a_new_section_of_a_store_replaces_the_old_one() {
    let printed = |text| sections(&format!("## Stored tasks\n\n### SQLite\n\n{text}\n\n### Redis\n\nR\n\n"));
    let mut report = Report { tasks: printed("old"), ..made_up::report() };
    report.tasks.extend(sections("left out\n\n### SQLite\n\nnew\n\n#### SQLite: Adds\n"));
    let files = rendered(&report);
    let page = &files["benchmarks.md"];
    let joined = "\n### Redis\n\nR\n\n### SQLite\n\nnew\n\n#### SQLite: Adds\n\n## What limits it\n";
    assert!(page.contains(joined) && page.contains("\n## Stored tasks\n"), "{page}");
    compare(&rendered(&serde_json::from_str(&files["benchmarks.json"]).unwrap()), &files);
}

#[test]
fn what_is_stored_gives_the_same_page() {
    let stored = &made_up_files()["benchmarks.json"];
    let whole = serde_json::to_string(&made_up::report()).unwrap();
    assert!(stored.len() < whole.len() / 3, "{} of {} bytes", stored.len(), whole.len());
    compare(&rendered(&serde_json::from_str(stored).unwrap()), made_up_files());
}

#[test]
fn prose_can_be_read_as_text() {
    let files = made_up_files();
    let prose = files["benchmarks.md"].lines().filter(|line| !line.starts_with(['|', '-']));
    assert_eq!(prose.max_by_key(|line| line.chars().count()).filter(|line| line.chars().count() > 100), None);
}
