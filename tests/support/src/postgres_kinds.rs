//! Servers of other kinds: with TLS, with a password, as a standby.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{PostgresServer, certificate};

/// Whom every server trusts: who is on this host, which is also how a standby reaches its primary.
const LOCAL: &str = "local all all trust\nlocal replication all trust\n";

impl PostgresServer {
    /// A server that speaks only TLS, its certificate for `localhost` signed by [`ca`](Self::ca). Needs the
    /// program `openssl`.
    pub fn with_tls() -> Self {
        let mut server = Self::fresh(&[]);
        certificate::make(server.dir());
        let key = server.dir().join("server.key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("keep the key secret");
        server.programs.give(&key);
        let files = [("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")];
        let files =
            files.map(|(name, file)| (name.to_owned(), server.dir().join(file).display().to_string()));
        server.settings.extend(files);
        server.settings.push(("ssl".into(), "on".into()));
        server.admit("hostssl all all 127.0.0.1/32 trust");
        server.launch("postgres@localhost")
    }

    /// The certificate to trust for a server [with TLS](Self::with_tls).
    pub fn ca(&self) -> PathBuf {
        self.dir().join("ca.crt")
    }

    /// A server that asks the user `tester` for this password, and lets nobody else in. The user may create a
    /// schema in the database and has no other rights.
    pub fn with_password(password: &str) -> Self {
        let server = Self::fresh(&[("password_encryption", "scram-sha-256")]);
        server.admit("host all tester 127.0.0.1/32 scram-sha-256");
        let server = server.launch("tester@127.0.0.1");
        let password = password.replace('\'', "''");
        server.psql(&format!("CREATE ROLE tester LOGIN PASSWORD '{password}'"));
        server.psql("GRANT CREATE ON DATABASE postgres TO tester");
        server
    }

    /// A standby of `primary`, in step with it: it may be read, and [promoted](Self::promote).
    pub fn standby_of(primary: &Self) -> Self {
        let mut server = Self::empty(primary.programs.clone(), &[]);
        server.settings.clone_from(&primary.settings);
        server.copy(primary);
        let server = server.launch("postgres@127.0.0.1");
        server.wait_for(primary);
        server
    }

    /// Starts one that was killed or stopped as a standby of `primary`, on the same port. What it had is
    /// gone.
    pub fn follow(&mut self, primary: &Self) {
        fs::remove_dir_all(self.data()).expect("remove what it had");
        self.copy(primary);
        self.start_again();
        self.wait_for(primary);
    }

    fn copy(&self, primary: &Self) {
        let (dir, port) = (primary.dir().to_string_lossy(), primary.port().to_string());
        let words =
            ["-h", &dir, "-p", &port, "-U", "postgres", "-D", "data", "-R", "-c", "fast", "--no-sync"];
        self.programs.run("pg_basebackup", &words, self.dir());
    }

    fn wait_for(&self, primary: &Self) {
        let written = primary.psql("SELECT pg_current_wal_lsn()").concat();
        self.wait_until("the standby is in step", |server| {
            let streams = "SELECT status FROM pg_stat_wal_receiver";
            let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'");
            server.psql(streams) == ["streaming"] && server.psql(&replayed) == ["t"]
        });
    }

    /// Makes a primary of a standby, and waits until it is one.
    pub fn promote(&self) {
        assert_eq!(self.psql("SELECT pg_promote()"), ["t"], "the standby is not promoted");
    }

    /// Lets nobody in but who is local and who this line admits.
    fn admit(&self, line: &str) {
        let file: &Path = &self.data().join("pg_hba.conf");
        fs::write(file, format!("{LOCAL}{line}\n")).expect("write pg_hba.conf");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connects over TCP as a client does.
    fn connect(server: &PostgresServer, parameters: &str) -> Result<(), String> {
        let url = format!("{}?{parameters}", server.url());
        let mut psql = server.programs.command("psql", server.dir());
        let output = psql.args(["-Xw", &url, "-c", "SELECT 1"]).output().unwrap();
        let says = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(says) }
    }

    #[test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    fn a_server_with_tls_refuses_to_do_without() {
        let server = PostgresServer::with_tls();
        let trust = format!("sslmode=verify-full&sslrootcert={}", server.ca().display());
        // Whoever runs psql must be let into the directory, and is.
        assert_eq!(connect(&server, &trust), Ok(()));
        let refused = connect(&server, "sslmode=disable").unwrap_err();
        assert!(refused.contains("pg_hba.conf"), "{refused}");
    }

    #[test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    fn a_server_with_a_password_asks_for_it() {
        let server = PostgresServer::with_password("it's a s€cret");
        assert_eq!(connect(&server, "password=it's%20a%20s%E2%82%ACcret"), Ok(()));
        let refused = connect(&server, "password=another").unwrap_err();
        assert!(refused.contains("password authentication failed"), "{refused}");
        assert!(connect(&server, "user=postgres").is_err(), "nobody else is let in");
    }

    #[test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    fn a_standby_follows_and_takes_over() {
        let mut primary = PostgresServer::start();
        primary.psql("CREATE TABLE colours (name text)");
        let standby = PostgresServer::standby_of(&primary);
        let write = |server: &PostgresServer, name: &str| {
            server.try_psql(&format!("INSERT INTO colours VALUES ('{name}')")).map(|_| ())
        };
        write(&primary, "green").unwrap();
        standby.wait_until("it follows", |it| it.psql("SELECT * FROM colours") == ["green"]);
        let refused = write(&standby, "red").unwrap_err().to_string();
        assert!(refused.contains("read-only"), "{refused}");
        primary.kill();
        standby.promote();
        write(&standby, "blue").unwrap();
        assert_eq!(standby.psql("SELECT * FROM colours"), ["green", "blue"]);
        primary.follow(&standby);
        assert_eq!(primary.psql("SELECT * FROM colours"), ["green", "blue"]);
    }
}
