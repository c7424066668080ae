//! The page that is committed is the one that its figures give.

use std::{fs, path::Path};

use interval_queue_report::{Report, render};

const AGAIN: &str =
    "run: cargo run -p interval-queue-report -- render docs/reliability.json docs/reliability.md";

#[test]
fn the_page_tells_what_its_figures_say() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let data = fs::read_to_string(documents.join("reliability.json")).unwrap();
    let page = fs::read_to_string(documents.join("reliability.md")).unwrap();
    let report: Report = serde_json::from_str(&data).unwrap();
    let rendered = render(&report);
    let mut lines = page.lines().zip(rendered.lines()).enumerate();
    let differs = lines.find(|(_, (is, should))| is != should);
    assert!(
        page == rendered,
        "docs/reliability.md is not what docs/reliability.json gives, from line {:?} on; {AGAIN}",
        differs.map_or(page.lines().count().min(rendered.lines().count()) + 1, |(at, _)| at + 1)
    );
    let long =
        page.lines().find(|line| line.chars().count() > 120 && !line.starts_with("interval-queue-sim run"));
    assert_eq!(long, None, "lines can be read as text");
}
