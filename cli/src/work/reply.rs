//! Lines of JSON by which CMD reports on a task: answers with `--lines`, or its reply file.

use interval_queue_documents::duration;
use interval_queue_tasks::{Context, Json, TaskError};
use serde::{Deserialize, Deserializer};

use super::exit_mapping::TaskOutcome;

const SHOWN_CHARS: usize = 80;

#[derive(Debug)]
pub(super) enum Reply {
    /// The run has ended, in this way.
    Ended(TaskOutcome),
    Progress {
        done: u64,
        total: u64,
        text: String,
    },
    /// A line for the log.
    Log(String),
    /// The group of the failure, if the run fails.
    Group(String),
}

/// A field's name says what the line is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object, for example {\"done\": null}")]
struct Fields {
    id: Option<u64>,
    #[serde(default, deserialize_with = "some")]
    done: Option<Json>,
    failed: Option<String>,
    #[serde(default)]
    permanent: bool,
    retry_after: Option<String>,
    #[serde(default)]
    release: bool,
    /// Why `retry_after` or `release`, for people.
    why: Option<String>,
    progress: Option<Json>,
    log: Option<String>,
    group: Option<String>,
}

/// The field is there, also with null.
fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// With the number of the run that the line names.
pub(super) fn parse(line: &[u8]) -> Result<(Option<u64>, Reply), String> {
    let wrong = |why: String| {
        let shown: String = String::from_utf8_lossy(line).trim().chars().take(SHOWN_CHARS).collect();
        format!("{shown:?}: {why}")
    };
    let fields: Fields = serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
    let Fields { id, done, failed, permanent, retry_after, release, why, progress, log, group } = fields;
    let why = why.unwrap_or_default();
    let failure = |error| match permanent {
        true => TaskOutcome::Permanent(error),
        false => TaskOutcome::Failed(error),
    };
    let retry = |delay: String| match duration::delay(&delay) {
        Ok(delay) => Ok(Reply::Ended(TaskOutcome::Retry(delay, why.clone()))),
        Err(error) => Err(format!("retry_after: {error}")),
    };
    let replies = [
        done.map(|result| Ok(Reply::Ended(TaskOutcome::Done(result)))),
        failed.map(|error| Ok(Reply::Ended(failure(error)))),
        retry_after.map(retry),
        release.then(|| Ok(Reply::Ended(TaskOutcome::Released(why.clone())))),
        progress.map(|progress| of_progress(&progress)),
        log.map(|text| Ok(Reply::Log(text))),
        group.map(|name| of_group(&name)),
    ];
    let mut replies = replies.into_iter().flatten();
    match (replies.next(), replies.next()) {
        (Some(reply), None) => Ok((id, reply.map_err(wrong)?)),
        _ => {
            let names = "done, failed, retry_after, release, progress, log and group";
            Err(wrong(format!("give exactly one of {names}")))
        }
    }
}

fn of_group(name: &str) -> Result<Reply, String> {
    match TaskError::is_group(name) {
        true => Ok(Reply::Group(name.to_owned())),
        false => Err(format!("group {name:?}: give 1 to 40 letters, digits, \"-\", \"_\" and \".\"")),
    }
}

fn of_progress(progress: &Json) -> Result<Reply, String> {
    let with_text = serde_json::from_str(progress.as_str());
    let without =
        || serde_json::from_str(progress.as_str()).map(|(done, total)| (done, total, String::new()));
    let (done, total, text) = with_text
        .or_else(|_| without())
        .map_err(|_| "progress: give the number done, the total and a text, as in [3, 10, \"text\"]")?;
    Ok(Reply::Progress { done, total, text })
}

#[derive(Debug, Default)]
pub(super) struct Replies {
    group: Option<String>,
}

impl Replies {
    /// Returns the end of the run, if the reply is that.
    pub(super) fn apply(&mut self, reply: Reply, context: &Context) -> Option<TaskOutcome> {
        match reply {
            Reply::Ended(outcome) => return Some(outcome),
            Reply::Progress { done, total, text } => context.progress(done, total, text),
            Reply::Log(text) => context.log(text),
            Reply::Group(name) => self.group = Some(name),
        }
        None
    }

    pub(super) fn into_group(self) -> Option<String> {
        self.group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reply_is_understood() {
        for (line, says) in [
            (r#"{"done": {"a": [1]}}"#, r#"(None, Ended(Done({"a": [1]})))"#),
            (r#"{"id": 7, "done": null}"#, "(Some(7), Ended(Done(null)))"),
            (r#"{"failed": "no"}"#, r#"(None, Ended(Failed("no")))"#),
            (r#"{"failed": "no", "permanent": true}"#, r#"(None, Ended(Permanent("no")))"#),
            (r#"{"retry_after": "30s"}"#, r#"(None, Ended(Retry(30s, "")))"#),
            (r#"{"retry_after": "30s", "why": "busy"}"#, r#"(None, Ended(Retry(30s, "busy")))"#),
            (r#"{"release": true}"#, r#"(None, Ended(Released("")))"#),
            (r#"{"progress": [3, 10]}"#, r#"(None, Progress { done: 3, total: 10, text: "" })"#),
            (r#"{"log": "a line"}"#, r#"(None, Log("a line"))"#),
            (r#"{"group": "smtp"}"#, r#"(None, Group("smtp"))"#),
            (r#"{"progress": [3, 0, "x"]}"#, r#"(None, Progress { done: 3, total: 0, text: "x" })"#),
        ] {
            assert_eq!(format!("{:?}", parse(line.as_bytes()).unwrap()), says, "{line}");
        }
    }

    #[test]
    fn an_invalid_reply_is_shown_with_the_reason() {
        for (line, says) in [
            ("hello", "\"hello\": expected value at line 1"),
            ("", "\"\": EOF"),
            ("7", "expected an object, for example {\"done\": null}"),
            ("{}", "give exactly one of done, failed,"),
            (r#"{"done": 1, "failed": "x"}"#, "give exactly one of"),
            (r#"{"release": false}"#, "give exactly one of"),
            (r#"{"retry_after": "30"}"#, "retry_after: 30 has no unit: write 30ms"),
            (r#"{"retry_after": "11years"}"#, "at most 10years"),
            (r#"{"progress": 3}"#, "as in [3, 10, \"text\"]"),
            (r#"{"progress": [-3, 10]}"#, "as in [3, 10, \"text\"]"),
            (r#"{"log": "x", "done": 1}"#, "give exactly one of"),
            (r#"{"log": 3}"#, "expected a string"),
            (r#"{"group": "two words"}"#, "group \"two words\": give 1 to 40 letters"),
            (r#"{"dne": 1}"#, "unknown field `dne`"),
            (r#"{"done": 1"#, "EOF"),
            ("\u{1b}[2J", "\"\\u{1b}[2J\": "),
        ] {
            let error = parse(line.as_bytes()).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
        let error = parse("x".repeat(1_000).as_bytes()).unwrap_err();
        assert!(error.len() < 200, "{error}");
        assert!(parse(b"\xff\xfe").is_err());
    }
}
