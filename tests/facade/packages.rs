//! What is published with each crate: licences and the documentation of all features, and no tests.

use std::{fs, path::Path};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(ROOT).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines below a header, up to the next one, without comments.
fn section(manifest: &str, header: &str) -> String {
    let (_, rest) = manifest.split_once(&format!("{header}\n")).unwrap_or_default();
    let lines = rest.split("\n[").next().unwrap().lines();
    lines.filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// The folders of the crates that are published.
fn published() -> Vec<String> {
    let backends = fs::read_dir(Path::new(ROOT).join("state-backends")).unwrap();
    let backends = backends.map(|entry| format!("state-backends/{}", entry.unwrap().file_name().display()));
    let all: Vec<_> =
        backends.chain([".", "tasks", "documents", "cli", "simulation"].map(Into::into)).collect();
    assert!(all.len() > 10, "{all:?}");
    all
}

#[test]
fn each_crate_has_its_licences_and_leaves_its_tests_behind() {
    for folder in published() {
        let manifest = read(format!("{folder}/Cargo.toml"));
        assert!(!section(&manifest, "[package]").contains("publish = false"), "{folder}");
        assert!(manifest.contains("\ninclude.workspace = true\n"), "{folder}");
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert_eq!(read(format!("{folder}/{licence}")), read(licence), "{folder}");
        }
        assert!(read(format!("{folder}/README.md")).lines().count() > 4, "{folder}");
    }
    let included = section(&read("Cargo.toml"), "[workspace.package]");
    let included = included.lines().find(|line| line.starts_with("include = ")).unwrap().to_owned();
    for part in ["/src\"", "/README.md", "/LICENSE-*"] {
        assert!(included.contains(part), "{included}");
    }
    for part in ["tests", "benches", "**"] {
        assert!(!included.contains(part), "{included}");
    }
}

#[test]
fn the_documentation_has_every_feature_but_fuzzing() {
    for folder in published() {
        let manifest = read(format!("{folder}/Cargo.toml"));
        let documented = section(&manifest, "[package.metadata.docs.rs]");
        assert!(!documented.contains("all-features") && !documented.contains("fuzzing"), "{folder}");
        let features = section(&manifest, "[features]");
        let features: Vec<_> = features.lines().filter_map(|line| line.split_once(" = ")).collect();
        let default = features.iter().find(|(name, _)| *name == "default").map_or("", |(_, list)| list);
        for (name, _) in &features {
            let quoted = format!("\"{name}\"");
            let is_shown = documented.contains(&quoted) || default.contains(&quoted);
            assert_eq!(is_shown, !["default", "fuzzing"].contains(name), "{folder}: {name}");
        }
        // The program has none.
        let library =
            fs::read_to_string(Path::new(ROOT).join(format!("{folder}/src/lib.rs"))).unwrap_or_default();
        let labels = library.contains("#![cfg_attr(docsrs, feature(doc_cfg))]");
        assert_eq!(labels, !documented.is_empty(), "{folder}");
    }
}
