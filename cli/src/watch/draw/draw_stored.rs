//! The stored tasks of the chosen queue: counts by state, rate, runs and upcoming tasks.

use indicatif::HumanCount;
use interval_queue::task_contract::{State, TaskId};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Style},
    text::{Line, Span},
};

use super::{
    below,
    draw_text::{fit, put, row},
    rule,
    theme::Theme,
};
use crate::{
    tasks::{run_line, upcoming_line},
    watch::{model::Model, reason::Tone, stored::Stored},
};
use interval_queue_documents::words::about;

/// Minimum lines, without tasks: the rule, the bar, the legend, the rate and the ended tasks.
pub(crate) const MIN_LINES: u16 = 5;
/// Upcoming tasks that are shown below any number of runs.
const MIN_UPCOMING: usize = 3;

/// The letter of a state, which distinguishes it without colours.
fn letter(state: State) -> char {
    match state {
        State::Added => 'a',
        State::Waiting => 'w',
        State::Scheduled => 's',
        State::Blocked => 'k',
        State::Ready => 'r',
        State::Leased => 'L',
        State::Done => 'd',
        State::Failed => 'F',
        State::Cancelled => 'c',
        _ => 'p',
    }
}

fn style(state: State, theme: Theme) -> Style {
    match state {
        State::Leased => theme.tone(Tone::Good),
        State::Failed => theme.tone(Tone::Bad),
        State::Ready | State::Blocked => theme.tone(Tone::Waiting),
        State::Added | State::Waiting | State::Scheduled => theme.part(Color::Cyan),
        _ => theme.dim(),
    }
}

/// Number of lines that would show everything.
pub(crate) fn wanted(stored: &Stored) -> u16 {
    let tasks = stored.last.runs.len() + stored.last.upcoming.len();
    MIN_LINES.saturating_add(u16::try_from(tasks).unwrap_or(u16::MAX))
}

pub(crate) fn draw(buffer: &mut Buffer, area: Rect, stored: &Stored, model: &Model, theme: Theme) {
    if area.height == 0 {
        return;
    }
    let summary = &stored.last;
    let workers = match summary.workers {
        1 => "1 worker".to_owned(),
        many => format!("{} workers", HumanCount(many)),
    };
    rule(buffer, row(area, 0), "stored tasks", Line::from(workers), theme);
    let width = usize::from(area.width);
    let some: Vec<(State, u64)> = State::ALL
        .into_iter()
        .map(|state| (state, summary.in_state(state)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let counts: Vec<u64> = some.iter().map(|(_, count)| *count).collect();
    let cells = shares(&counts, width);
    let part = |((state, _), cells): (&(State, u64), &usize)| {
        Span::styled(letter(*state).to_string().repeat(*cells), style(*state, theme))
    };
    let mut lines = vec![Line::from(some.iter().zip(&cells).map(part).collect::<Vec<_>>())];
    let legend: Vec<String> = some
        .iter()
        .map(|(state, count)| format!("{} {} {state}", letter(*state), HumanCount(*count)))
        .collect();
    let legend = if legend.is_empty() { "no task is stored".into() } else { legend.join("   ") };
    lines.push(Line::from(fit(&legend, width)));
    let rate = stored.rate().unwrap_or_else(|| "rate of ended tasks: not known yet".into());
    let share = summary.share().map(|share| format!("ended: {share}"));
    let oldest = summary.oldest.map(|oldest| format!("a task has been ready for {}", about(oldest)));
    let rest: Vec<String> = share.into_iter().chain(oldest).collect();
    for text in [rate, rest.join("; ")] {
        lines.push(Line::from(Span::styled(fit(&text, width), theme.dim())));
    }
    let now = stored.state_now(model.now);
    let runs: Vec<_> = summary
        .runs
        .iter()
        .map(|(task, label)| {
            let of = if label.is_empty() { String::new() } else { format!("{label}  ") };
            (task.id, format!("{of}{}", run_line(task, now)))
        })
        .collect();
    let next: Vec<_> = summary
        .upcoming
        .iter()
        .map(|task| (task.id, format!("next  {}", upcoming_line(task, now))))
        .collect();
    let rest = below(area, 1);
    let room = usize::from(rest.height).saturating_sub(lines.len());
    let for_next = next.len().min(room.saturating_sub(runs.len()).max(MIN_UPCOMING.min(room / 2)));
    let mut for_runs = runs.len().min(room - for_next);
    let hidden = runs.len() - for_runs;
    if hidden > 0 {
        for_runs = for_runs.saturating_sub(1);
    }
    let task = |(id, text): &(TaskId, String)| {
        let is_marked = model.marked == Some(*id);
        let mark = if is_marked { "▌ " } else { "  " };
        let style = if is_marked { theme.strong() } else { Style::new() };
        Line::from(Span::styled(fit(&format!("{mark}{text}"), width), style))
    };
    lines.extend(in_view(&runs, for_runs, model.marked).iter().map(task));
    if hidden > 0 {
        let more = format!("and {} more that run", runs.len() - for_runs);
        lines.push(Line::from(Span::styled(more, theme.dim())));
    }
    lines.extend(in_view(&next, for_next, model.marked).iter().map(task));
    for (line, y) in lines.into_iter().zip(0..rest.height) {
        put(buffer, row(rest, y), line);
    }
}

/// The tasks in view: the first `room` ones, or those up to the marked one.
fn in_view(tasks: &[(TaskId, String)], room: usize, marked: Option<TaskId>) -> &[(TaskId, String)] {
    let at = tasks.iter().position(|(id, _)| Some(*id) == marked).unwrap_or(0);
    let first = (at + 1).saturating_sub(room).min(tasks.len());
    &tasks[first..tasks.len().min(first + room)]
}

/// Cells of a bar for each part. Each part has at least one cell, and all fill `width`.
fn shares(counts: &[u64], width: usize) -> Vec<usize> {
    let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
    let least = counts.len().min(width);
    let spare = (width - least) as u128;
    let mut seen: u128 = 0;
    let mut given: u128 = 0;
    counts
        .iter()
        .enumerate()
        .map(|(n, &count)| {
            seen += u128::from(count);
            let until = (spare * seen + total / 2) / total.max(1);
            let own = until - given;
            given = until;
            usize::try_from(own).unwrap_or(0) + usize::from(n < least)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_a_cell_and_the_bar_is_full() {
        for (counts, width, expected) in [
            (&[1, 1][..], 10, vec![5, 5]),
            (&[10_000_000, 1, 1], 80, vec![78, 1, 1]),
            (&[u64::MAX, u64::MAX], 40, vec![20, 20]),
            (&[3], 7, vec![7]),
            (&[], 7, vec![]),
            (&[1, 1, 1], 2, vec![1, 1, 0]),
        ] {
            assert_eq!(shares(counts, width), expected, "{counts:?}");
        }
    }
}
