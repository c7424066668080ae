//! What a test tells a server behind the client's back, by the program `psql`.

use std::{io, process::Command};

use crate::{PostgresServer, wait_until};

impl PostgresServer {
    /// The program as a superuser, over the socket in the directory of the server.
    pub(crate) fn client(&self) -> Command {
        let mut psql = self.programs.command("psql", self.dir());
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", "postgres", "-h"]);
        psql.arg(self.dir()).args(["-p", &self.port().to_string()]);
        psql
    }

    /// Runs statements as a superuser over a connection of its own. Gives the rows, fields apart by `|`.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or refuses.
    pub fn try_psql(&self, statements: &str) -> io::Result<Vec<String>> {
        let output = self.client().args(["-c", statements]).output()?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
        } else {
            Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
        }
    }

    /// As [`try_psql`](Self::try_psql), for statements that cannot fail.
    pub fn psql(&self, statements: &str) -> Vec<String> {
        self.try_psql(statements).unwrap_or_else(|error| panic!("{statements}: {error}"))
    }

    /// Waits, a minute at most, until something is true of the server.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        wait_until(what, || is_so(self));
    }
}
