//! The panels: what the model knows, in rows.

use std::time::Duration;

use interval_queue::{Micros, QueueName, task_contract::State};
use interval_queue_documents::words::{about, line, many, number};
use ratatui::{
    layout::Constraint::{Fill, Length, Max},
    style::Style,
    text::Line,
    widgets::{Cell, Row},
};

use super::{panel::Panel, theme::Theme};
use crate::{
    rate::rate,
    tasks::{run_line, upcoming_line},
    watch::{model::Model, queue_state::Tone},
};

/// Queues farther from the chosen one are not in view.
const MAX_ROWS: usize = 256;
/// A lease that ends sooner is marked.
const SHORT_LEASE: Duration = Duration::from_secs(2);

fn numeric(text: impl Into<String>) -> Cell<'static> {
    Cell::new(Line::from(text.into()).right_aligned())
}

fn optional(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

pub(super) fn queues(model: &Model, theme: Theme) -> Panel {
    let row = |(n, name): (usize, &QueueName)| {
        if n.abs_diff(model.chosen) > MAX_ROWS {
            return Row::new([Cell::default()]);
        }
        let state = model.state_of(name);
        let interval = state.and_then(|state| state.rate.as_ref()).map(|rate| rate.record.meters.longest());
        let waiting = state.and_then(|state| state.rate.as_ref()).map(|rate| {
            let record = &rate.record;
            number(record.ticket.behind(record.current))
        });
        let left = state.and_then(|state| state.tasks.as_ref()).map(|tasks| number(tasks.left()));
        let status = state.map(|state| state.status(name));
        let tone = status.as_ref().map_or(Style::new(), |status| theme.tone(status.tone));
        let status = status.map(|status| format!("{} {}", status.tone.sign(), status.text));
        Row::new([
            Cell::new(line(name.as_str())),
            numeric(optional(interval.map(rate))),
            numeric(optional(waiting)),
            numeric(optional(left)),
            Cell::new(optional(status)).style(tone),
        ])
    };
    let columns =
        [("QUEUE", Fill(2)), ("RATE", Max(16)), ("JOBS", Max(8)), ("TASKS", Max(8)), ("STATUS", Fill(4))];
    let mut panel = Panel::new(
        "queues",
        number(model.names.len() as u64),
        &columns,
        model.names.iter().enumerate().map(row).collect(),
    );
    panel.position = model.queue_rows;
    panel.position.select(Some(model.chosen));
    panel
}

pub(super) fn starts(model: &Model, theme: Theme) -> Option<Panel> {
    let state = model.state().filter(|state| state.rate.is_some())?;
    let rows: Vec<_> = state
        .order_of_starts()
        .into_iter()
        .map(|shard| {
            let lease = match shard.lease_left {
                Micros::ZERO => Line::styled("ended", theme.tone(Tone::Bad)),
                left if left.to_duration() < SHORT_LEASE => {
                    Line::styled(about(left), theme.tone(Tone::Waiting))
                }
                left => Line::styled(about(left), theme.dim()),
            };
            Row::new([
                numeric(optional(shard.ticket.map(number))),
                Cell::new(line(&shard.label)),
                numeric(starts_in(shard.starts_in)),
                numeric(shard.running.to_string()),
                Cell::new(lease.right_aligned()),
            ])
        })
        .collect();
    let columns = [
        ("TICKET", Max(10)),
        ("SHARD", Fill(1)),
        ("STARTS IN", Length(9)),
        ("RUNNING", Length(7)),
        ("LEASE LEFT", Length(10)),
    ];
    let note = if rows.is_empty() {
        "none waits or runs".into()
    } else {
        many(rows.len() as u64, "shard", "shards")
    };
    Some(Panel::new("order of starts", note, &columns, rows))
}

pub(super) fn starts_in(time: Option<Micros>) -> String {
    match time {
        None => "-".into(),
        Some(Micros::ZERO) => "now".into(),
        Some(left) => about(left),
    }
}

pub(super) fn counts(model: &Model, theme: Theme) -> Option<Panel> {
    let tasks = model.tasks()?;
    let some = State::ALL.into_iter().map(|state| (state, tasks.in_state(state)));
    let rows = some.filter(|(_, count)| *count > 0).map(|(state, count)| {
        let tone = match state {
            State::Leased => Tone::Good,
            State::Failed => Tone::Bad,
            State::Ready | State::Blocked => Tone::Waiting,
            _ => Tone::Idle,
        };
        Row::new([Cell::new(state.to_string()).style(theme.tone(tone)), numeric(number(count))])
    });
    let oldest = tasks.oldest.map(|oldest| format!("a task has been ready for {}", about(oldest)));
    let ended = tasks.share().map(|share| format!("ended: {share}"));
    let facts =
        model.history().and_then(|history| history.ended(tasks)).into_iter().chain(ended).chain(oldest);
    let facts = facts.map(|fact| Row::new([Cell::new(Line::styled(fact, theme.dim())).column_span(3)]));
    let rows = rows.chain(facts).collect();
    Some(Panel::new("tasks", "", &[("STATE", Length(9)), ("TASKS", Length(12)), ("", Fill(1))], rows))
}

pub(super) fn tasks(model: &Model) -> Option<Panel> {
    let tasks = model.tasks()?;
    let runs = tasks.runs.iter().map(|(task, label)| (label.clone(), run_line(task, tasks.at)));
    let upcoming = tasks.upcoming.iter().map(|task| ("next".to_owned(), upcoming_line(task, tasks.at)));
    let rows: Vec<_> = runs.chain(upcoming).map(|(worker, task)| Row::new([worker, task])).collect();
    let columns = [("WORKER", Fill(1)), ("TASK", Fill(4))];
    let note = format!("{} run", number(tasks.running()));
    let mut panel = Panel::new("running and next", note, &columns, rows);
    panel.position = model.task_rows;
    panel.position.select(model.marked_row());
    Some(panel).filter(|panel| !panel.rows.is_empty())
}

pub(super) fn failures(model: &Model, theme: Theme) -> Option<Panel> {
    let failures = model.details()?.failures.as_ref()?;
    let rows: Vec<_> = failures
        .groups
        .iter()
        .map(|group| {
            let error = if group.text.is_empty() { "(no text)".into() } else { line(&group.text) };
            Row::new([
                numeric(number(group.count)).style(theme.tone(Tone::Bad)),
                numeric(number(group.retrying)),
                Cell::new(error),
            ])
        })
        .collect();
    let note = if failures.ungrouped > 0 { "and other errors" } else { "" };
    let columns = [("FAILED", Length(6)), ("RETRYING", Length(8)), ("ERROR", Fill(1))];
    Some(Panel::new("failures", note, &columns, rows)).filter(|panel| !panel.rows.is_empty())
}

pub(super) fn workers(model: &Model, theme: Theme) -> Option<Panel> {
    let workers = &model.details()?.workers;
    let row = |worker: &interval_queue_documents::Worker| {
        let lease = match worker.lease_left_us {
            Some(left) => Line::styled(about(Micros::new(left)), theme.dim()),
            None => Line::styled("ended", theme.tone(Tone::Bad)),
        };
        Row::new([
            Cell::new(line(&worker.label)),
            numeric(number(worker.holds.len() as u64)),
            Cell::new(line(&worker.kinds.join(", "))),
            Cell::new(lease.right_aligned()),
        ])
    };
    let rows = workers.iter().map(row).collect();
    let columns = [("WORKER", Fill(1)), ("RUNS", Length(5)), ("SERVES", Fill(1)), ("LEASE LEFT", Length(10))];
    let live = model.tasks().map_or(0, |tasks| tasks.workers);
    Some(Panel::new("workers", format!("{} live", number(live)), &columns, rows))
}
