//! How a run that did not end well ends.

use std::{fmt, time::Duration};

use interval_queue::Micros;
use interval_queue_task_contract::Outcome;

/// Why a handler did not do its task, and what becomes of the task. Any [error](std::error::Error) that is `Send` and
/// `'static` becomes one by `?`, as do a boxed one and a text: the run has failed, and the task is tried again as its
/// [policy](crate::Policy) says.
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
        Self { becomes, text: text.to_string() }
    }

    /// The run has failed, and counts: the task is tried again after a while, or has failed after so many failures as
    /// its policy says. For what is neither an [error](std::error::Error) nor a text.
    pub fn failed(why: impl fmt::Display) -> Self {
        Self::new(Becomes::Failed, why)
    }

    /// The task has failed for good: it will never succeed.
    pub fn permanent(why: impl fmt::Display) -> Self {
        Self::new(Becomes::Permanent, why)
    }

    /// The task wants to be run again after this time. That is no failure, and bounded by
    /// [`max_retries`](crate::Policy::max_retries) alone.
    pub fn retry_after(delay: Duration) -> Self {
        Self::new(Becomes::Retried(delay), "")
    }

    /// The task was not run, or not to its end: it is given back, for any worker, and nothing counts. What a handler
    /// says that has noticed that it [is cancelled](crate::Context::cancelled). A task with a single attempt has failed
    /// then, since it must not run twice. [Because](Self::because) of what, such as a host that lacks something, is stored
    /// as the error of the task and of its attempt.
    pub fn released() -> Self {
        Self::new(Becomes::Released, "")
    }

    /// Says why, for people.
    pub fn because(mut self, why: impl fmt::Display) -> Self {
        self.text = why.to_string();
        self
    }

    pub(crate) fn outcome(self) -> Outcome {
        match self.becomes {
            Becomes::Failed => Outcome::Error(self.text),
            Becomes::Permanent => Outcome::Failed(self.text),
            Becomes::Retried(delay) => Outcome::Retry(Micros::from_duration(delay), self.text),
            Becomes::Released if self.text.is_empty() => Outcome::Released,
            Becomes::Released => Outcome::Unable(self.text),
        }
    }
}

/// With what caused it, in one line. A `&str` or a `String` is an error that says no more.
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
