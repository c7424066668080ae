//! The clients of one database, each behind a relay of its own, and what they do.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::future::join_all;
use interval_queue_contract::{Micros, QueueName, StateError, StateErrorKind};
use interval_queue_postgres::{Durability, PostgresStore, PostgresTasks};
use interval_queue_task_conformance::interleaved::{
    Application, End, Member, Session, SessionState, Sessions, Within, WithinReply,
};
use interval_queue_task_contract::{Add, Command, Read, TaskStore};
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::Client;

use super::{
    super::support::{functions_by_a_test_clock, set_test_clock},
    relay::Relay,
};
use crate::common::{LONG, Shared, server, session, someplace, through};

/// As many clients as a meeting has at most.
const CLIENTS: usize = 3;
/// After this time it is asked whether what is not answered waits for somebody.
const PAUSE: Duration = Duration::from_millis(2);

type Clock = Arc<AtomicU64>;

/// The clients, and somebody who looks at the server.
pub(super) struct Clients {
    /// Whether each has seen the queue before, so that its steps go beside others.
    have_seen: bool,
    clock: Clock,
    store: PostgresTasks,
    clients: Vec<(Arc<Relay>, u16, PostgresTasks)>,
    schema: String,
    onlooker: Arc<Client>,
    _server: Shared,
}

async fn opened(url: &str, schema: &str, clock: &Clock) -> PostgresTasks {
    let builder = PostgresStore::builder(url).schema(schema).durability(Durability::Relaxed);
    let store = builder.timeout(LONG).connect().await.unwrap();
    let reading = clock.clone();
    let now = move || Micros::new(reading.load(Ordering::Relaxed));
    PostgresTasks::with_clock(&store, now).await.unwrap()
}

impl Clients {
    pub(super) async fn new(have_seen: bool) -> Self {
        let (server, schema, clock) = (server(), someplace(), Clock::default());
        let store = opened(server.url(), &schema, &clock).await;
        let nothing = Command::Add(Add::default());
        let elsewhere = QueueName::new("elsewhere").unwrap();
        store.apply(&elsewhere, nothing.clone()).await.unwrap();
        let onlooker = session(server.url()).await;
        onlooker.batch_execute(&format!("CREATE TABLE {schema:?}.letter (queue text)")).await.unwrap();
        onlooker.batch_execute(&functions_by_a_test_clock(&schema)).await.unwrap();
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let (relay, port) = Relay::before(server.port()).await;
            let url = format!("{}?sslmode=disable", through(port));
            let tasks = opened(&url, &schema, &clock).await;
            tasks.apply(&elsewhere, nothing.clone()).await.unwrap();
            clients.push((relay, port, tasks));
        }
        Self { have_seen, clock, store, clients, schema, onlooker: Arc::new(onlooker), _server: server }
    }
}

#[async_trait]
impl Sessions for Clients {
    fn store(&self) -> &dyn TaskStore {
        &self.store
    }

    fn set_clock(&self, to: Micros) {
        self.clock.store(to.get(), Ordering::Relaxed);
    }

    async fn begin(&self, client: usize, queue: &QueueName, member: &Member) -> Box<dyn Session> {
        let (relay, port, tasks) = &self.clients[client];
        relay.open();
        let now = set_test_clock(&self.schema, self.clock.load(Ordering::Relaxed));
        self.onlooker.batch_execute(&now).await.unwrap();
        let queue = queue.clone();
        let doing = match member.clone() {
            Member::Commands(commands) => {
                let tasks = tasks.clone();
                if self.have_seen {
                    tasks.apply(&queue, Command::Read(Read::Overview)).await.unwrap();
                }
                relay.hold();
                tokio::spawn(async move {
                    let all = commands.into_iter().map(|command| tasks.apply(&queue, command));
                    End::Answered(join_all(all).await)
                })
            }
            Member::Application(what) => {
                let application = session(&through(*port)).await;
                relay.hold();
                tokio::spawn(sit(application, self.schema.clone(), queue, what))
            }
            Member::Within(within) => {
                let application = session(&through(*port)).await;
                // Its own connections are not held: nothing of a transaction passes there.
                let store = self.store.clone();
                relay.hold();
                tokio::spawn(say(application, self.schema.clone(), store, queue, within))
            }
        };
        Box::new(Playing { relay: relay.clone(), onlooker: self.onlooker.clone(), doing })
    }
}

/// Writes rows of its own.
async fn sit(on: Client, schema: String, queue: QueueName, what: Application) -> End {
    let insert = format!("INSERT INTO {schema:?}.letter VALUES ('{queue}')");
    let looks = [
        format!("SELECT count(*) FROM {schema:?}.interval_queue_tasks WHERE queue = '{queue}'"),
        format!("SELECT count(*) FROM {schema:?}.letter WHERE queue = '{queue}'"),
    ];
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ".to_owned();
    let writes = [insert.clone(), insert];
    let (looks, ends) = match what {
        Application::Commits => (&looks[..0], "COMMIT"),
        Application::RollsBack => (&looks[..0], "ROLLBACK"),
        Application::ReadsFirst => (&looks[..], "COMMIT"),
    };
    for statement in [begin].iter().chain(looks).chain(&writes).chain([&ends.to_owned()]) {
        on.batch_execute(statement).await.unwrap();
    }
    End::Application(what != Application::RollsBack)
}

/// Says something to the store within its own transaction.
async fn say(mut on: Client, schema: String, store: PostgresTasks, queue: QueueName, what: Within) -> End {
    let transaction = on.transaction().await.unwrap();
    let said: Result<WithinReply, StateError> = match &what {
        Within::Adds(add) => {
            store.add_within(&transaction, &queue, add.clone()).await.map(WithinReply::Added)
        }
        Within::Completes(worker, completion) => {
            store.complete_within(&transaction, &queue, *worker, completion).await.map(WithinReply::Completed)
        }
    };
    match said {
        Ok(said) => {
            let insert = format!("INSERT INTO {schema:?}.letter VALUES ('{queue}')");
            transaction.batch_execute(&insert).await.unwrap();
            End::Within(transaction.commit().await.is_ok().then_some(Ok(said)))
        }
        Err(error) => {
            transaction.rollback().await.unwrap();
            End::Within(Some(error.kind()).filter(|kind| *kind != StateErrorKind::Unreachable).map(Err))
        }
    }
}

/// A client that does something, one statement at a time.
struct Playing {
    relay: Arc<Relay>,
    onlooker: Arc<Client>,
    doing: JoinHandle<End>,
}

impl Playing {
    /// Whether all of these processes wait for others.
    async fn all_wait(&self, processes: &[i32]) -> bool {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1) AND wait_event_type = 'Lock'";
        let row = self.onlooker.query_one(sql, &[&processes]).await.unwrap();
        usize::try_from(row.get::<_, i64>(0)).unwrap() == processes.len()
    }

    /// Where it stands once it cannot go on by itself.
    async fn stands(&self) -> SessionState {
        loop {
            let changed = self.relay.changed.notified();
            if self.doing.is_finished() {
                return SessionState::Over;
            }
            let standing = self.relay.standing();
            match (standing.has_next, standing.at_work.as_slice()) {
                (true, []) => return SessionState::Held,
                (_, []) => {}
                (has_next, at_work) => {
                    if timeout(PAUSE, changed).await.is_err() && self.all_wait(at_work).await {
                        return if has_next { SessionState::Held } else { SessionState::Waits };
                    }
                    continue;
                }
            }
            let _ = timeout(PAUSE, changed).await;
        }
    }
}

#[async_trait]
impl Session for Playing {
    async fn go_on(&mut self) -> SessionState {
        self.relay.pass_one();
        let stands = timeout(LONG, self.stands()).await.expect("an answer of the server");
        if stands == SessionState::Over {
            // A transaction that was given up ends, too.
            self.relay.open();
            while !self.relay.standing().at_work.is_empty() {
                let _ = timeout(PAUSE, self.relay.changed.notified()).await;
            }
        }
        stands
    }

    async fn end(&mut self) -> End {
        (&mut self.doing).await.unwrap()
    }
}
