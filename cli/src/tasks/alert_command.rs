//! The command that an alert runs.

use std::{ffi::OsString, future::pending, time::Duration};

use interval_queue::QueueName;
use interval_queue_documents::{Fired, Queue};
use tokio::sync::watch;

use crate::{
    child::{
        End, RunRequest, StderrWriter, expect_children,
        guard::{self, Lease},
        run_guarded,
    },
    exit::{Failure, print_as_it_is, report},
    json_output::json_line,
    program::Program,
};

/// Added to the lease of the guard, whose first three quarters must outlast the timeout.
const LEASE_MARGIN: Duration = Duration::from_secs(60);

/// CMD, under a guard that ends it with its process group.
pub(super) struct AlertCommand {
    words: Vec<OsString>,
    timeout: Duration,
    stderr: StderrWriter,
}

impl AlertCommand {
    /// Returns `None` without words.
    ///
    /// # Errors
    ///
    /// CMD does not exist or cannot be executed.
    pub(super) fn find(words: &[OsString], timeout: Duration) -> Result<Option<Self>, Failure> {
        if words.is_empty() {
            return Ok(None);
        }
        Program::find(words)?;
        expect_children()?;
        Ok(Some(Self { words: words.to_vec(), timeout, stderr: StderrWriter::start()? }))
    }

    /// Runs CMD to its end or its timeout, and prints its output. A failed CMD is reported, and the
    /// result is false.
    /// `status`: `None` is `null` on stdin.
    pub(super) async fn run(
        &self,
        queue: &QueueName,
        fired: &Fired,
        status: Option<&Queue>,
    ) -> Result<bool, Failure> {
        let environment = vec![
            ("INTERVAL_QUEUE_ALERT", fired.alert.clone().into()),
            ("INTERVAL_QUEUE_ALERT_QUEUE", queue.as_str().into()),
            ("INTERVAL_QUEUE_ALERT_VALUE", fired.value.clone().into()),
        ];
        let request = RunRequest { words: self.words.clone(), environment, timeout: Some(self.timeout) };
        let (_renewals, lease) = watch::channel(Lease::new(guard::now(), self.timeout * 2 + LEASE_MARGIN));
        let input = json_line(&status).into_bytes();
        let finished = run_guarded(request, input, lease, pending(), self.stderr.handle()).await;
        print_as_it_is(finished.stdout.text().as_bytes())?;
        if !matches!(finished.end, End::Code(0)) {
            report(&format!("CMD failed for alert {}: {}", fired.alert, finished.end));
            return Ok(false);
        }
        Ok(true)
    }

    /// Waits until the stderr of CMD is written.
    pub(super) async fn end(self) {
        self.stderr.end().await;
    }
}
