//! Servers of other kinds: with TLS, as a node of a cluster, as a sentinel, as a replica.

use std::path::PathBuf;

use crate::{
    RedisServer, certificate,
    redis_server::{Kind, free_port},
    wait_until,
};

/// The name under which [`RedisServer::sentinel_of`] watches its master.
pub const SENTINEL_MASTER: &str = "the-master";

impl RedisServer {
    /// A server that also speaks TLS. Its [`url`](Self::url) is `rediss://localhost:…`, its certificate
    /// signed by [`ca`](Self::ca); its [`port`](Self::port) stays without TLS. Needs the program `openssl`.
    pub fn with_tls() -> Self {
        Self::launch(|dir, _| {
            certificate::make(dir);
            let port = free_port();
            let file = |name: &str| dir.join(name).display().to_string();
            let config = format!(
                "save \"\"\ntls-port {port}\ntls-auth-clients no\ntls-ca-cert-file \"{}\"\n\
                 tls-cert-file \"{}\"\ntls-key-file \"{}\"\n",
                file("ca.crt"),
                file("server.crt"),
                file("server.key")
            );
            Kind { url: format!("rediss://localhost:{port}"), config, args: Vec::new() }
        })
    }

    /// The certificate to trust for a server [with TLS](Self::with_tls).
    pub fn ca(&self) -> PathBuf {
        self.dir().join("ca.crt")
    }

    /// A cluster: `nodes` masters that share the slots. The [`url`](Self::url) of each is
    /// `redis+cluster://…`.
    pub fn cluster(nodes: u16) -> Vec<Self> {
        let start = |_| {
            Self::launch(|_, port| Kind {
                url: format!("redis+cluster://127.0.0.1:{port}"),
                config: "save \"\"\ncluster-enabled yes\ncluster-announce-ip 127.0.0.1\n".into(),
                args: Vec::new(),
            })
        };
        let servers: Vec<Self> = (0..nodes).map(start).collect();
        let share = 16_384 / nodes;
        for (server, n) in servers.iter().zip(0..) {
            let first = (n * share).to_string();
            let last = if n + 1 == nodes { 16_383 } else { (n + 1) * share - 1 };
            server.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last.to_string()]);
            // Nodes that meet must not start with the same epoch.
            server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(n + 1).to_string()]);
            server.command(&["CLUSTER", "MEET", "127.0.0.1", &servers[0].port().to_string()]);
        }
        for server in &servers {
            let known = format!("cluster_known_nodes:{nodes}\r");
            server.wait_until("the cluster is complete", |server| {
                let info = server.command(&["CLUSTER", "INFO"]).concat();
                info.contains("cluster_state:ok") && info.contains(&known)
            });
        }
        servers
    }

    /// A sentinel that watches `master` under the name [`SENTINEL_MASTER`] and replaces it after half a
    /// second of silence if it has a replica. Its [`url`](Self::url) is `redis+sentinel://…/the-master`.
    pub fn sentinel_of(master: &Self) -> Self {
        Self::launch(|_, port| {
            let watched = master.port();
            Kind {
                url: format!("redis+sentinel://127.0.0.1:{port}/{SENTINEL_MASTER}"),
                config: format!(
                    "sentinel monitor {SENTINEL_MASTER} 127.0.0.1 {watched} 1\n\
                     sentinel down-after-milliseconds {SENTINEL_MASTER} 500\n\
                     sentinel failover-timeout {SENTINEL_MASTER} 3000\n"
                ),
                args: vec!["--sentinel".into()],
            }
        })
    }

    /// A replica of `master`, in step with it.
    pub fn replica_of(master: &Self) -> Self {
        let port = master.port().to_string();
        let server = Self::with_args(&["--replicaof", "127.0.0.1", &port]);
        server.wait_until("the replica is in step", |server| {
            server.command(&["INFO", "replication"]).concat().contains("master_link_status:up")
        });
        server
    }

    /// Waits, a minute at most, until something is true of the server.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        wait_until(what, || is_so(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    fn each_kind_of_server_comes_up() {
        let master = RedisServer::start();
        let replica = RedisServer::replica_of(&master);
        assert!(replica.try_command(&["SET", "colour", "green"]).is_err());
        let sentinel = RedisServer::sentinel_of(&master);
        let address = sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SENTINEL_MASTER]);
        assert_eq!(address, ["127.0.0.1".to_owned(), master.port().to_string()]);
        assert!(RedisServer::with_tls().ca().exists());
        let nodes = RedisServer::cluster(2);
        let took = |server: &RedisServer| server.try_command(&["SET", "colour", "green"]).is_ok();
        assert_eq!(nodes.iter().filter(|server| took(server)).count(), 1);
    }
}
