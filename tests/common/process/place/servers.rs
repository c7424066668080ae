//! Places that are servers.

use std::fmt::Debug;

use interval_queue_test_support::{PostgresServer, Proxy, RedisServer};

use super::{Backend, Home};

/// What can be done to any server.
pub trait Server: Debug {
    fn kill(&mut self);
    fn start_again(&mut self);
    fn freeze(&self);
    fn thaw(&self);

    fn restart(&mut self) {
        self.kill();
        self.start_again();
    }
}

macro_rules! is_a_server {
    ($server:ty) => {
        impl Server for $server {
            fn kill(&mut self) {
                self.kill();
            }

            fn start_again(&mut self) {
                self.start_again();
            }

            fn freeze(&self) {
                self.freeze();
            }

            fn thaw(&self) {
                self.thaw();
            }
        }
    };
}

is_a_server!(RedisServer);
is_a_server!(PostgresServer);

impl Backend {
    pub fn redis() -> Self {
        Self::of_redis(vec![RedisServer::start()])
    }

    /// A server that forgets nothing when it is killed.
    pub fn lasting_redis() -> Self {
        Self::of_redis(vec![RedisServer::with_args(&["--appendonly", "yes"])])
    }

    /// A server behind a network that can be spoilt.
    pub fn redis_far_away() -> Self {
        let server = RedisServer::start();
        let proxy = Proxy::before(server.port());
        let url = format!("redis://127.0.0.1:{}", proxy.port());
        Self { url, home: Home::Redis(vec![server], Some(proxy)) }
    }

    /// A master, its replica, and a sentinel that watches them.
    pub fn redis_with_sentinel() -> Self {
        let master = RedisServer::start();
        let replica = RedisServer::replica_of(&master);
        let sentinel = RedisServer::sentinel_of(&master);
        Self { url: sentinel.url().to_owned(), home: Home::Redis(vec![master, replica, sentinel], None) }
    }

    fn of_redis(servers: Vec<RedisServer>) -> Self {
        Self { url: servers[0].url().to_owned(), home: Home::Redis(servers, None) }
    }

    pub fn postgres() -> Self {
        let server = PostgresServer::start();
        Self { url: server.url().to_owned(), home: Home::Postgres(vec![server], None) }
    }

    /// A server whose last commits are lost when it is killed.
    pub fn relaxed_postgres() -> Self {
        let mut place = Self::postgres();
        place.add_parameter("durability=relaxed");
        place
    }

    /// A server behind a network that can be spoilt.
    pub fn postgres_far_away() -> Self {
        let server = PostgresServer::start();
        let proxy = Proxy::before(server.port());
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port());
        Self { url, home: Home::Postgres(vec![server], Some(proxy)) }
    }

    /// A primary and its standby.
    pub fn postgres_with_standby() -> Self {
        let primary = PostgresServer::start();
        let standby = PostgresServer::standby_of(&primary);
        let [first, second] = [&primary, &standby].map(|server| format!("127.0.0.1:{}", server.port()));
        let url = format!("postgres://postgres@{first},{second}/postgres?target_session_attrs=read-write");
        Self { url, home: Home::Postgres(vec![primary, standby], None) }
    }

    /// The server.
    pub fn server(&mut self) -> &mut dyn Server {
        match &mut self.home {
            Home::Redis(servers, _) => &mut servers[0],
            Home::Postgres(servers, _) => &mut servers[0],
            _ => panic!("this scene has no server"),
        }
    }

    /// All Redis servers.
    pub fn redis_servers(&self) -> &[RedisServer] {
        match &self.home {
            Home::Redis(servers, _) => servers,
            _ => panic!("this scene has no Redis"),
        }
    }

    /// All PostgreSQL servers.
    pub fn postgres_servers(&mut self) -> &mut [PostgresServer] {
        match &mut self.home {
            Home::Postgres(servers, _) => servers,
            _ => panic!("this scene has no PostgreSQL"),
        }
    }

    /// Gives Redis an order.
    pub fn command(&self, words: &[&str]) -> Vec<String> {
        self.redis_servers()[0].command(words)
    }

    /// Has PostgreSQL run a statement.
    pub fn psql(&mut self, statement: &str) -> Vec<String> {
        self.postgres_servers()[0].psql(statement)
    }

    /// The network before the server.
    pub fn proxy(&self) -> &Proxy {
        match &self.home {
            Home::Redis(_, Some(proxy)) | Home::Postgres(_, Some(proxy)) => proxy,
            _ => panic!("this scene has no proxy"),
        }
    }
}
