//! Every field of a row comes back as it was written, and every look goes by an index.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use interval_queue_contract::{Label, QueueName};
use interval_queue_store::Component;
use interval_queue_task_conformance::hand;
use interval_queue_task_contract::{
    Attempt, AttemptEnd, Nominal, OnFailure, Order, Overlap, PolicyOverride, Progress, Settings, State, Stop,
    Tag, Token, Traceparent, Unique, Until,
    record::{Record as _, differing},
    rules,
};
use rusqlite::Connection;

use super::*;
use crate::tasks::TASKS;

thread_local! {
    static NOTED: RefCell<BTreeSet<String>> = RefCell::default();
    static STATEMENTS: Cell<u64> = Cell::default();
}

/// Takes down what is prepared.
pub(super) fn note(sql: &str) {
    STATEMENTS.set(STATEMENTS.get() + 1);
    NOTED.with_borrow_mut(|noted| _ = noted.insert(sql.to_owned()));
}

fn database() -> Connection {
    let component: &Component = &TASKS;
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&component.steps(0).unwrap()).unwrap();
    connection
}

fn on<T>(connection: &Connection, work: impl FnOnce(&mut Tables<'_>) -> T) -> T {
    let (writes, queue) = (Writes::default(), QueueName::new("mail").unwrap());
    let mut tables = Tables::new(connection, Path::new("tasks.db"), &writes, &queue);
    let done = work(&mut tables);
    tables.finish().unwrap();
    done
}

fn id(n: u64) -> TaskId {
    format!("00000000-0000-7000-8000-{n:012}").parse().unwrap()
}

fn worker(n: u64) -> WorkerId {
    format!("00000000-0000-4000-8000-{n:012}").parse().unwrap()
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn at(n: u64) -> Micros {
    Micros::new(n)
}

/// A task of which nothing is set that need not be.
fn bare(n: u64, state: State) -> Task {
    Task { kind: Kind::new("send").unwrap(), due: n as i64, added: at(n), state, ..Task::bare(id(n)) }
}

/// A task in which no field is as in a bare one.
fn full(n: u64) -> Task {
    let attempt = Attempt {
        token: Token { incarnation: at(3), attempt: 1 },
        worker: Some(worker(2)),
        leased: Some(at(10)),
        ended: at(11),
        end: AttemptEnd::Retry,
        error: Some("it was \"odd\"\n".into()),
    };
    Task {
        id: id(n),
        kind: Kind::new("Straße").unwrap(),
        priority: -7,
        key: Some(key("k")),
        ordered: true,
        unique: Some(Unique { name: key("only"), until: Until::Leased }),
        holds_name: true,
        weight: 12,
        tags: vec![Tag::new("red").unwrap(), Tag::new("gr'een").unwrap()],
        deadline: Some(at(20)),
        not_before: at(21),
        policy: PolicyOverride { max_attempts: Some(2), timeout: Some(at(9)), ..PolicyOverride::default() },
        due: -5,
        added: Micros::MAX,
        position: u32::MAX,
        has_edges: true,
        schedule: Some(Nominal { schedule: key("tick"), at: at(22) }),
        trace: Traceparent::new("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").ok(),
        state: State::Failed,
        holds_key: true,
        unserved: true,
        token: Token { incarnation: at(23), attempt: u32::MAX },
        failures: 24,
        retries: 25,
        returns: 26,
        generation: 27,
        worker: Some(worker(1)),
        admitted: Some(at(31)),
        leased: Some(at(28)),
        prefetched: true,
        stop: Some(Stop::Deadline),
        progress: Some(Progress { done: 1, total: u64::MAX, text: "half".into() }),
        ended: Some(at(29)),
        ended_lease_clock: Some(at(30)),
        notified: true,
        retained: true,
        error: Some("no".into()),
        history: vec![attempt.clone(), Attempt { worker: None, leased: None, error: None, ..attempt }],
    }
}

#[test]
fn every_field_of_a_task_comes_back() {
    let connection = database();
    on(&connection, |tables| {
        for (n, task) in [(1, full(1)), (2, bare(2, State::Added))] {
            tables.insert(&task, &Json::stored("null")).unwrap();
            assert_eq!(tables.task(id(n)).unwrap(), Some(task));
        }
        // Written field by field over another one, and back.
        let (bare, full) = (bare(2, State::Added), Task { id: id(2), ..full(1) });
        assert_eq!(differing(&bare, &full).count_ones() as usize, Task::COLUMNS.len() - 1, "all but the id");
        tables.put(&bare, &full).unwrap();
        assert_eq!(tables.task(id(2)).unwrap().as_ref(), Some(&full));
        tables.put(&full, &bare).unwrap();
        assert_eq!(tables.task(id(2)).unwrap().as_ref(), Some(&bare));
        for state in State::ALL {
            let before = tables.task(id(2)).unwrap().unwrap();
            let after = Task { state, ended: state.is_ended().then(|| at(1)), ..before.clone() };
            tables.put(&before, &after).unwrap();
            assert_eq!(tables.task(id(2)).unwrap(), Some(after));
        }
        tables.remove(&full).unwrap();
        assert_eq!(tables.task(id(2)).unwrap(), None);
    });
}

#[test]
fn short_and_long_payloads_and_results_come_back() {
    let connection = database();
    let texts = [0, 1, 498, 499, 10_000].map(|n| Json::of(&"x".repeat(n)).unwrap());
    on(&connection, |tables| {
        for (n, text) in (0..).zip(&texts) {
            let task = bare(n, State::Ready);
            tables.insert(&task, text).unwrap();
            assert_eq!(tables.payload(task.id).unwrap().as_ref(), Some(text));
            assert_eq!(tables.result(task.id).unwrap(), None);
            for other in &texts {
                tables.put_result(task.id, Some(other)).unwrap();
                tables.put_payload(task.id, Some(other)).unwrap();
                assert_eq!(tables.result(task.id).unwrap().as_ref(), Some(other));
                assert_eq!(tables.payload(task.id).unwrap().as_ref(), Some(other));
                tables.put_result(task.id, None).unwrap();
                assert_eq!(tables.result(task.id).unwrap(), None);
                assert_eq!(tables.payload(task.id).unwrap().as_ref(), Some(other));
            }
            tables.put_payload(task.id, None).unwrap();
            assert_eq!(tables.payload(task.id).unwrap(), None);
            tables.put_payload(task.id, Some(text)).unwrap();
            tables.remove(&task).unwrap();
        }
    });
    let left =
        "SELECT (SELECT count(*) FROM interval_queue_task) + (SELECT count(*) FROM interval_queue_task_body)";
    assert_eq!(connection.query_row(left, [], |row| row.get(0)), Ok(0));
}

fn presence() -> Presence {
    Presence {
        worker: worker(1),
        label: Label::new("host:7").unwrap(),
        sequence: u64::MAX,
        lease: at(1),
        ends: at(2),
        kinds: vec![Kind::new("a").unwrap(), Kind::new("b").unwrap()],
        version: 3,
        since: at(4),
        seen: at(5),
        busy: true,
        cleared: true,
        at_least: Some(-1),
        room: Some(6),
    }
}

fn schedule() -> Schedule {
    Schedule {
        name: key("tick"),
        revision: 1,
        incarnation: at(2),
        definition: Json::stored("{ \"every\":1 }"),
        next: Some(at(3)),
        paused: true,
        overlap: Overlap::Keep,
        last: Some(id(1)),
        kept: Some(at(4)),
        may_follow: true,
    }
}

#[test]
fn every_field_of_other_rows_comes_back() {
    let connection = database();
    on(&connection, |tables| {
        assert_eq!(tables.queue().unwrap(), None);
        let queue = Queue {
            settings: Settings { max_running: Some(3), ..Settings::default() },
            paused: true,
            paused_at: Some(at(7)),
            incarnation: at(1),
            lease_clock: at(2),
            seen: at(3),
            latest: at(4),
            maintenance_due: true,
            rebalance_after: Some(interval_queue_task_contract::RebalanceCursor::After(key("k"))),
            followed: Some(interval_queue_task_contract::Following { from: at(5), until: at(6) }),
        };
        tables.put_queue(&queue).unwrap();
        assert_eq!(tables.queue().unwrap(), Some(queue));

        let edge = Edge {
            up: id(1),
            down: id(2),
            name: Some(key("left")),
            on_failure: OnFailure::Wait,
            state: EdgeState::Held,
            generation: 3,
        };
        tables.insert_edge(&edge).unwrap();
        assert_eq!(tables.edges_from(id(1), None, 9).unwrap(), std::slice::from_ref(&edge));
        for state in [EdgeState::New, EdgeState::Open, EdgeState::Met, EdgeState::Failed, EdgeState::Cut] {
            let edge = Edge { name: None, on_failure: OnFailure::Run, state, ..edge.clone() };
            tables.put_edge(&edge).unwrap();
            assert_eq!(tables.edges_to(id(2), None, None, 9).unwrap(), [edge]);
            assert_eq!(tables.has_pending(id(2)).unwrap(), state.is_pending());
        }
        tables.remove_edge(&edge).unwrap();
        assert_eq!(tables.edges_from(id(1), None, 9).unwrap(), []);

        let other = Presence { busy: false, cleared: false, label: Label::default(), ..presence() };
        for presence in [presence(), other] {
            tables.put_presence(&presence).unwrap();
            assert_eq!(tables.presence(worker(1)).unwrap(), Some(presence));
        }
        let kind = KindRow {
            kind: Kind::new("a").unwrap(),
            paused: true,
            paused_at: Some(at(8)),
            served_until: at(9),
            open: true,
            needs_rebalancing: true,
        };
        for row in [
            kind.clone(),
            KindRow { paused: false, paused_at: None, open: false, needs_rebalancing: false, ..kind },
        ] {
            tables.put_kind(&row).unwrap();
            assert_eq!(tables.kind(&row.kind).unwrap(), Some(row));
        }
        let rows = [(Some(0), Some(at(9)), true), (None, None, false)];
        for row in rows.map(|(limit, paused_at, needs_rebalancing)| KeyRow {
            key: key("k"),
            limit,
            paused_at,
            needs_rebalancing,
        }) {
            tables.put_key(&row).unwrap();
            assert_eq!(tables.key(&row.key).unwrap(), Some(row));
        }
        let (next, last, kept) = (None, None, None);
        let other = Schedule {
            next,
            last,
            kept,
            overlap: Overlap::Skip,
            paused: false,
            may_follow: false,
            ..schedule()
        };
        for schedule in [schedule(), other] {
            tables.put_schedule(&schedule).unwrap();
            assert_eq!(tables.schedule(&schedule.name).unwrap(), Some(schedule));
        }
        for counted in Counted::all() {
            tables.count(&Kind::default(), counted, 3).unwrap();
            tables.count(&Kind::default(), counted, -1).unwrap();
        }
        let counts = tables.counts().unwrap();
        assert_eq!(counts, Counted::all().map(|counted| (Kind::default(), counted, 2)).collect::<Vec<_>>());
    });
}

/// Makes every look and every write that there is.
fn use_all(tables: &mut Tables<'_>) {
    let (kind, name) = (Kind::new("send").unwrap(), key("k"));
    tables.queue().unwrap();
    let long = Json::of(&"x".repeat(999)).unwrap();
    let urgent = Task { priority: 1, ..bare(1, State::Ready) };
    tables.insert(&urgent, &long).unwrap();
    tables.insert(&bare(2, State::Ready), &long).unwrap();
    tables.put(&urgent, &Task { state: State::Leased, worker: Some(worker(1)), ..urgent.clone() }).unwrap();
    tables.put(&Task { state: State::Leased, worker: Some(worker(1)), ..urgent.clone() }, &urgent).unwrap();
    tables.task(id(1)).unwrap();
    for text in [None, Some(&long)] {
        tables.put_payload(id(1), text).unwrap();
        tables.put_result(id(1), text).unwrap();
    }
    tables.payload(id(1)).unwrap();
    tables.result(id(1)).unwrap();
    tables.by_name(&name).unwrap();
    tables.added(1).unwrap();
    tables.scheduled(at(1), 1).unwrap();
    tables.next_scheduled().unwrap();
    tables.ready(std::slice::from_ref(&kind), Some(1), 1).unwrap();
    tables.ready(std::slice::from_ref(&kind), None, 1).unwrap();
    tables.leased().unwrap();
    tables.leased_of_key(&name).unwrap();
    tables.held_by(worker(1), 1).unwrap();
    tables.to_stop(worker(1), 1).unwrap();
    tables.holders(&name).unwrap();
    tables.has_ordered_holder(&name).unwrap();
    tables.last_ready_holder(&name).unwrap();
    tables.first_competitor(&name).unwrap();
    tables.next_key(None).unwrap();
    tables.unserved(&kind, 1).unwrap();
    tables.ready_holders(&kind, 1).unwrap();
    tables.overdue(at(1), 1).unwrap();
    tables.next_deadline().unwrap();
    tables.unnotified(1).unwrap();
    tables.ended(State::Done, at(1), 1).unwrap();
    for order in Order::ALL {
        tables.select(&Selector::default(), order.start(), 1).unwrap();
        tables.scan_end(order.start()).unwrap();
    }
    tables.edges_from(id(1), None, 1).unwrap();
    tables.unnotified_from(id(1), 1, 1).unwrap();
    tables.edges_to(id(1), None, None, 1).unwrap();
    tables.has_pending(id(1)).unwrap();
    tables.put_presence(&presence()).unwrap();
    tables.presence(worker(1)).unwrap();
    tables.remove_presence(worker(1)).unwrap();
    tables.ended_presences(at(1), true, 1).unwrap();
    tables.shortest_busy_lease(at(1)).unwrap();
    tables.longest_lease(at(1)).unwrap();
    tables.next_busy_end(at(1)).unwrap();
    tables.presences().unwrap();
    tables
        .put_kind(&KindRow {
            kind: kind.clone(),
            paused: false,
            paused_at: None,
            served_until: at(1),
            open: true,
            needs_rebalancing: true,
        })
        .unwrap();
    tables.kind(&kind).unwrap();
    tables.kinds().unwrap();
    tables
        .put_key(&KeyRow { key: name.clone(), limit: None, paused_at: None, needs_rebalancing: true })
        .unwrap();
    tables.key(&name).unwrap();
    tables.remove_key(&name).unwrap();
    tables.keys_to_rebalance(1).unwrap();
    tables.paused_keys(1).unwrap();
    tables.blocked(&name, 1).unwrap();
    tables.put_schedule(&schedule()).unwrap();
    tables.schedule(&name).unwrap();
    tables.remove_schedule(&name).unwrap();
    tables.schedules().unwrap();
    tables.count(&kind, Counted::EverAdded, 1).unwrap();
    tables.counts().unwrap();
    tables.notify().unwrap();
    tables.remove(&urgent).unwrap();
}

#[test]
fn every_statement_goes_by_an_index_and_none_sorts() {
    let connection = database();
    on(&connection, use_all);
    // Whatever somebody lets SQLite find out about the tables.
    connection.execute_batch("ANALYZE").unwrap();
    let noted = NOTED.take();
    assert!(noted.len() > 60, "{}", noted.len());
    for sql in noted.iter().filter(|sql| !sql.starts_with("INSERT")) {
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = (0..explain.parameter_count()).map(|_| rusqlite::types::Null);
        let plan = explain.query_map(rusqlite::params_from_iter(parameters), |row| row.get::<_, String>(3));
        let plan = plan.unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        for step in plan.iter().filter(|step| !step.contains("VIRTUAL TABLE")) {
            assert!(!step.starts_with("SCAN interval"), "{sql}\n{plan:?}");
            assert!(!step.contains("TEMP B-TREE"), "{sql}\n{plan:?}");
        }
        // By more than the queue, which has a million.
        if plan.iter().any(|step| step.contains("USING INDEX interval_queue_task_ready (")) {
            assert!(plan.iter().any(|step| step.contains("kind=? AND priority=?")), "{sql}\n{plan:?}");
        }
    }
}

/// How much SQLite has to do for each statement, beside so many tasks in every place where some may be.
fn efforts(n: u64) -> BTreeMap<String, i32> {
    let connection = database();
    connection.set_prepared_statement_cache_capacity(256);
    on(&connection, |tables| {
        let mut next = 1_000;
        let mut insert = |change: &dyn Fn(&mut Task)| {
            next += 1;
            let mut task = bare(next, State::Ready);
            change(&mut task);
            tables.insert(&task, &Json::stored("1")).unwrap();
        };
        for at in (0..n).map(Micros::new) {
            insert(&|task| task.state = State::Added);
            insert(&|task| (task.state, task.not_before) = (State::Scheduled, at));
            insert(&|task| (task.state, task.key) = (State::Blocked, Some(key("k"))));
            insert(&|task| (task.state, task.key, task.unserved) = (State::Blocked, Some(key("k")), true));
            insert(&|task| (task.state, task.worker) = (State::Leased, Some(worker(1))));
            insert(&|task| (task.deadline, task.stop) = (Some(at), Some(Stop::Cancel)));
            insert(&|task| task.deadline = Some(at));
            insert(&|task| (task.state, task.ended) = (State::Failed, Some(at)));
            insert(&|task| (task.state, task.ended, task.notified) = (State::Done, Some(at), true));
            insert(&|task| {
                (task.state, task.ended, task.notified) = (State::Cancelled, Some(at), true);
                task.retained = true;
            });
            for priority in [0, 1] {
                insert(&|task| task.priority = priority);
                insert(&|task| (task.priority, task.kind) = (priority, Kind::default()));
            }
        }
        for other in (0..n).map(|n| id(5_000_000 + n)) {
            let edge = |up, down, state| Edge {
                up,
                down,
                name: None,
                on_failure: OnFailure::Wait,
                state,
                generation: 1,
            };
            for state in [EdgeState::Met, EdgeState::Held] {
                let third = id(if state == EdgeState::Met { 1 } else { 3 });
                tables.insert_edge(&edge(third, other, state)).unwrap();
                tables.insert_edge(&edge(other, third, state)).unwrap();
            }
        }
        use_all(tables);
        assert_eq!(tables.unnotified_from(id(3), 1, 1).unwrap(), []);
    });
    let effort = |sql: String| {
        // The statement is kept with all that it has done.
        let steps = connection.prepare_cached(&sql).unwrap().get_status(rusqlite::StatementStatus::VmStep);
        (sql, steps)
    };
    NOTED.take().into_iter().map(effort).collect()
}

#[test]
fn the_cost_of_a_lookup_depends_only_on_its_result() {
    let (few, many) = (efforts(10), efforts(400));
    for (sql, steps) in &few {
        assert!(*steps > 0, "{sql}");
        // Some have filled the tables, some count leased tasks, and the end of a scan is so far away at most.
        if !sql.starts_with("INSERT") && !sql.contains("count(*)") && !sql.contains("OFFSET") {
            assert!(
                many[sql] < steps * 2 + 100,
                "{steps} steps beside a few, {} beside many: {sql}",
                many[sql]
            );
        }
    }
}

#[test]
fn a_row_that_cannot_be_used_is_named_with_its_column() {
    for (set, says) in [
        ("tags = '{}'", "column tags"),
        ("kind = ' '", "column kind"),
        ("id = 'x' || substr(id, 2)", "column id"),
        ("worker = 'nobody'", "column worker"),
        ("added = -1", "column added"),
        ("policy = '{\"max_attempts\": true}'", "column policy"),
        ("attempt = -1", "column attempt"),
    ] {
        let connection = database();
        on(&connection, |tables| tables.insert(&bare(1, State::Added), &Json::stored("1")).unwrap());
        connection.execute(&format!("UPDATE interval_queue_task SET {set}"), []).unwrap();
        let Err(Fault::Refused(error)) = on(&connection, |tables| tables.added(1)) else {
            panic!("{set} is read")
        };
        let text = error.to_string();
        assert_eq!(error.kind(), interval_queue_contract::StateErrorKind::Damaged, "{text}");
        for part in ["tasks.db", "interval_queue_task", "number 1", says] {
            assert!(text.contains(part), "{set}: {text}");
        }
    }
    let connection = database();
    on(&connection, |tables| tables.insert(&bare(1, State::Added), &Json::stored("1")).unwrap());
    for nonsense in
        ["state = 'asleep'", "tags = '[1'", "stop = 'halt'", "id = '1'", "due = 'soon'", "kind = NULL"]
    {
        let refused = connection.execute(&format!("UPDATE interval_queue_task SET {nonsense}"), []);
        assert!(refused.is_err(), "SQLite refuses {nonsense} by itself");
    }
}

/// Each statement goes by an index.
#[test]
fn an_add_runs_statements_in_proportion_to_its_tasks() {
    let statements = hand::FLOWS.into_iter().map(|count| {
        STATEMENTS.set(0);
        let added = on(&database(), |tables| rules::apply(tables, at(1), &hand::flow(count)));
        added.unwrap();
        STATEMENTS.get()
    });
    hand::assert_linear(statements, "statements");
}
