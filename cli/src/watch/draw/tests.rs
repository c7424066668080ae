//! Tests of the drawing at all sizes.

use std::time::Duration;

use interval_queue::{
    Micros, QueueName,
    task_contract::{Counted, Progress, State, Task, TaskId},
};
use interval_queue_tasks::Condition;
use ratatui::{Terminal, backend::TestBackend, style::Color};

use super::{draw, theme::Theme};
use crate::{
    tasks::{Summary, TextPage},
    watch::{
        keys::{Action, Move},
        messages::{Effect, Message, Wanted},
        model::Model,
        scene::{Scene, tasks},
    },
};

const MS: u64 = 1000;

fn name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// The lines of a screen of this size, and whether anything is in colour.
fn screen(model: &Model, size: (u16, u16), theme: Theme) -> (Vec<String>, bool) {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let _ = terminal.draw(|frame| _ = draw(frame, model, theme)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    let coloured = buffer.content().iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
    ((0..size.1).map(line).collect(), coloured)
}

fn lines(model: &Model, size: (u16, u16)) -> Vec<String> {
    screen(model, size, Theme::Colours).0
}

/// Asserts that one line contains these parts in this order.
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
        model.apply(Message::Read(name("api"), Some(loops(n).build())), Duration::from_millis(250 * n));
    }
    let backup =
        Scene::new(1000 * MS).ticket(5).current(2).max_running(2).runs("host-1", 2).shard("host-2", 3);
    model.apply(Message::Read(name("backup"), Some(backup.build())), model.now);
    model.apply(Message::Read(name("mail"), Some(Scene::new(2000 * MS).paused().build())), model.now);
    model.page = 3;
    model
}

#[test]
fn eighty_by_twenty_four_shows_all_that_matters() {
    let shown = lines(&busy(), (80, 24));
    has(&shown, &["api", "(1 of 3)", "file:queues.json"]);
    has(&shown, &["▌ api", "250ms", "4", "● next: ticket 41"]);
    has(&shown, &["backup", "1s", "3", "2/2", "‖ at its limit"]);
    has(&shown, &["mail", "2s", "0", "‖ paused"]);
    has(&shown, &["● NEXT", "ticket 41 of web-2, in 0.10s"]);
    has(&shown, &["rate", "one start every 250ms (4 per second)"]);
    has(&shown, &["4.0 of 4 per second, 100%, in 10s"]);
    has(&shown, &["─ starts ─", "a column is 250ms, one slot"]);
    has(&shown, &["all", "████████████████████████████████████████"]);
    has(&shown, &["web-1", "■···■···■···■", "│"]);
    has(&shown, &["-5s", "now"]);
    has(&shown, &["SHARD", "HEAD", "LEASE LEFT", "NEXT", "SHARD", "IN"]);
    has(&shown, &["web-2", "41", "0", "5.00s", "41 web-2", "0.10s"]);
    has(&shown, &["44 web-1", "0.85s"]);
    has(&shown, &["p pause", "? help", "q quit"]);
}

#[test]
fn parts_that_do_not_fit_are_left_out_as_a_whole() {
    let mut model = Model::new("file:queues.json", Some(name("api")));
    for n in 0..=40 {
        let scene = Scene::new(1).at(100_000 * MS + n * 250 * MS).ticket(n * 250_000).current(n * 250_000);
        model.apply(Message::Read(name("api"), Some(scene.build())), Duration::from_millis(250 * n));
    }
    for width in [76, 80, 100] {
        let shown = lines(&model, (width, 24));
        has(&shown, &["rate", "one start every 1us (1,000,000 per second)", "running", "not counted"]);
        has(&shown, &["achieved", "of 1,000,000 per second, ", "%", "waiting", "0"]);
    }
}

#[test]
fn starts_are_in_the_lane_of_their_shard() {
    let shown = lines(&busy(), (100, 30));
    let lane = |name: &str| shown.iter().find(|line| line.starts_with(name) && line.contains('■')).unwrap();
    // Ticket n is of shard n % 4, and the next four come in that order.
    let slots: Vec<_> = ["web-2", "web-3", "web-4", "web-1"]
        .map(|name| lane(name).chars().position(|c| c == '□').unwrap_or_else(|| panic!("{}", lane(name))))
        .to_vec();
    assert!(slots.is_sorted_by(|a, b| a + 1 == *b), "{slots:?}\n{}", shown.join("\n"));
    assert_eq!(lane("web-3").matches('■').count(), 10);
}

#[test]
fn twenty_by_five_tells_the_reason_and_who_is_next() {
    let shown = lines(&busy(), (20, 5));
    has(&shown, &["api", "100%"]);
    has(&shown, &["● NEXT"]);
    has(&shown, &["ticket 41 of web-2,"]);
    has(&shown, &["41 web-2", "0.10s"]);
    let mut paused = busy();
    paused.act(Action::Go(Move::Last));
    has(&lines(&paused, (20, 5)), &["‖ PAUSED"]);
    has(&lines(&busy(), (20, 1)), &["● NEXT"]);
    has(&lines(&busy(), (60, 1)), &["● NEXT", "ticket 41 of web-2, in 0.10s"]);
}

#[test]
fn two_hundred_by_fifty_uses_its_room() {
    let shown = lines(&busy(), (200, 50));
    has(&shown, &["SHARD", "ID", "HEAD", "RUNNING", "LEASE LEFT", "NEXT", "IN"]);
    has(&shown, &["-25s", "-5s", "now", "+5s"]);
    has(&shown, &["waiting", "4", "(44 taken, current 40)"]);
}

#[test]
fn no_size_and_no_state_of_affairs_is_a_panic() {
    let mut outage = busy();
    outage.apply(Message::Outage("connection refused".into()), Duration::from_secs(20));
    let mut confirming = busy();
    confirming.act(Action::Pause);
    let mut help = busy();
    help.act(Action::Help);
    let mut odd = Model::new("日本語".repeat(40), Some(name(&"日".repeat(60))));
    let label = "日本語 label ".repeat(5);
    let scene = Scene::new(1)
        .at(5)
        .ticket(u64::MAX)
        .current(3)
        .free_at(u64::MAX)
        .shard(label.trim(), 2)
        .took(label.trim(), 4096);
    odd.apply(Message::Read(name(&"日".repeat(60)), Some(scene.build())), Duration::ZERO);
    let mut many = Model::new("redis://localhost", None);
    many.apply(Message::Names((0..10_000).map(|n| name(&format!("q{n}"))).collect()), Duration::ZERO);
    many.act(Action::Go(Move::Last));
    let mut slow = Scene::new(366 * 86_400_000 * MS).at(1).ticket(2000);
    for n in 0..1000 {
        slow = slow.shard(&format!("shard {n} pid {n}"), n + 1);
    }
    let mut many_shards = Model::new("", Some(name("a")));
    many_shards.apply(Message::Read(name("a"), Some(slow.build())), Duration::ZERO);
    let nothing = Model::new("", None);
    for model in [&busy(), &outage, &confirming, &help, &odd, &many, &many_shards, &nothing] {
        for width in [0, 1, 2, 3, 5, 8, 13, 20, 39, 40, 60, 75, 76, 80, 200] {
            for height in [0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 12, 14, 15, 16, 18, 24, 28, 50] {
                lines(model, (width, height));
            }
        }
    }
    has(&lines(&many, (80, 24)), &["q9999"]);
    has(&lines(&many_shards, (80, 24)), &["… 99", "more"]);
}

#[test]
fn an_outage_is_shown_with_the_age_of_the_numbers() {
    let mut model = busy();
    model.apply(Message::Outage("redis at cache:6379 cannot be reached".into()), Duration::from_secs(11));
    model.now = Duration::from_secs(25);
    let shown = lines(&model, (80, 24));
    has(&shown, &["▲ UNREACHABLE", "for 14.0s: redis at cache:6379 cannot be reached"]);
    has(&shown, &["api", "read 15.0s ago"]);
    has(&lines(&model, (20, 5)), &["▲ UNREACHABLE"]);
    model.outage = None;
    model.read_since = Some(Duration::from_secs(20));
    has(&lines(&model, (80, 24)), &["▲ NO ANSWER", "no reply of the store for 5.00s"]);
}

#[test]
fn a_change_is_asked_for_in_words_that_say_what_it_does() {
    let mut model = busy();
    model.act(Action::Pause);
    has(&lines(&model, (80, 24)), &["Pause api?", "y: yes"]);
    has(&lines(&model, (80, 24)), &["Nothing starts any more, on all hosts"]);
    has(&lines(&model, (20, 5)), &["Pause api?", "y:"]);
    model.act(Action::Back);
    model.act(Action::Go(Move::Last));
    model.act(Action::Pause);
    has(&lines(&model, (80, 24)), &["Resume mail?"]);
    model.act(Action::Other);
    model.act(Action::Help);
    has(&lines(&model, (80, 24)), &["p", "pause or resume the queue for all"]);
}

#[test]
fn without_colours_signs_and_words_are_the_same() {
    let (plain, coloured) = screen(&busy(), (100, 30), Theme::Plain);
    assert!(!coloured);
    let (colours, coloured) = screen(&busy(), (100, 30), Theme::Colours);
    assert!(coloured);
    assert_eq!(plain, colours);
}

#[test]
fn a_list_that_does_not_fit_keeps_the_chosen_one_in_view() {
    let mut model = Model::new("redis://localhost", None);
    model.apply(Message::Names((0..100).map(|n| name(&format!("queue-{n:02}"))).collect()), Duration::ZERO);
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    for (to, shown) in
        [(Move::Down, 1), (Move::Last, 99), (Move::Up, 98), (Move::First, 0), (Move::PageDown, 3)]
    {
        model.act(Action::Go(to));
        terminal
            .draw(|frame| {
                let drawn = draw(frame, &model, Theme::Plain);
                (model.page, model.first_row) = (drawn.page, drawn.first_row);
            })
            .unwrap();
        let rows = model.first_row..model.first_row + model.page;
        assert!(rows.contains(&model.chosen), "{to:?}: {rows:?}");
        assert_eq!(model.queue(), Some(&name(&format!("queue-{shown:02}"))), "{to:?}");
    }
}

/// A queue with these stored tasks after two reads, with a rate or without.
fn with_tasks(summary: Summary, paced: bool) -> Model {
    let mut model = Model::new("sqlite:queues.db", None);
    model.apply(Message::Names(vec![name("mail")]), Duration::ZERO);
    for second in [0, 2] {
        let counts = Counted::all().map(|counted| match (counted, summary.counts.get(counted)) {
            (Counted::EverDone, count) => (counted, count + 10 * second),
            (_, count) => (counted, count),
        });
        let read =
            Summary { at: Micros::new(second * 1_000 * MS), counts: counts.collect(), ..summary.clone() };
        let found = paced.then(|| Scene::new(250 * MS).build());
        let message = Message::Read(name("mail"), found);
        model.apply(
            Message::WithTasks(name("mail"), Ok(Some(Box::new(read))), Box::new(message)),
            Duration::from_secs(second),
        );
    }
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

#[test]
fn stored_tasks_are_a_bar_a_legend_a_rate_and_runs() {
    for (paced, size) in [(false, (80, 24)), (true, (80, 24)), (true, (140, 50))] {
        let shown = lines(&with_tasks(some_tasks(), paced), size);
        has(&shown, &["─ stored tasks ─", "1 worker"]);
        has(&shown, &["rrrrr", "L", "ddddd", "F"]);
        has(&shown, &["r 1,234 ready", "L 3 leased", "d 5,000 done", "F 2 failed"]);
        has(&shown, &["10 ended per second, in the last 2s"]);
        has(&shown, &["host-0", "for 2s", "0 of 9 pages"]);
        assert!(shown.iter().all(|line| !line.contains('\u{1b}')), "{shown:?}");
        let bar = shown.iter().find(|line| line.starts_with("rrr")).unwrap();
        assert_eq!(bar.chars().count(), usize::from(size.0), "{bar}");
    }
}

#[test]
fn a_queue_with_stored_tasks_alone_says_why_nothing_runs() {
    let shown = lines(&with_tasks(some_tasks(), false), (80, 24));
    has(&shown, &["● RUNNING", "8 run", "stored tasks: 1,234 ready"]);
    let nobody = Summary { conditions: vec![Condition::NoWorker], ..some_tasks() };
    has(&lines(&with_tasks(nobody, false), (80, 24)), &["▲ NO WORKER", "no worker is there"]);
    // Also if the queue has a rate for which no process waits.
    let nobody = Summary { conditions: vec![Condition::NoWorker], ..some_tasks() };
    has(&lines(&with_tasks(nobody, true), (80, 24)), &["▲ NO WORKER", "no worker is there"]);
    has(
        &lines(&with_tasks(some_tasks(), true), (100, 40)),
        &["● RUNNING", "8 run", "stored tasks: 1,234 ready"],
    );
}

#[test]
fn stored_tasks_fit_any_screen_and_need_no_colours() {
    let mut many = some_tasks();
    let run = many.runs[0].clone();
    many.runs = (0..300).map(|_| run.clone()).collect();
    let none = tasks(&[]);
    let huge = tasks(&[(Counted::Now(State::Scheduled), 10_000_000), (Counted::Now(State::Blocked), 1)]);
    for summary in [many, none, huge] {
        for paced in [false, true] {
            let model = with_tasks(summary.clone(), paced);
            for width in (0..=120).step_by(7) {
                for height in 0..=40 {
                    lines(&model, (width, height));
                }
            }
            let (shown, coloured) = screen(&model, (100, 30), Theme::Plain);
            assert!(!coloured);
            has(&shown, &["─ stored tasks ─"]);
        }
    }
    let mut many = some_tasks();
    many.runs = (0..300).map(|_| many.runs[0].clone()).collect();
    has(&lines(&with_tasks(many, false), (80, 24)), &["and 2", "more that run"]);
    has(&lines(&with_tasks(tasks(&[]), false), (80, 24)), &["no task is stored"]);
}

#[test]
fn a_task_that_runs_is_marked_opened_and_read() {
    let mut model = with_tasks(some_tasks(), true);
    let ids: Vec<_> = some_tasks().runs.iter().map(|(task, _)| task.id).collect();
    assert_eq!(model.act(Action::Open), Effect::None, "none is marked");
    model.act(Action::Focus);
    has(&lines(&model, (100, 30)), &["▌ host-0", &ids[0].to_string()]);
    model.act(Action::Go(Move::Down));
    let shown = lines(&model, (100, 30));
    has(&shown, &["▌ host-1", &ids[1].to_string()]);
    has(&shown, &["enter open", "esc back"]);
    assert_eq!(model.act(Action::Open), Effect::Open(name("mail"), ids[1]));
    let about = (0..40).map(|n| format!("line {n}\n")).collect();
    let page = TextPage { about, bodies: "payload     {\"to\": \"ada\"}\n".into() };
    model.apply(Message::Opened(Ok(page)), Duration::from_secs(3));
    let shown = lines(&model, (100, 30));
    has(&shown, &["line 0"]);
    has(&shown, &["line 26"]);
    model.act(Action::Go(Move::PageDown));
    model.act(Action::Go(Move::PageDown));
    let shown = lines(&model, (100, 30));
    has(&shown, &["line 39"]);
    has(&shown, &["esc back", "b payload and result"]);
    assert!(shown.iter().all(|line| !line.contains("ada")), "what it is about is hidden unless asked for");
    model.act(Action::Bodies);
    has(&lines(&model, (100, 30)), &["payload", "ada"]);
    for _ in 0..2 {
        assert_eq!(model.act(Action::Back), Effect::None);
    }
    assert!(model.opened.is_none() && model.marked.is_none());
    assert_eq!(model.act(Action::Back), Effect::Quit);
    model.apply(Message::Opened(Err("task 1 cannot be opened: it has ended".into())), Duration::from_secs(4));
    assert!(model.note().is_some_and(|note| note.contains("cannot be opened: it has ended")));
}

#[test]
fn upcoming_tasks_are_shown_below_any_number_of_runs() {
    let mut summary = some_tasks();
    summary.upcoming =
        (0..20).map(|n| Task { priority: n, ..Task::bare(TaskId::named(&format!("next {n}"))) }).collect();
    let ids: Vec<_> = summary.upcoming.iter().map(|task| task.id).collect();
    let shown = lines(&with_tasks(summary.clone(), false), (80, 24));
    has(&shown, &["next", &ids[0].to_string(), "default", "added 2s ago"]);
    has(&shown, &["next", &ids[2].to_string(), "added 2s ago  priority 2"]);
    summary.runs = (0..300)
        .map(|n| {
            let mut run = some_tasks().runs[0].clone();
            run.0.id = TaskId::named(&format!("run {n}"));
            run
        })
        .collect();
    let last_run = summary.runs[299].0.id;
    let mut model = with_tasks(summary, false);
    model.act(Action::Focus);
    let shown = lines(&model, (80, 24));
    has(&shown, &["more that run"]);
    (0..3).for_each(|n| has(&shown, &["next", &ids[n].to_string()]));
    // The marked task is in view.
    (0..299).for_each(|_| _ = model.act(Action::Go(Move::Down)));
    has(&lines(&model, (80, 24)), &["▌ host-0", &last_run.to_string()]);
    model.act(Action::Go(Move::Last));
    has(&lines(&model, (80, 24)), &["▌ next", &ids[19].to_string()]);
    assert_eq!(model.act(Action::Open), Effect::Open(name("mail"), ids[19]));
}

#[test]
fn failures_are_read_like_a_task() {
    let mut none = Model::new("file:queues.json", Some(name("mail")));
    assert_eq!(none.act(Action::Failures), Effect::None, "there are no stored tasks");
    let mut model = with_tasks(some_tasks(), true);
    has(&lines(&model, (80, 24)), &["f failed"]);
    assert_eq!(model.act(Action::Failures), Effect::Failures(name("mail")));
    let page = TextPage { about: "2 failed: refused\n".into(), ..TextPage::default() };
    model.apply(Message::Opened(Ok(page)), Duration::from_secs(3));
    let shown = lines(&model, (80, 24));
    has(&shown, &["2 failed: refused"]);
    has(&shown, &["esc back   ↑↓ scroll"]);
    assert_eq!(model.act(Action::Back), Effect::None);
    assert!(model.opened.is_none());
}

#[test]
fn a_mark_stays_on_its_task_and_leaves_one_that_has_ended() {
    let mut model = with_tasks(some_tasks(), false);
    let ids: Vec<_> = some_tasks().runs.iter().map(|(task, _)| task.id).collect();
    model.act(Action::Focus);
    model.act(Action::Go(Move::Last));
    let mut read = |remaining: &[usize], second: u64| {
        let mut summary = Summary { at: Micros::new(second * 1_000 * MS), ..some_tasks() };
        summary.runs = remaining.iter().map(|&n| some_tasks().runs[n].clone()).collect();
        let message = Box::new(Message::Read(name("mail"), None));
        model.apply(
            Message::WithTasks(name("mail"), Ok(Some(Box::new(summary))), message),
            Duration::from_secs(second),
        );
        model.marked
    };
    assert_eq!(read(&[1, 2], 5), Some(ids[2]));
    assert_eq!(read(&[1], 6), Some(ids[1]));
    assert_eq!(read(&[], 7), None);
}

#[test]
fn a_queue_of_stored_tasks_alone_is_paused_and_resumed() {
    let mut model = with_tasks(some_tasks(), false);
    model.act(Action::Pause);
    assert_eq!(model.act(Action::Yes), Effect::Change(name("mail"), Wanted::Pause));
    let mut paused = with_tasks(
        Summary { conditions: vec![Condition::Paused { since: None, running: 0 }], ..some_tasks() },
        false,
    );
    paused.act(Action::Pause);
    assert_eq!(paused.act(Action::Yes), Effect::Change(name("mail"), Wanted::Resume));
}

#[test]
fn the_list_counts_stored_tasks_and_says_what_is_in_force() {
    let mut model = with_tasks(some_tasks(), true);
    model.apply(Message::Names(vec![name("mail"), name("other"), name("paced")]), Duration::ZERO);
    let paused = Summary { conditions: vec![Condition::Paused { since: None, running: 0 }], ..some_tasks() };
    let read = |queue: &str| Box::new(Message::Read(name(queue), None));
    model.apply(Message::WithTasks(name("other"), Ok(Some(Box::new(paused))), read("other")), Duration::ZERO);
    let refused = Err("the database is damaged".to_owned());
    model.apply(Message::WithTasks(name("paced"), refused, read("paced")), Duration::ZERO);
    let shown = lines(&model, (100, 30));
    let names = |line: &&String, queue: &str| line.chars().take(20).collect::<String>().contains(queue);
    let row = |queue: &str| shown.iter().find(|line| names(line, queue)).unwrap().clone();
    assert!(row("other").contains("1,234") && row("other").contains("paused"), "{}", row("other"));
    assert!(row("paced").contains("unreadable: its stored tasks cann"), "{}", row("paced"));
}
