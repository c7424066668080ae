//! Draws the model, and asserts what a person reads.

use std::time::Duration;

use interval_queue::{
    Micros,
    task_contract::{Counted, Progress, State, Task, TaskId},
};
use interval_queue_documents::{Failure, Failures, Worker};
use interval_queue_tasks::Condition;
use ratatui::{Terminal, backend::TestBackend, style::Color};

use super::{Theme, draw};
use crate::{
    tasks::{Summary, TextPage},
    watch::{
        keys::{Action, Move},
        messages::{Effect, Message},
        model::Model,
        queue_state::{Details, QueueState},
        tests::{Scene, name, read, read_tasks, tasks},
    },
};

const MS: u64 = 1000;
const SIZES: [(u16, u16); 5] = [(20, 10), (40, 10), (60, 20), (80, 24), (140, 50)];

/// Also returns whether anything is in colour.
fn screen(model: &mut Model, size: (u16, u16), theme: Theme) -> (Vec<String>, bool) {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(frame, model, theme)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    let coloured = buffer.content().iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
    ((0..size.1).map(line).collect(), coloured)
}

fn lines(model: &mut Model, size: (u16, u16)) -> Vec<String> {
    screen(model, size, Theme::Colours).0
}

/// One line has these parts in this order.
fn has(lines: &[String], parts: &[&str]) {
    let found = lines.iter().any(|line| {
        let mut rest = line.as_str();
        parts.iter().all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    });
    assert!(found, "{parts:?} is not in\n{}", lines.join("\n"));
}

fn loops(n: u64) -> Scene {
    let mut scene = Scene::new(250 * MS).at(100_000 * MS + n * 250 * MS).ticket(4 + n).current(n);
    scene = scene.free_at(100_000 * MS + n * 250 * MS + 100 * MS);
    for waiting in 1..=4 {
        let label = ["web-1", "web-2", "web-3", "web-4"][((n + waiting) % 4) as usize];
        scene = scene.shard(label, n + waiting);
    }
    scene
}

/// Three queues. Four loops have shared one of them for ten seconds.
fn busy() -> Model {
    let mut model = Model::new("file:queues.json", None);
    model.apply(Message::Names(["api", "backup", "mail"].map(name).to_vec()), Duration::ZERO);
    for n in 0..=40 {
        model.apply(read("api", loops(n)), Duration::from_millis(250 * n));
    }
    let backup =
        Scene::new(1000 * MS).ticket(5).current(2).max_running(2).runs("host-1", 2).shard("host-2", 3);
    model.apply(read("backup", backup), model.now);
    model.apply(read("mail", Scene::new(2000 * MS).paused()), model.now);
    model
}

fn some_tasks() -> Summary {
    let now = |state| Counted::Now(state);
    let mut summary = tasks(&[
        (now(State::Ready), 1_234),
        (now(State::Leased), 3),
        (now(State::Done), 5_000),
        (now(State::Failed), 2),
        (Counted::EverAdded, 6_239),
        (Counted::EverDone, 5_000),
    ]);
    for n in 0..3_u64 {
        let mut task = Task::bare(TaskId::named(&format!("task {n}")));
        task.leased = Some(Micros::ZERO);
        task.progress = Some(Progress { done: n, total: 9, text: "pages\u{1b}[31m".into() });
        summary.runs.push((task, format!("host-{n}")));
    }
    summary
}

/// A model after two reads, with details.
fn with_tasks(summary: &Summary, is_paced: bool) -> Model {
    let mut model = Model::new("sqlite:queues.db", None);
    model.apply(Message::Names(vec![name("mail")]), Duration::ZERO);
    for second in [0, 2] {
        let counts = Counted::all().map(|counted| match (counted, summary.counts.get(counted)) {
            (Counted::EverDone, count) => (counted, count + 10 * second),
            (_, count) => (counted, count),
        });
        let read =
            Summary { at: Micros::new(second * 1_000 * MS), counts: counts.collect(), ..summary.clone() };
        let rate = is_paced.then(|| Scene::new(250 * MS));
        model.apply(read_tasks("mail", rate, read), Duration::from_secs(second));
    }
    let worker = |label: &str, lease| Worker {
        at_least: None,
        free_capacity: None,
        holds: vec!["a task".into()],
        id: String::new(),
        kinds: vec!["slow".into(), "fast".into()],
        label: label.into(),
        lease_left_us: lease,
        runs: None,
        seen_us: 0,
        since_us: 0,
    };
    let failure = Failure {
        common: None,
        count: 2,
        example: String::new(),
        first_us: 0,
        kinds: Default::default(),
        last_us: 0,
        retrying: 7,
        selects: 2,
        text: "connection refused by \u{1b}[31mthe host".into(),
    };
    let failures = Failures { failed: 2, groups: vec![failure], retrying: 7, ungrouped: 0 };
    let workers = vec![worker("host-0", Some(12_000 * MS)), worker("gone", None)];
    let details = Details { workers, failures: Some(failures) };
    model.apply(Message::Details(name("mail"), details), Duration::from_secs(2));
    model
}

#[test]
fn a_rate_limit_is_shown_with_its_queues_starts_and_shards() {
    let shown = lines(&mut busy(), (80, 24));
    has(&shown, &["api", "(1 of 3)", "file:queues.json"]);
    has(&shown, &["QUEUE", "RATE", "JOBS", "TASKS", "STATUS"]);
    has(&shown, &["▌ api", "4 per second", "4", "-", "● waiting for ticket 41"]);
    has(&shown, &["backup", "1 per second", "3", "-", "‖ 2 jobs run and 2 may"]);
    has(&shown, &["mail", "30 per minute", "0", "-", "‖ paused"]);
    has(&shown, &["● NEXT", "waiting for ticket 41 of shard web-2 (web-2)"]);
    has(&shown, &["rate", "one start every 250ms (4 per second)"]);
    has(&shown, &["at most 4 waiting, 100% of the rate"]);
    has(&shown, &["achieved 4.0 of 4 per second", "━━━━"]);
    has(&shown, &["starts", "a column is 1s"]);
    has(&shown, &["█████████"]);
    has(&shown, &["TICKET", "SHARD", "STARTS IN", "RUNNING", "LEASE LEFT"]);
    has(&shown, &["41", "web-2", "100ms", "0", "5s"]);
    has(&shown, &["44", "web-1", "850ms"]);
    has(&shown, &["p pause", "? help", "q quit"]);
}

#[test]
fn tasks_are_shown_with_counts_runs_failures_and_workers() {
    for is_paced in [false, true] {
        let shown = lines(&mut with_tasks(&some_tasks(), is_paced), (100, 35));
        has(&shown, &["● RUNNING", "8 run"]);
        for (state, count) in [("ready", "1,234"), ("leased", "3"), ("done", "5,000"), ("failed", "2")] {
            has(&shown, &[state, count]);
        }
        has(&shown, &["10 ended per second, in the last 2s"]);
        has(&shown, &["ended: 80% of the 6,239"]);
        has(&shown, &["running and next", "3 run"]);
        has(&shown, &["host-0", "for 2s", "0 of 9 pages"]);
        has(&shown, &["FAILED", "RETRYING", "ERROR"]);
        has(&shown, &["2", "7", "connection refused"]);
        has(&shown, &["workers", "1 live"]);
        has(&shown, &["host-0", "1", "slow, fast", "12s"]);
        has(&shown, &["gone", "ended"]);
        has(&shown, &["tab tasks", "f failed"]);
        assert!(shown.iter().all(|line| !line.contains('\u{1b}')), "{shown:?}");
    }
}

#[test]
fn a_small_screen_keeps_the_status_and_what_is_next() {
    let mut model = busy();
    for size in [(20, 10), (20, 5), (39, 9)] {
        let shown = lines(&mut model, size);
        has(&shown, &["api"]);
        has(&shown, &["● NEXT"]);
        has(&shown, &["100ms 41 web-2"]);
    }
    has(&lines(&mut model, (20, 2)), &["● NEXT"]);
    has(&lines(&mut with_tasks(&some_tasks(), false), (20, 10)), &["1,234 ready"]);
    model.act(Action::Pause);
    has(&lines(&mut model, (20, 10)), &["Pause api?"]);
    model.apply(Message::Outage("refused".into()), Duration::from_secs(20));
    model.act(Action::Back);
    has(&lines(&mut model, (20, 5)), &["▲ UNREACHABLE"]);
}

#[test]
fn every_size_and_state_can_be_drawn() {
    let mut outage = busy();
    outage.apply(Message::Outage("connection refused".into()), Duration::from_secs(20));
    let mut confirming = busy();
    confirming.act(Action::Pause);
    let mut help = busy();
    help.act(Action::Help);
    let wide = "日".repeat(60);
    let mut odd = Model::new("日本語".repeat(40), Some(name(&wide)));
    let label = "日本語 label ".repeat(5);
    let scene = Scene::new(1).at(5).ticket(u64::MAX).current(3).free_at(u64::MAX).shard(label.trim(), 2);
    odd.apply(read(&wide, scene), Duration::ZERO);
    let mut many = Model::new("redis://localhost", None);
    many.apply(Message::Names((0..10_000).map(|n| name(&format!("q{n}"))).collect()), Duration::ZERO);
    many.act(Action::Go(Move::Last));
    let mut slow = Scene::new(366 * 86_400_000 * MS).at(1).ticket(2000);
    for n in 0..1000 {
        slow = slow.shard(&format!("shard {n} pid {n}"), n + 1);
    }
    let mut many_shards = Model::new("", Some(name("a")));
    many_shards.apply(read("a", slow), Duration::ZERO);
    let mut runs = some_tasks();
    runs.runs = (0..300).map(|_| runs.runs[0].clone()).collect();
    let mut marked = with_tasks(&runs, true);
    marked.act(Action::Focus);
    let huge = tasks(&[(Counted::Now(State::Scheduled), 10_000_000), (Counted::Now(State::Blocked), 1)]);
    let mut opened = busy();
    let page = TextPage { about: "line\n".repeat(99), bodies: "x".repeat(100_000) };
    opened.apply(Message::Opened(Ok(page)), Duration::ZERO);
    opened.act(Action::Bodies);
    let mut all = [
        busy(),
        outage,
        confirming,
        help,
        odd,
        many,
        many_shards,
        marked,
        with_tasks(&huge, true),
        with_tasks(&tasks(&[]), false),
        opened,
        Model::new("", None),
    ];
    for model in &mut all {
        for width in [0, 1, 2, 3, 5, 8, 13, 20, 21, 39, 40, 60, 75, 76, 81, 200] {
            for height in [0, 1, 2, 3, 5, 9, 10, 14, 24, 50] {
                lines(model, (width, height));
            }
        }
    }
    has(&lines(&mut all[5], (80, 24)), &["q9999"]);
    has(&lines(&mut all[6], (80, 24)), &["order of starts", "1,000 shards"]);
}

#[test]
fn an_outage_keeps_the_last_state_with_its_age() {
    let mut model = busy();
    model.apply(Message::Outage("redis at cache:6379 cannot be reached".into()), Duration::from_secs(11));
    model.now = Duration::from_secs(25);
    let shown = lines(&mut model, (80, 24));
    has(&shown, &["▲ UNREACHABLE", "for 14s: redis at cache:6379 cannot be reached"]);
    has(&shown, &["api", "read 15s ago"]);
    has(&shown, &["41", "web-2", "100ms"]);
    model.outage = None;
    model.read_since = Some(Duration::from_secs(20));
    has(&lines(&mut model, (80, 24)), &["▲ NO ANSWER", "no reply of the store for 5s"]);
}

#[test]
fn a_change_is_confirmed_in_words_that_name_its_effect() {
    let mut model = busy();
    model.act(Action::Pause);
    has(&lines(&mut model, (80, 24)), &["Pause api?", "y: yes"]);
    has(&lines(&mut model, (80, 24)), &["Nothing starts any more, on all hosts"]);
    model.act(Action::Back);
    model.act(Action::Go(Move::Last));
    model.act(Action::Pause);
    has(&lines(&mut model, (80, 24)), &["Resume mail?"]);
    model.act(Action::Other);
    model.act(Action::Help);
    has(&lines(&mut model, (80, 24)), &["p", "pause or resume the queue for all"]);
}

#[test]
fn without_colours_signs_and_words_are_the_same() {
    for mut model in [busy(), with_tasks(&some_tasks(), true)] {
        for size in SIZES {
            let (plain, coloured) = screen(&mut model, size, Theme::Plain);
            assert!(!coloured);
            let (colours, coloured) = screen(&mut model, size, Theme::Colours);
            assert!(coloured);
            assert_eq!(plain, colours);
        }
    }
}

#[test]
fn a_list_that_does_not_fit_keeps_the_chosen_one_in_view() {
    let mut model = Model::new("redis://localhost", None);
    model.apply(Message::Names((0..100).map(|n| name(&format!("queue-{n:02}"))).collect()), Duration::ZERO);
    lines(&mut model, (80, 24));
    let page = model.page;
    assert!(page > 1);
    for (to, chosen) in
        [(Move::Down, 1), (Move::Last, 99), (Move::Up, 98), (Move::First, 0), (Move::PageDown, page)]
    {
        model.act(Action::Go(to));
        let shown = lines(&mut model, (80, 24));
        has(&shown, &[&format!("▌ queue-{chosen:02}")]);
        assert_eq!(model.chosen, chosen, "{to:?}");
        assert_eq!(model.in_view().count(), page - 1);
    }
}

#[test]
fn a_task_is_marked_opened_and_read() {
    let mut summary = some_tasks();
    summary.upcoming =
        (0..20).map(|n| Task { priority: n, ..Task::bare(TaskId::named(&format!("next {n}"))) }).collect();
    let (first, last) = (summary.runs[0].0.id, summary.upcoming[19].id);
    let mut model = with_tasks(&summary, true);
    assert_eq!(model.act(Action::Open), Effect::None, "none is marked");
    model.act(Action::Focus);
    has(&lines(&mut model, (100, 30)), &["▌ host-0", &first.to_string()]);
    has(&lines(&mut model, (100, 30)), &["enter open", "esc back"]);
    model.act(Action::Go(Move::Last));
    has(&lines(&mut model, (100, 30)), &["▌ next", &last.to_string(), "added 2s ago  priority 19"]);
    assert_eq!(model.act(Action::Open), Effect::Open(name("mail"), last));
    let about = (0..40).map(|n| format!("line {n}\n")).collect();
    let page = TextPage { about, bodies: "payload     {\"to\": \"ada\"}\n".into() };
    model.apply(Message::Opened(Ok(page)), Duration::from_secs(3));
    has(&lines(&mut model, (100, 30)), &["line 0"]);
    model.act(Action::Go(Move::PageDown));
    model.act(Action::Go(Move::PageDown));
    let shown = lines(&mut model, (100, 30));
    has(&shown, &["line 39"]);
    has(&shown, &["esc back", "b payload and result"]);
    assert!(shown.iter().all(|line| !line.contains("ada")), "payloads are shown on request only");
    model.act(Action::Bodies);
    has(&lines(&mut model, (100, 30)), &["payload", "ada"]);
    model.act(Action::Back);
    model.act(Action::Back);
    assert!(model.opened.is_none() && model.marked.is_none());
    assert_eq!(model.act(Action::Back), Effect::Quit);
    model.apply(Message::Opened(Err("task 1 cannot be opened: it has ended".into())), Duration::from_secs(4));
    has(&lines(&mut model, (100, 30)), &["task 1 cannot be opened: it has ended"]);
}

#[test]
fn failures_are_read_like_a_task() {
    let mut none = Model::new("file:queues.json", Some(name("mail")));
    assert_eq!(none.act(Action::Failures), Effect::None, "there are no stored tasks");
    let mut model = with_tasks(&some_tasks(), true);
    assert_eq!(model.act(Action::Failures), Effect::Failures(name("mail")));
    let page = TextPage { about: "2 failed: refused\n".into(), ..TextPage::default() };
    model.apply(Message::Opened(Ok(page)), Duration::from_secs(3));
    let shown = lines(&mut model, (80, 24));
    has(&shown, &["2 failed: refused"]);
    has(&shown, &["esc back   ↑↓ scroll"]);
    assert_eq!(model.act(Action::Back), Effect::None);
    assert!(model.opened.is_none());
}

#[test]
fn a_mark_leaves_a_task_that_has_ended() {
    let ids: Vec<_> = some_tasks().runs.iter().map(|(task, _)| task.id).collect();
    let mut model = with_tasks(&some_tasks(), false);
    model.act(Action::Focus);
    model.act(Action::Go(Move::Last));
    let mut read = |remaining: &[usize], second: u64| {
        let runs = remaining.iter().map(|&n| some_tasks().runs[n].clone()).collect();
        let summary = Summary { at: Micros::new(second * 1_000 * MS), runs, ..some_tasks() };
        model.apply(read_tasks("mail", None, summary), Duration::from_secs(second));
        model.marked
    };
    assert_eq!(read(&[1, 2], 5), Some(ids[2]));
    assert_eq!(read(&[1], 6), Some(ids[1]));
    assert_eq!(read(&[], 7), None);
}

#[test]
fn the_list_counts_tasks_and_names_an_error() {
    let mut model = with_tasks(&some_tasks(), true);
    model.apply(Message::Names(["mail", "other", "broken"].map(name).to_vec()), Duration::ZERO);
    let paused = Summary { conditions: vec![Condition::Paused { since: None, running: 0 }], ..some_tasks() };
    model.apply(read_tasks("other", None, paused), Duration::ZERO);
    let broken = QueueState { error: Some("the database is damaged".into()), ..QueueState::default() };
    model.apply(Message::Read(name("broken"), Box::new(broken)), Duration::ZERO);
    let shown = lines(&mut model, (100, 30));
    has(&shown, &["other", "1,237", "‖ paused"]);
    has(&shown, &["broken", "▲ the database is damaged"]);
}
