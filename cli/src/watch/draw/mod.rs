//! Draws the model. The drawing depends only on the model and the size.

mod draw_list;
mod draw_stored;
mod draw_text;
mod facts;
mod lanes;
mod overlay;
mod tables;
pub(crate) mod theme;
mod timeline;

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use self::{
    draw_text::{put, row},
    facts::ends,
    lanes::{Axis, Lanes},
    theme::Theme,
};
use super::{
    forecast::forecast,
    history::History,
    model::Model,
    reason::{Tone, span},
};

/// Below this size there is no list, no timeline and no table.
const MIN_SIZE: (u16, u16) = (40, 10);
/// From the first height on the queues are listed, from the second on all sections are set apart.
const LIST_HEIGHT: u16 = 16;
const SPACED_HEIGHT: u16 = 28;
/// Minimum columns at which the tables are side by side.
const WIDE_COLUMNS: u16 = 76;
/// Maximum slots that are forecast.
const MAX_SLOTS_AHEAD: usize = 60;

/// The rows of the list, which the model needs for scrolling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub(crate) page: usize,
    pub(crate) first_row: usize,
}

/// Draws the model over the whole screen.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model, theme: Theme) -> Drawn {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let mut drawn = Drawn { page: 1, first_row: model.chosen };
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        small(buffer, area, model, theme);
    } else {
        drawn = large(buffer, area, model, theme);
    }
    overlay::draw(buffer, area, model, theme);
    drawn
}

/// Draws a small screen: as many parts as fit, in the order reason, name, next, rate.
fn small(buffer: &mut Buffer, area: Rect, model: &Model, theme: Theme) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let mut rest = area;
    let history = model.history();
    let achieved = history.and_then(History::rate).map(|rate| format!("{:.0}%", rate.share() * 100.0));
    if area.height >= 3 {
        let name = model.queue().map_or("no queue", |queue| queue.as_str());
        ends(buffer, row(area, 0), (name, theme.strong()), (achieved.as_deref().unwrap_or(""), theme.dim()));
        rest = below(rest, 1);
    }
    let kept_for_next = u16::from(area.height >= 4);
    let used = facts::reason(buffer, rest, &model.reason(), rest.height - kept_for_next, theme);
    rest = below(rest, used);
    let Some(history) = history else { return };
    let now = history.state_now(model.now);
    for (next, y) in forecast(history.snapshot(), now, usize::from(rest.height)).iter().zip(0..) {
        let time = match next.slot {
            Some(slot) if slot > now => span((slot - now).to_duration()),
            Some(_) => "now".into(),
            None => "-".into(),
        };
        let who = format!("{} {}", next.ticket, next.label);
        ends(buffer, row(rest, y), (&who, ratatui::style::Style::new()), (&time, theme.strong()));
    }
}

fn below(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect { y: area.y + rows, height: area.height - rows, ..area }
}

fn large(buffer: &mut Buffer, area: Rect, model: &Model, theme: Theme) -> Drawn {
    let roomy = area.height >= LIST_HEIGHT;
    let gap = u16::from(area.height >= SPACED_HEIGHT);
    facts::title(buffer, row(area, 0), model, theme);
    let mut rest = below(area, 1 + gap);
    rest.height -= 1;
    footer(buffer, row(area, area.height - 1), model, theme);

    let mut drawn = Drawn { page: 1, first_row: model.chosen };
    if roomy && model.names.len() > 1 {
        let most = (rest.height - 8) / 4;
        let rows = usize::from(most.max(2)).min(model.names.len());
        let height = u16::try_from(rows).unwrap_or(most) + 1;
        drawn = Drawn { page: rows, first_row: draw_list::first_row(model, rows) };
        draw_list::draw(buffer, Rect { height, ..rest }, model, theme);
        rest = below(rest, height + 1);
    }
    let used = facts::reason(buffer, rest, &model.reason(), if roomy { 3 } else { 2 }, theme);
    rest = below(rest, used + u16::from(roomy));
    if let Some(tasks) = model.stored() {
        // A queue with a rate keeps half of the screen for it.
        let most = if model.history().is_some() { rest.height / 2 } else { rest.height };
        let height = draw_stored::wanted(tasks).min(most);
        if height >= draw_stored::MIN_LINES {
            draw_stored::draw(buffer, Rect { height, ..rest }, tasks, model, theme);
            rest = below(rest, height + gap);
        }
    }
    if let Some(history) = model.history() {
        let lines = facts::number_lines(rest.width);
        facts::numbers(buffer, Rect { height: lines.min(rest.height), ..rest }, history, theme);
        rest = below(rest, lines + gap);
        below_the_numbers(buffer, rest, model, history, theme);
    }
    drawn
}

/// Draws the timeline and the tables in the remaining area.
fn below_the_numbers(buffer: &mut Buffer, area: Rect, model: &Model, history: &History, theme: Theme) {
    let now = history.state_now(model.now);
    let interval = history.snapshot().record.interval();
    let next = forecast(history.snapshot(), now, MAX_SLOTS_AHEAD);
    let margin = timeline::margin(history, area.width);
    let axis = Axis::new(interval, now, usize::from(area.width - margin));
    let wide = area.width >= WIDE_COLUMNS;
    let rows = tables::shard_rows(history.snapshot()).max(next.len().min(6) + 1);
    let wanted = u16::try_from(rows).unwrap_or(u16::MAX);

    // Without room for both, upcoming starts are more important than past ones.
    let least = if wide { 2 } else { 4 };
    let timeline_height = match area.height {
        0..6 => 0,
        height => (height - least.min(height))
            .min(height * 3 / 5)
            .max(height.saturating_sub(wanted.saturating_add(2))),
    };
    let room = timeline_height.saturating_sub(1);
    let most_lanes = usize::from(timeline::Rows::most_lanes(room));
    let lanes = Lanes::new(history, &next, &axis, most_lanes, theme);
    let mut rest = area;
    if timeline_height >= 4 {
        // Rows that the lanes do not need are used by the tables.
        let rows = timeline::Rows::of(room, lanes.lanes.len(), axis.nominal(interval));
        let height = rows.height() + 1;
        rule(buffer, row(rest, 0), "starts", timeline::heading(&axis, interval), theme);
        let area = Rect { height: height - 1, ..below(rest, 1) };
        timeline::draw(buffer, area, margin, history, &lanes, &axis, theme);
        rest = below(rest, height + u16::from(rest.height >= 14));
    }
    if wide {
        let half = rest.width * 11 / 20;
        let left = Rect { width: half - 2, ..rest };
        let right = Rect { x: rest.x + half, width: rest.width - half, ..rest };
        tables::shards(buffer, left, history, &lanes, model.now, theme);
        tables::slots(buffer, right, history, &next, &lanes, model.now, theme);
    } else {
        let first =
            (rest.height / 2).min(u16::try_from(next.len().max(1)).unwrap_or(u16::MAX).saturating_add(1));
        tables::slots(buffer, Rect { height: first, ..rest }, history, &next, &lanes, model.now, theme);
        tables::shards(buffer, below(rest, first), history, &lanes, model.now, theme);
    }
}

/// Draws a horizontal rule with a text at each end.
fn rule(buffer: &mut Buffer, area: Rect, left: &str, right: Line<'static>, theme: Theme) {
    let width = usize::from(area.width);
    let line = "─".repeat(width.saturating_sub(right.width() + left.len() + 5));
    let mut spans = vec![Span::styled("─ ", theme.dim()), Span::styled(left.to_owned(), theme.strong())];
    spans.push(Span::styled(format!(" {line} "), theme.dim()));
    spans.extend(right.spans.into_iter().map(|span| span.style(theme.dim())));
    put(buffer, area, Line::from(spans));
}

fn footer(buffer: &mut Buffer, area: Rect, model: &Model, theme: Theme) {
    let keys = if model.marked.is_some() {
        "↑↓ task  enter open  esc back  ? help  q quit".to_owned()
    } else {
        let some = [
            (model.names.len() > 1, "↑↓ queue"),
            (model.has_tasks(), "tab tasks"),
            (model.stored().is_some(), "f failed"),
            (true, "p pause  ? help  q quit"),
        ];
        some.into_iter().filter(|(is_some, _)| *is_some).map(|(_, keys)| keys).collect::<Vec<_>>().join("  ")
    };
    match model.note() {
        Some(note) => ends(buffer, area, (note, theme.tone(Tone::Waiting)), (&keys, theme.dim())),
        None => ends(buffer, area, ("", theme.dim()), (&keys, theme.dim())),
    }
}

#[cfg(test)]
mod tests;
