//! What the program writes about itself: completions that complete, pages that a formatter accepts, a schema
//! that holds.

use std::{
    env, fs,
    process::{Command, Stdio},
};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::{
    place_tests::{Backend, on_each_state},
    process::{text, wait_until},
};

on_each_state!(the_output_of_status_and_list_follows_the_schema);

fn schema(place: &Backend) -> Value {
    serde_json::from_str(&place.ok(&["schema"])).unwrap()
}

fn check(validator: &Validator, value: &Value) {
    let errors: Vec<_> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {value:#}");
}

/// The same schema, under which a field that it does not describe is an error.
fn closed(mut schema: Value) -> Value {
    for name in ["queue", "unpaced", "tasks", "shard", "unreadable"] {
        schema["$defs"][name]["additionalProperties"] = json!(false);
    }
    schema
}

fn the_output_of_status_and_list_follows_the_schema(place: &mut Backend) {
    let schema = schema(place);
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&closed(schema)).unwrap();
    let mut seen = Vec::new();
    let mut look = |place: &Backend| {
        let status = place.status();
        check(&validator, &status);
        check(&validator, &serde_json::from_str(&place.ok(&["list", "--json"])).unwrap());
        seen.push(status["status"].as_str().unwrap().to_owned());
    };
    check(&validator, &serde_json::from_str(&place.ok(&["list", "--json"])).unwrap());
    place.ok(&["run", "--every", "1ms", "--max-running", "1", "--", "true"]);
    look(place);
    let running = place.spawn(&["run", "--", "sleep", "60"]);
    wait_until("it runs", || place.status()["running"] == 1);
    let waiting = place.spawn(&["run", "--label", "größer", "--", "true"]);
    wait_until("it waits", || place.waiting() == 1);
    look(place);
    place.ok(&["hold", "1h"]);
    look(place);
    place.ok(&["pause"]);
    look(place);
    place.ok(&["reset"]);
    drop((running, waiting));
    place.ok(&["set", "--every", "1h", "--max-running", "none"]);
    place.ok(&["reset"]);
    let _first = place.spawn(&["run", "--start-within", "1h", "--", "true"]);
    let _second = place.spawn(&["run", "--start-within", "1h", "--", "true"]);
    wait_until("one waits", || place.status()["status"] == "next");
    look(place);
    assert_eq!(seen, ["empty", "at_max_running", "held", "paused", "next"]);
}

#[test]
fn the_schema_describes_every_field_and_rejects_others() {
    let place = Backend::file();
    let schema = schema(&place);
    for name in ["queue", "unpaced", "tasks", "shard", "unreadable"] {
        let object = &schema["$defs"][name];
        for (field, says) in object["properties"].as_object().unwrap() {
            let described = says["description"].as_str().is_some_and(|text| text.len() > 5);
            assert!(described, "{name}.{field} has no description");
            if field.ends_with("_us") {
                assert!(says["description"].as_str().unwrap().contains("microseconds"), "{name}.{field}");
            }
            assert!(object["required"].as_array().unwrap().contains(&json!(field)), "{name}.{field}");
        }
    }
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    let status = place.status();
    check(&validator, &status);
    for field in status.as_object().unwrap().keys() {
        let mut less = status.clone();
        less.as_object_mut().unwrap().remove(field);
        assert!(!validator.is_valid(&less), "without {field}");
        let mut other = status.clone();
        other[field] = json!({});
        assert!(!validator.is_valid(&other), "with another {field}");
    }
    let mut more = status;
    more["added_later"] = json!(1);
    check(&validator, &more);
    assert!(!validator.is_valid(&json!([{}])) && !validator.is_valid(&json!(1)));
}

#[test]
fn a_queue_that_cannot_be_read_is_in_the_schema_too() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    let mut stored: Value = serde_json::from_slice(&fs::read(place.state_file()).unwrap()).unwrap();
    stored["queues"]["mail"]["version"] = 9.into();
    fs::write(place.state_file(), stored.to_string()).unwrap();
    let output = place.run(&["list", "--json"]);
    let list = serde_json::from_slice(&output.stdout).unwrap();
    check(&jsonschema::draft202012::new(&closed(schema(&place))).unwrap(), &list);
}

#[test]
fn the_json_page_names_every_field_of_the_schema() {
    let page = include_str!("../../../docs/json.md");
    let schema = schema(&Backend::file());
    for name in ["queue", "unpaced", "tasks", "shard", "unreadable"] {
        for field in schema["$defs"][name]["properties"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{field}`")), "{field}");
        }
    }
}

/// The script for a shell, which is more than a pipe holds.
fn completions(place: &Backend, shell: &str) -> String {
    let output = place.command(&["completions", shell]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

/// What bash offers after these words, with the script of the program loaded.
fn completed(place: &Backend, words: &[&str]) -> String {
    let script = "source ./completions
        COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1))
        function=$(complete -p interval-queue | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        \"$function\" interval-queue \"${@: -1}\" \"${@: -2:1}\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output =
        place.program("bash").args(["-c", script, "bash", "interval-queue"]).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

#[test]
fn bash_completes_commands_and_options() {
    let place = Backend::file();
    fs::write(place.path("completions"), completions(&place, "bash")).unwrap();
    let read = place.program("bash").args(["-n", "completions"]).output().unwrap();
    assert!(read.status.success() && read.stderr.is_empty(), "{read:?}");
    assert_eq!(completed(&place, &["stat"]), "status\n");
    assert_eq!(completed(&place, &["wat"]), "watch\n");
    assert_eq!(completed(&place, &["run", "--start"]), "--start-within\n");
    assert_eq!(completed(&place, &["completions", "elv"]), "elvish\n");
    // What is behind `--` is none of it.
    assert_eq!(completed(&place, &["run", "--", "ls", "--start"]), "\n");
}

#[test]
fn every_shell_gets_a_script_and_others_are_named() {
    let place = Backend::file();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = completions(&place, shell);
        for word in ["interval-queue", "watch", "max-running"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let refused = place.run(&["completions", "tcsh"]);
    assert_eq!(refused.status.code(), Some(64));
    assert!(text(&refused.stderr).contains("fish"), "{refused:?}");
    assert!(place.files().is_empty());
}

#[test]
fn manual_pages_are_written_without_format_warnings() {
    let place = Backend::file();
    assert_eq!(place.ok(&["man", "pages/man1"]), "");
    let pages: Vec<_> =
        fs::read_dir(place.path("pages/man1")).unwrap().map(|page| page.unwrap().path()).collect();
    assert!(pages.len() > 10, "{pages:?}");
    // It is more than a pipe holds.
    let whole = text(&place.command(&["man"]).output().unwrap().stdout);
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        assert!(text.is_ascii(), "{page:?}");
        assert!(whole.contains(&text), "{page:?}");
    }
    // Not every host has one.
    if Command::new("groff").arg("--version").output().is_ok() {
        for page in &pages {
            let output = Command::new("groff").args(["-man", "-ww", "-Tutf8"]).arg(page).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        }
        let page = place.path("pages/man1/interval-queue-run.1");
        let output = Command::new("groff").args(["-man", "-Tutf8", "-P-c"]).arg(page).output().unwrap();
        let formatted = text(&output.stdout);
        assert!(
            formatted.contains("\n         124      run: CMD ran into"),
            "the table stands as it is: {formatted}"
        );
    }
    let refused = place.run(&["man", "pages/man1/interval-queue.1/below"]);
    assert_eq!(refused.status.code(), Some(73), "{refused:?}");
}

const PROGRAM_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/program.md");
/// Everything below it is generated.
const PROGRAM_PAGE_MARK: &str = "<!-- made from --help: INTERVAL_QUEUE_WRITE_PAGES=1 rewrites it -->\n";

#[test]
fn the_program_page_is_what_help_prints() {
    let page = fs::read_to_string(PROGRAM_PAGE).unwrap();
    let (intro, _) = page.split_once(PROGRAM_PAGE_MARK).unwrap();
    let expected = format!("{intro}{PROGRAM_PAGE_MARK}{}", help_sections(&Backend::file(), &[], ""));
    if env::var_os("INTERVAL_QUEUE_WRITE_PAGES").is_some() {
        fs::write(PROGRAM_PAGE, expected).unwrap();
    } else {
        let same = page.lines().zip(expected.lines()).take_while(|(page, expected)| page == expected);
        let line = same.count() + 1;
        assert!(
            page == expected,
            "line {line} differs: set INTERVAL_QUEUE_WRITE_PAGES=1 to rewrite the page"
        );
    }
}

/// A section with the help of this command, then the sections of its subcommands. `shared` ends the help of
/// several commands and is left out.
fn help_sections(place: &Backend, command: &[&str], shared: &str) -> String {
    let help = help(place, command);
    let level = "#".repeat(2 + command.len().saturating_sub(1));
    let name = if command.is_empty() { "interval-queue".to_owned() } else { command.join(" ") };
    let own = help.strip_suffix(shared).unwrap_or(&help);
    let section = format!("\n{level} `{name}`\n\n```text\n{own}```\n");
    let shared = help.find("\nExit codes:\n").map_or(shared, |start| &help[start..]);
    let below = |name| help_sections(place, &[command, &[name]].concat(), shared);
    section + &subcommands(&help).map(below).collect::<String>()
}

/// The whole help of this command, 100 columns wide.
fn help(place: &Backend, command: &[&str]) -> String {
    let mut program = place.command(command);
    program.arg("--help").stdin(Stdio::null()).env("COLUMNS", "100");
    program.env_remove("INTERVAL_QUEUE_STORE").env_remove("INTERVAL_QUEUE_NAME");
    let help = text(&program.output().unwrap().stdout);
    help.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The names in the section `Commands:`.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let (_, list) = help.split_once("\nCommands:\n").unwrap_or_default();
    let entries = list.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
    let names = entries.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name))
}
