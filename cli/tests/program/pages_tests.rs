//! The commands of the documentation pages, run in the order of each page. `CONTRIBUTING.md` lists
//! the comments with which a page describes a block.

use std::{
    env, fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::Output,
};

use regex::{Regex, escape};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{
    page_blocks::{Block, blocks, steps},
    place_tests::Backend,
    process::{Process, pid, text, wait_until},
};

// Takes six seconds: the commands wait for the slots of the rates that the page shows.
#[test]
fn the_commands_of_recipes_run() {
    let programs = "ask backup curl encode fetch my-program producer send send-mail store worker";
    run_page(include_str!("../../../docs/recipes.md"), programs);
}

#[test]
fn the_commands_of_the_shell_quickstart_run() {
    run_page(include_str!("../../../docs/quickstart-shell.md"), "");
}

#[test]
fn the_commands_of_operating_run() {
    run_page(include_str!("../../../docs/operating.md"), "");
}

#[test]
fn the_commands_of_workflows_run() {
    run_page(include_str!("../../../docs/workflows.md"), "");
}

#[test]
fn the_commands_of_workers_run() {
    run_page(include_str!("../../../docs/workers.md"), "");
}

#[test]
fn the_commands_of_schedules_run() {
    run_page(include_str!("../../../docs/schedules.md"), "");
}

#[test]
fn shown_output_matches_another_run() {
    let shown = "01a21b21-6daf-7521-afba-ef964e66a74e  done  pid 7  2026-11-27T03:51:45Z  …, after 4.2s";
    let printed = "11a21b21-6daf-7521-afba-ef964e66a74e done pid 12 2026-11-28T13:51:45.5Z a\nb, after 3ms";
    assert!(matches(shown, printed));
    assert!(!matches(shown, &printed.replace("done", "failed")));
    assert!(!matches("1 task", "2 tasks") && !matches("1 task", "1 task\nand a warning"));
}

#[test]
#[should_panic = "line 2: a block of ini is neither run nor marked"]
fn a_block_without_shell_and_reason_fails() {
    run_page("\n```ini\na = 1\n```\n", "");
}

#[test]
#[should_panic = "line 2: exit status"]
fn a_block_whose_command_fails_fails() {
    run_page("\n```sh\nfalse\n```\n", "");
}

/// Runs the blocks of a page in one directory, with a stand-in for each of these programs.
///
/// # Panics
///
/// If a command fails or prints something else, if a block is neither run nor marked, or if a program
/// was not called.
fn run_page(page: &str, programs: &str) {
    let shell = PageShell::new(programs);
    let mut printed = None;
    for block in blocks(page).iter().filter(|block| block.not_run.is_none()) {
        match (block.file, block.language, printed.take()) {
            (Some(file), ..) => shell.write(file, block.text),
            (None, "sh", _) => printed = Some(shell.run_whole(block)),
            (None, "console", _) => shell.run_steps(block),
            (None, "text", Some(printed)) => assert_matches(block, block.text, &printed),
            // The documentation tests of the crates run these.
            (None, "rust", _) => {}
            (None, language, _) => {
                panic!("line {}: a block of {language} is neither run nor marked", block.line)
            }
        }
    }
    let calls = fs::read_to_string(shell.place.path("calls")).unwrap();
    for program in programs.split_whitespace() {
        let is_called = calls.lines().any(|call| call == program);
        assert!(is_called, "the page did not call {program}");
    }
}

/// Records its name in a file. Its output is an answer to a call of an API that is over its limit.
const PROGRAM: &str = "#!/bin/sh
echo \"${0##*/}\" >> \"$CALLS\"
echo 429
";

/// One directory, store and environment for all blocks of a page.
struct PageShell {
    place: Backend,
}

impl PageShell {
    fn new(programs: &str) -> Self {
        let place = Backend::sqlite();
        for directory in ["page", "programs"] {
            fs::create_dir(place.path(directory)).unwrap();
        }
        for file in ["exported", "calls"] {
            fs::write(place.path(file), "").unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_interval-queue"), place.path("programs/interval-queue")).unwrap();
        for program in programs.split_whitespace() {
            let path = place.path("programs").join(program);
            fs::write(&path, PROGRAM).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { place }
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.place.path("page").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// Runs a block as one script. Returns what it printed.
    fn run_whole(&self, block: &Block<'_>) -> String {
        let Block { run_first: first, text: commands, stop_when, .. } = *block;
        self.run_of(block, Script { first, commands, stop_when })
    }

    /// Runs the commands of a block one by one and compares the output of each.
    fn run_steps(&self, block: &Block<'_>) {
        let steps = steps(block);
        for (index, (commands, shown)) in steps.iter().enumerate() {
            let first = if index == 0 { block.run_first } else { "" };
            let stop_when = if index + 1 == steps.len() { block.stop_when } else { None };
            assert_matches(block, shown, &self.run_of(block, Script { first, commands, stop_when }));
        }
    }

    /// Runs a script of a block. Returns what it printed.
    fn run_of(&self, block: &Block<'_>, script: Script<'_>) -> String {
        let (line, output) = (block.line, self.run(script));
        let is_stopped = script.stop_when.is_some() && output.status.signal() == Some(Signal::KILL.as_raw());
        let is_good = is_stopped || output.status.success();
        assert!(is_good, "line {line}: exit status of {}: {output:?}", script.commands);
        text(&output.stdout)
    }

    fn run(&self, script: Script<'_>) -> Output {
        let mut process = self.start(&script.text());
        let group = Group(pid(process.id()));
        let is_met = |commands| self.run(Script { first: "", commands, stop_when: None }).status.success();
        let ending = format!("these commands end: {}", script.commands);
        wait_until(&ending, || process.ended().is_some() || script.stop_when.is_some_and(is_met));
        // Programs in the background keep the pipes open.
        drop(group);
        process.finish()
    }

    fn start(&self, script: &str) -> Process {
        let path = |name| self.place.path(name);
        let programs = format!("{}:{}", path("programs").display(), env::var("PATH").unwrap());
        let mut shell = self.place.program(Path::new("/bin/sh"));
        shell.args(["-euc", script]).current_dir(path("page")).process_group(0);
        shell.env("PATH", programs).env("EXPORTED", path("exported")).env("CALLS", path("calls"));
        Process::spawn(&mut shell)
    }
}

#[derive(Clone, Copy)]
struct Script<'a> {
    /// Their output is in stderr, all other output in stdout.
    first: &'a str,
    commands: &'a str,
    /// The script is killed when this command succeeds.
    stop_when: Option<&'a str>,
}

impl Script<'_> {
    /// Exported variables are kept for the next script.
    fn text(&self) -> String {
        let Self { first, commands, .. } = self;
        let save = "trap 'export -p > \"$EXPORTED\"' EXIT";
        format!(". \"$EXPORTED\"\n{save}\n{{ :\n{first}\n}} >&2\nexec 2>&1\n{commands}\n")
    }
}

/// A process group that is killed when this is dropped.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // All of it may have ended by itself.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

fn assert_matches(block: &Block<'_>, shown: &str, printed: &str) {
    let Block { line, .. } = block;
    assert!(matches(shown, printed), "line {line}: the page shows\n{shown}\nthe command printed\n{printed}");
}

/// Whether a command printed what the page shows. In the page, `…` stands for any text.
fn matches(shown: &str, printed: &str) -> bool {
    let parts: Vec<_> = normalised(shown).split('…').map(escape).collect();
    Regex::new(&format!("(?s)^{}$", parts.join(".*"))).unwrap().is_match(&normalised(printed))
}

/// Output that differs from run to run, and what replaces it. Columns are as wide as their texts, so
/// several blanks equal one.
const VARIABLE: [(&str, &str); 8] = [
    ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)", "TIME"),
    (r"\b\d\d:\d\d:\d\d(\.\d+)?", "CLOCK"),
    (r"\bpid \d+", "pid N"),
    (r"\b\d+(\.\d+)?(us|ms|s)\b( \d+(us|ms)\b)?", "DURATION"),
    (r"\b\d+(\.\d+)? per second", "N per second"),
    (" +", " "),
    (" *\n", "\n"),
];

fn normalised(text: &str) -> String {
    VARIABLE.iter().fold(text.trim_end().to_owned(), |text, (pattern, replacement)| {
        Regex::new(pattern).unwrap().replace_all(&text, *replacement).into_owned()
    })
}
