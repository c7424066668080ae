//! The rooms of the libraries, and of the line and the worker below them: each file or folder of their `src` is one,
//! and what they use of each other goes one way.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

type Rooms = BTreeMap<String, BTreeSet<String>>;

const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
const LINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/state-backends/line/src");
const TASKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tasks/src");
const WORKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/state-backends/worker/src");

/// What is compiled of a file or of all files of a folder, without comments and tests.
fn code(path: &Path) -> String {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().map(|entry| code(&entry.unwrap().path())).collect();
    }
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap().to_owned() + "\n").collect()
}

/// The names that are right behind `crate::`, in a list or by themselves.
fn named(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let mut depth = 0;
        let items = rest.split_inclusive(['{', '}', ',', ';', '(', ')', '<', '>']).map_while(|item| {
            let is_listed = depth == 1;
            depth += item.matches('{').count();
            depth -= item.matches('}').count().min(depth);
            Some((item, is_listed)).filter(|_| is_listed || depth > 0)
        });
        let listed: Vec<_> = items.filter(|(_, is_listed)| *is_listed).map(|(item, _)| item).collect();
        let items = if rest.starts_with('{') { listed } else { vec![rest] };
        names.extend(items.into_iter().map(first_word).filter(|word| !word.is_empty()));
    }
    names
}

fn first_word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The room in which each public name is at home.
fn homes(library: &str) -> BTreeMap<String, String> {
    let uses = library.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()?.split_once("::"));
    let homes = uses.flat_map(|(room, names)| {
        let names = names.rsplit("::").next().unwrap().trim_matches(['{', '}', '\n', ' ']).to_owned();
        let names: Vec<_> = names.split(',').map(|name| name.trim().to_owned()).collect();
        names.into_iter().map(|name| (name, room.to_owned())).collect::<Vec<_>>()
    });
    homes.collect()
}

fn rooms(source: &str) -> Rooms {
    let source = Path::new(source);
    let homes = homes(&code(&source.join("lib.rs")));
    let mut rooms = Rooms::new();
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let room = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !["lib", "fuzzing", "_guide"].contains(&&*room) {
            let names = named(&code(&path));
            let uses = names.iter().map(|name| homes.get(name).unwrap_or(name).clone());
            let uses = uses.filter(|used| *used != room).collect();
            rooms.insert(room, uses);
        }
    }
    rooms
}

/// The rooms that use each other, directly or not, and what is between them.
fn knot(mut rooms: Rooms) -> Rooms {
    loop {
        let names: BTreeSet<_> = rooms.keys().cloned().collect();
        for uses in rooms.values_mut() {
            uses.retain(|used| names.contains(used));
        }
        let used: BTreeSet<_> = rooms.values().flatten().cloned().collect();
        rooms.retain(|room, uses| !uses.is_empty() && used.contains(room));
        if rooms.len() == names.len() {
            return rooms;
        }
    }
}

#[test]
fn no_rooms_use_each_other() {
    for (source, [first, second, third]) in [
        (LIBRARY, ["driver", "shard", "line"]),
        (LINE, ["share", "line", "held_tickets"]),
        (TASKS, ["worker", "queue", "error"]),
        (WORKER, ["inbound", "worker", "held"]),
    ] {
        let rooms = rooms(source);
        let is_read = rooms[first].contains(second) && rooms[second].contains(third);
        assert!(is_read, "what is read of {source} is what is there: {rooms:#?}");
        let knot = knot(rooms);
        assert!(knot.is_empty(), "these of {source} use each other: {knot:#?}");
    }
}

#[test]
fn the_line_has_no_way_out() {
    let used = &rooms(LIBRARY)["line"];
    assert!(used.is_empty(), "the line uses {used:?}");
}

#[test]
fn used_modules_are_found() {
    let code = "use crate::{\n    IntervalQueue,\n    line::{JobId, waiting::Waiting},\n    wake,\n};\nlet a = crate::clock::now();\n";
    let found: Vec<_> = named(code).into_iter().collect();
    assert_eq!(found, ["IntervalQueue", "clock", "line", "wake"]);
    let homes = homes("pub use line::outage::WhenStateIsLost;\npub use error::{Error, ErrorKind};\n");
    assert_eq!(homes["WhenStateIsLost"], "line");
    assert_eq!(homes["ErrorKind"], "error");
}

#[test]
fn a_knot_is_found() {
    let of = |name: &str, uses: &[&str]| {
        (name.to_owned(), uses.iter().map(|used| (*used).to_owned()).collect::<BTreeSet<_>>())
    };
    let rooms = Rooms::from([of("a", &["b"]), of("b", &["c", "d"]), of("c", &["b"]), of("d", &[])]);
    let names: Vec<_> = knot(rooms).into_keys().collect();
    assert_eq!(names, ["b", "c"]);
}
