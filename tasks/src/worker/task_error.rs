//! Unsuccessful ends of runs.

use std::{fmt, time::Duration};

use interval_queue::Micros;
use interval_queue_task_contract::Outcome;

use crate::failures::likeness;

/// Why a handler did not complete its task, and what happens next. `?` converts a `Send` and
/// `'static` [error](std::error::Error), a boxed error or a text: the run has failed, and the
/// [policy](crate::Policy) decides about a retry.
///
/// ```
/// use std::time::Duration;
/// use interval_queue_tasks::{Context, TaskError};
///
/// async fn fetch(_: Context, page: String) -> Result<u32, TaskError> {
///     if page == "busy" {
///         return Err(TaskError::retry_after(Duration::from_secs(30)));
///     }
///     if page.is_empty() {
///         return Err("the page has no number".into());
///     }
///     Ok(page.parse()?)
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TaskError {
    becomes: Becomes,
    text: String,
    group: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    Failed,
    Permanent,
    Retried(Duration),
    Released,
}

impl TaskError {
    fn new(becomes: Becomes, text: impl fmt::Display) -> Self {
        Self { becomes, text: text.to_string(), group: None }
    }

    /// A failed run, which counts: the task is retried after a backoff, or has failed if no
    /// attempts are left. For values that `?` does not convert.
    pub fn failed(why: impl fmt::Display) -> Self {
        Self::new(Becomes::Failed, why)
    }

    /// The task fails for good, without a retry.
    pub fn permanent(why: impl fmt::Display) -> Self {
        Self::new(Becomes::Permanent, why)
    }

    /// Runs the task again after `delay`. This is no failure: only
    /// [`max_retries`](crate::Policy::max_retries) limits it.
    pub fn retry_after(delay: Duration) -> Self {
        Self::new(Becomes::Retried(delay), "")
    }

    /// Releases the task for any worker. Nothing counts as a failure. Return it when the run
    /// [is cancelled](crate::Context::cancelled); a task with a single attempt then fails, since it
    /// must not run twice. A [reason](Self::because) is stored as the error of the task and its
    /// attempt.
    pub fn released() -> Self {
        Self::new(Becomes::Released, "")
    }

    /// Sets the reason, for people.
    pub fn because(mut self, why: impl fmt::Display) -> Self {
        self.text = why.to_string();
        self
    }

    /// Names the group of a failure: [`TaskQueue::failures`](crate::TaskQueue::failures) counts all
    /// failures of this name together, also with different texts. The stored error begins with it. 1
    /// to 40 letters, digits, `-`, `_` and `.`; each other character becomes `-`.
    pub fn group(mut self, name: impl fmt::Display) -> Self {
        let allowed = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let name: String = name.to_string().chars().map(allowed).take(likeness::MAX_GROUP).collect();
        self.group = likeness::is_group(&name).then_some(name);
        self
    }

    /// Whether [`group`](Self::group) takes this name as it is.
    pub fn is_group(name: &str) -> bool {
        likeness::is_group(name)
    }

    pub(crate) fn outcome(self) -> Outcome {
        let grouped = |text: String| match &self.group {
            Some(name) => likeness::with_group(name, &text),
            None => text,
        };
        match self.becomes {
            Becomes::Failed => Outcome::Error(grouped(self.text)),
            Becomes::Permanent => Outcome::Failed(grouped(self.text)),
            Becomes::Retried(delay) => Outcome::Retry(Micros::from_duration(delay), self.text),
            Becomes::Released if self.text.is_empty() => Outcome::Released,
            Becomes::Released => Outcome::Unable(self.text),
        }
    }
}

/// The error and its causes in one line. A `&str` or `String` has no causes.
impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for TaskError {
    fn from(error: E) -> Self {
        let error = error.into();
        let mut text = error.to_string();
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        for cause in causes.map(ToString::to_string) {
            if !text.ends_with(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        Self::new(Becomes::Failed, text)
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.becomes {
            _ if !self.text.is_empty() => f.write_str(&self.text),
            Becomes::Retried(delay) => write!(f, "it wants to be run again in {delay:?}"),
            Becomes::Released => f.write_str("it is given back"),
            Becomes::Failed | Becomes::Permanent => f.write_str("it failed"),
        }
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.becomes)
    }
}
