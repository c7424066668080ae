//! Documents about the program: completions for shells, manual pages, and the schema of its JSON.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, Command, CommandFactory, ValueEnum};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use interval_queue_documents::schema;

use crate::{
    args::Cli,
    exit::{CANTCREAT, Failure, SOFTWARE, print_as_it_is},
    watch::CHOSEN_VARIABLE,
};

/// However the program was called.
const NAME: &str = "interval-queue";

/// Print the completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cd ~/.local/share/bash-completion/completions
  interval-queue completions bash > interval-queue
  # In a directory of $fpath:
  interval-queue completions zsh > _interval-queue
  cd ~/.config/fish/completions
  interval-queue completions fish > interval-queue.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write the manual pages of the program and of each command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue man | man -l -
  interval-queue man ~/.local/share/man/man1")]
pub(crate) struct Manual {
    /// Directory for the pages, as interval-queue.1, interval-queue-run.1, …; created if missing.
    /// Default: stdout
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Print the JSON Schema of the output of `--json`, or of the input of `add --flow`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue schema > status.schema.json
  interval-queue schema tasks > tasks.schema.json
  interval-queue schema flow > flow.schema.json")]
pub(crate) struct Schema {
    /// The documents: `status` for the output of `status` and `list`, `tasks` for that of `tasks`,
    /// `schedule list` and `add --flow`, `flow` for the input of `add --flow`
    #[arg(value_enum, default_value_t = Of::Status)]
    of: Of,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Of {
    Status,
    Tasks,
    Flow,
}

pub(crate) fn schema(args: &Schema) -> Result<(), Failure> {
    let text = match args.of {
        Of::Status => schema::status(),
        Of::Tasks => schema::tasks(),
        Of::Flow => schema::flow(),
    };
    print_as_it_is(text.as_bytes())
}

pub(crate) fn completions(completions: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(completions.shell, &mut Cli::command(), NAME, &mut script);
    if completions.shell == Shell::Bash {
        // The script takes the hyphen in the program's name for the space before a command.
        let text = String::from_utf8_lossy(&script);
        let text = text.replace("interval__subcmd__queue", "interval__queue");
        // The words after `--` belong to CMD, but the script would complete words with a hyphen as
        // options of the program.
        let behind = "    [[ \" ${COMP_WORDS[*]:0:COMP_CWORD} \" == *\" -- \"* ]] && return 0\n";
        script = text.replacen("    COMPREPLY=()\n", &format!("    COMPREPLY=()\n{behind}"), 1).into_bytes();
    }
    print_as_it_is(&script)
}

pub(crate) fn manual(manual: &Manual) -> Result<(), Failure> {
    let pages = pages()?;
    let Some(directory) = &manual.directory else {
        return print_as_it_is(&pages.into_iter().flat_map(|(_, page)| page).collect::<Vec<_>>());
    };
    let cannot = |what: &Path, error: &std::io::Error| {
        Failure::new(CANTCREAT, format!("cannot write {}: {error}", what.display()))
    };
    fs::create_dir_all(directory).map_err(|error| cannot(directory, &error))?;
    for (name, page) in pages {
        let path = directory.join(format!("{name}.1"));
        fs::write(&path, page).map_err(|error| cannot(&path, &error))?;
    }
    Ok(())
}

fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let mut all = vec![(NAME.to_owned(), program.clone())];
    below(&program, NAME, NAME, &mut all);
    all.into_iter().map(|(name, command)| Ok((name, page(&command)?))).collect()
}

/// Recursive.
fn below(command: &Command, page: &str, shown: &str, all: &mut Vec<(String, Command)>) {
    for command in
        command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
    {
        let page = format!("{page}-{}", command.get_name());
        let shown = format!("{shown} {}", command.get_name());
        let named = command.clone().display_name(page.clone()).bin_name(shown.clone());
        all.push((page.clone(), named.version(env!("CARGO_PKG_VERSION"))));
        below(command, &page, &shown, all);
    }
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::new(SOFTWARE, format!("cannot make a manual page: {error}"));
    let man = Man::new(command.clone())
        .section("1")
        .manual("Interval queue")
        .source(format!("interval-queue {}", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    man.render_title(&mut page).map_err(failed)?;
    man.render_name_section(&mut page).map_err(failed)?;
    // An option that the environment can set is optional on the command line.
    let optional =
        command.clone().mut_args(|arg| if arg.get_env().is_some() { arg.required(false) } else { arg });
    Man::new(optional).render_synopsis_section(&mut page).map_err(failed)?;
    man.render_description_section(&mut page).map_err(failed)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page).map_err(failed)?;
    }
    if command.get_subcommands().any(|command| !command.is_hide_set()) {
        man.render_subcommands_section(&mut page).map_err(failed)?;
    }
    page.extend(environment(command).into_bytes());
    if let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        page.extend(as_it_stands(&text.to_string()).into_bytes());
    }
    Ok(in_ascii(&String::from_utf8_lossy(&page)).into_bytes())
}

fn environment(command: &Command) -> String {
    let has_option = |option: &str| {
        let has = |command: &Command| command.get_arguments().any(|arg| arg.get_long() == Some(option));
        has(command) || command.get_subcommands().any(has)
    };
    let variables = [
        ("store", "INTERVAL_QUEUE_STORE", "The store of the queues, unless \\-\\-store is given."),
        (
            "queue",
            CHOSEN_VARIABLE,
            "The queue, unless \\-\\-queue is given; for watch, the queue chosen at first.",
        ),
    ];
    let mut page = String::new();
    for (_, name, meaning) in variables.into_iter().filter(|(option, ..)| has_option(option)) {
        page += if page.is_empty() { ".SH ENVIRONMENT\n" } else { "" };
        page += &format!(".TP\n\\fB{name}\\fR\n{meaning}\n");
    }
    page
}

/// Not every formatter of roff reads UTF-8.
fn in_ascii(page: &str) -> String {
    let sign = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) };
    page.chars().map(sign).collect()
}

/// Headings start in the first column and end with a colon. Lines are kept.
fn as_it_stands(text: &str) -> String {
    let mut page = String::new();
    let mut open = false;
    for line in text.lines() {
        let heading = line.strip_suffix(':').filter(|line| line.starts_with(char::is_uppercase));
        if let Some(heading) = heading {
            if open {
                page += ".fi\n";
            }
            page += &format!(".SH {}\n.nf\n", heading.to_uppercase());
            open = true;
            continue;
        }
        if !open {
            page += ".SH NOTES\n.nf\n";
            open = true;
        }
        page += &escaped(line);
        page.push('\n');
    }
    if open {
        page += ".fi\n";
    }
    page
}

/// No line begins with a roff request, and its characters are literal.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    if line.starts_with('.') { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_all_its_options() {
        let mut program = Cli::command();
        program.build();
        let pages = pages().unwrap();
        assert_eq!(pages[0].0, "interval-queue");
        for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
            let name = format!("interval-queue-{}", command.get_name());
            let (_, page) =
                pages.iter().find(|(page, _)| *page == name).unwrap_or_else(|| panic!("no {name}"));
            let page = String::from_utf8(page.clone()).unwrap().replace('\\', "");
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                if let Some(long) = argument.get_long() {
                    assert!(page.contains(&format!("--{long}")), "--{long} is not in\n{page}");
                }
            }
        }
    }

    #[test]
    fn pages_tell_of_the_environment() {
        for (name, page) in pages().unwrap() {
            let page = String::from_utf8(page).unwrap();
            let wanted =
                !["schema", "completions", "man"].iter().any(|other| name.ends_with(&format!("-{other}")));
            assert_eq!(page.contains(".SH ENVIRONMENT"), wanted, "{name}");
            if name.ends_with("-run") {
                assert!(page.contains("[\\fB\\-\\-store\\fR"), "{page}");
            }
        }
    }

    #[test]
    fn text_that_looks_like_a_request_is_none() {
        assert_eq!(escaped(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(in_ascii("a … b"), "a \\[u2026] b");
        assert_eq!(escaped("a \\ 'b' -c"), "a \\e \\(aqb\\(aq \\-c");
        assert_eq!(
            as_it_stands("Examples:\n  run\n\nExit codes:\n  0\n"),
            ".SH EXAMPLES\n.nf\n  run\n\n.fi\n.SH EXIT CODES\n.nf\n  0\n.fi\n"
        );
    }
}
