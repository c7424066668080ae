//! Names from other programs. A name with the same meaning is a hidden alias where its command is
//! declared. For any other name the error has a tip.

use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue},
};

use crate::args::Cli;

/// Names without a command of the same meaning. A name may be a command at another level.
const TIPS: [(&[&str], &str); 12] = [
    (&["pause", "suspend"], "`interval-queue pause` pauses a queue, also --kind or --key of its tasks"),
    (&["resume", "unpause"], "`interval-queue resume` ends a pause, also of --kind or --key"),
    (
        &["drain", "shutdown", "stop", "quiet"],
        "SIGTERM stops a worker after its running tasks; `interval-queue work --until-empty` ends when no task \
         is left; `interval-queue tasks purge` deletes ended tasks",
    ),
    (
        &["stats", "status", "counts", "info"],
        "`interval-queue tasks` shows the counts, `interval-queue tasks times` the durations",
    ),
    (
        &["ps"],
        "`interval-queue tasks workers` shows workers and their runs, `interval-queue tasks list` all tasks",
    ),
    (
        &["logs", "log"],
        "`interval-queue tasks show ID` shows the log of a task, `interval-queue tasks follow --log` new lines of all \
         tasks",
    ),
    (
        &["purge", "flush", "clear", "empty"],
        "`interval-queue tasks cancel --all` cancels tasks that have not ended, `interval-queue tasks purge` deletes \
         ended tasks",
    ),
    (&["failed", "dead"], "`interval-queue tasks failures` shows failures by error text"),
    (
        &["beat", "scheduler"],
        "schedules need no process of their own: `interval-queue schedule add` stores one",
    ),
    (
        &["start"],
        "`interval-queue work` runs stored tasks, `interval-queue run` a command at the shared rate",
    ),
    (
        &["server", "serve", "web", "ui", "dashboard"],
        "there is no server besides the store: `interval-queue watch` shows queues live",
    ),
    (
        &["init", "create", "setup"],
        "the first `interval-queue add` or `run --every` creates a queue, `interval-queue migrate` the tables of an \
         SQL store",
    ),
];

pub(crate) fn with_tip(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(tip) = tip(word)
    {
        // Names that are only spelled alike would contradict the tip.
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn tip(word: &str) -> Option<String> {
    if let Some((_, tip)) = TIPS.iter().find(|(words, _)| words.contains(&word)) {
        return Some((*tip).to_owned());
    }
    let program = Cli::command();
    let of_tasks = program.find_subcommand("tasks")?.find_subcommand(word)?;
    Some(format!("`interval-queue tasks {}`", of_tasks.get_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line: a command, and its hidden aliases.
    const ALIASES: &str = "
        add: enqueue push submit put insert
        work: worker run-worker consume
        tasks: task jobs job
        schedule: schedules cron
        status: stats info
        watch: top monitor
        list: ls queues
        pause: suspend
        resume: unpause
        delete: rm remove
        completions: completion
        man: manual
        tasks list: ls
        tasks show: inspect describe
        tasks why: explain
        tasks follow: tail events
        tasks watch: alert alerts
        tasks failures: errors
        tasks cancel: kill revoke abort
        tasks retry: requeue rerun
        tasks copy: cp
        tasks move: mv
        tasks purge: rm remove delete
        schedule add: create
        schedule list: ls
        schedule run: trigger
        schedule remove: rm delete";

    fn all_aliases(command: &clap::Command, path: &str, all: &mut Vec<String>) {
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name()).trim().to_owned();
            let aliases: Vec<_> = sub.get_all_aliases().collect();
            if !aliases.is_empty() {
                all.push(format!("{path}: {}", aliases.join(" ")));
            }
            assert_eq!(sub.get_visible_aliases().count(), 0, "{path}");
            all_aliases(sub, &path, all);
        }
    }

    #[test]
    fn each_alias_resolves_to_its_command() {
        let program = Cli::command();
        let expected: Vec<_> = ALIASES.trim().lines().map(str::trim).collect();
        for line in &expected {
            let (path, aliases) = line.split_once(": ").unwrap();
            let (above, name) = path.rsplit_once(' ').unwrap_or(("", path));
            let above = above.split_whitespace().fold(&program, |at, name| at.find_subcommand(name).unwrap());
            for alias in aliases.split(' ') {
                let found = above.find_subcommand(alias).map(clap::Command::get_name);
                assert_eq!(found, Some(name), "{alias}");
            }
        }
        let mut all = Vec::new();
        all_aliases(&program, "", &mut all);
        all.sort();
        let mut expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
        expected.sort();
        assert_eq!(all, expected, "all aliases are tested");
    }

    #[test]
    fn aliases_of_options_set_the_same_values() {
        let value = |args: &str, option: &str| {
            let args = format!("interval-queue {args}");
            let mut found = Cli::command().try_get_matches_from(args.split(' ')).unwrap();
            while let Some((_, below)) = found.remove_subcommand() {
                found = below;
            }
            found.get_raw(option).unwrap().next_back().unwrap().to_str().unwrap().to_owned()
        };
        let queue = "--store dir:jobs --queue mail";
        for (args, option, is) in [
            (&*format!("work {queue} -c 4 true"), "jobs", "4"),
            (&*format!("work {queue} --concurrency 4 true"), "jobs", "4"),
            (&*format!("each {queue} --every 1s -P 4 true"), "jobs", "4"),
            (&*format!("each {queue} --every 1s --max-procs 4 true"), "jobs", "4"),
            (&*format!("add {queue} --at 2026-12-01T08:00:00Z 1"), "not_before", "2026-12-01T08:00:00Z"),
            (&*format!("add {queue} --eta 2026-12-01T08:00:00Z 1"), "not_before", "2026-12-01T08:00:00Z"),
            ("status --url dir:jobs --queue mail", "store", "dir:jobs"),
            ("tasks list --url dir:jobs --queue mail", "store", "dir:jobs"),
        ] {
            assert_eq!(value(args, option), is, "{args}");
        }
    }

    #[test]
    fn an_unknown_command_gets_a_tip() {
        let error = |args: &str| {
            let parsed = Cli::command().try_get_matches_from(args.split(' '));
            with_tip(parsed.unwrap_err()).to_string()
        };
        for (args, tip) in [
            ("iq kill", "tip: `interval-queue tasks cancel`\n"),
            ("iq workers", "tip: `interval-queue tasks workers`\n"),
            ("iq tasks pause --kind mail", "tip: `interval-queue pause` pauses a queue"),
            ("iq tasks stats", "tip: `interval-queue tasks` shows the counts"),
            ("iq logs", "tip: `interval-queue tasks show ID` shows the log"),
            ("iq migrat", "tip: a similar subcommand exists: 'migrate'"),
        ] {
            let error = error(args);
            assert!(error.contains(tip) && error.matches("tip:").count() == 1, "{args}: {error}");
        }
        for (words, _) in TIPS {
            for word in words {
                let (above, below) = (error_or_none(word), error_or_none(&format!("tasks {word}")));
                assert!(above.is_some() || below.is_some(), "{word} is a command everywhere");
            }
        }
    }

    fn error_or_none(args: &str) -> Option<clap::Error> {
        let parsed = Cli::command().try_get_matches_from(format!("iq {args}").split(' '));
        parsed.err().filter(|error| error.kind() == clap::error::ErrorKind::InvalidSubcommand)
    }
}
