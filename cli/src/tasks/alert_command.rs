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

/// The first three quarters of the guard's lease must outlast the timeout.
const LEASE_MARGIN: Duration = Duration::from_secs(60);

/// Under a guard that ends it with its process group.
pub(super) struct AlertCommand {
    words: Vec<OsString>,
    timeout: Duration,
    stderr: StderrWriter,
}

impl AlertCommand {
    /// `None`: no words.
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

    /// Prints its output. False: CMD failed, which is reported. `status`: `None` is `null` on
    /// stdin.
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

    pub(super) async fn end(self) {
        self.stderr.end().await;
    }
}
