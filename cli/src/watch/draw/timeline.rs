//! The starts over time: a bar for all, a lane for each shard, and upcoming slots to the right of
//! now.

use interval_queue::Micros;
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};
use textwrap::core::display_width;

use super::{
    draw_text::{left, put, row, sign},
    lanes::{Axis, Lanes},
    theme::Theme,
};
use crate::watch::{history::History, reason::Tone};

const LEVELS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// Minimum columns between marks on the axis.
const MIN_MARK_COLUMNS: u64 = 9;
const MARK_SECONDS: [u64; 12] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
/// Maximum columns of the names of lanes.
const MAX_NAME_COLUMNS: usize = 18;

/// Columns for the names of lanes, out of `width`.
pub(crate) fn margin(history: &History, width: u16) -> u16 {
    let shards = history.snapshot().record.shards.values().map(|presence| presence.label.as_str());
    let started = history.starts().iter().rev().take(64).filter_map(|start| start.who.as_ref());
    let names = shards.chain(started.map(|who| who.label.as_str()));
    let widest = names.take(200).map(|name| display_width(name.split(" pid ").next().unwrap_or(name))).max();
    let widest = widest.unwrap_or(0).clamp(10, MAX_NAME_COLUMNS).min(usize::from(width) / 4);
    u16::try_from(widest).unwrap_or(0) + 1
}

/// The rows of an area. The axis takes one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) bars: u16,
    pub(crate) lanes: u16,
}

impl Rows {
    /// Maximum lanes for a height, with a bar above them.
    pub(crate) fn most_lanes(height: u16) -> u16 {
        height.saturating_sub(2)
    }

    /// Bars get up to four rows if a column has several slots: only then do they show more than a
    /// lane.
    pub(crate) fn of(height: u16, lanes: usize, nominal: u64) -> Self {
        let rest = height.saturating_sub(1);
        let lanes = u16::try_from(lanes).unwrap_or(u16::MAX).min(rest.saturating_sub(1));
        let bars = rest.saturating_sub(lanes).min(if nominal > 1 { 4 } else { 1 });
        Self { bars, lanes }
    }

    pub(crate) fn height(self) -> u16 {
        self.bars + self.lanes + 1
    }
}

pub(crate) fn draw(
    buffer: &mut Buffer,
    area: Rect,
    margin: u16,
    history: &History,
    lanes: &Lanes,
    axis: &Axis,
    theme: Theme,
) {
    let plot = Rect { x: area.x + margin, width: area.width.saturating_sub(margin), ..area };
    let interval = history.snapshot().record.interval();
    let nominal = axis.nominal(interval);
    let rows = Rows::of(area.height, lanes.lanes.len(), nominal);
    let name = |buffer: &mut Buffer, y: u16, name: &str, style| {
        let text = left(name, usize::from(margin).saturating_sub(1));
        let area = Rect { width: margin, ..row(area, y) };
        put(buffer, area, Span::styled(text, style));
    };
    let (since, until) = (axis.column_of(history.since()), axis.column_of(history.snapshot().at));
    // The time before the first read and after the last one is unknown.
    let unseen =
        |column: usize| since.is_some_and(|since| column < since) || until.is_none_or(|until| column > until);
    let empty = |buffer: &mut Buffer, column: usize, y: u16| {
        let (mark, style) = match column {
            now if now == axis.now => ("│", theme.dim()),
            past if past < axis.now && !unseen(past) => ("·", theme.dim()),
            _ => return,
        };
        sign(buffer, plot, x(column), y, mark, style);
    };

    // The full height of the bars is the nominal rate, or the maximum above it.
    let top = lanes.started.iter().copied().max().unwrap_or(0).max(nominal);
    for (column, count) in lanes.started.iter().enumerate() {
        let eighths = (count * 8 * u64::from(rows.bars)).div_ceil(top);
        for y in 0..rows.bars {
            let below = u64::from(rows.bars - 1 - y) * 8;
            match eighths.saturating_sub(below).min(8) {
                0 if y + 1 == rows.bars || column == axis.now => empty(buffer, column, y),
                0 => {}
                level => {
                    let style = theme.tone(Tone::Good);
                    sign(buffer, plot, x(column), y, LEVELS[usize::try_from(level - 1).unwrap_or(7)], style);
                }
            }
        }
    }
    if rows.bars > 0 {
        name(buffer, rows.bars - 1, "all", theme.strong());
    }

    for (lane, y) in lanes.lanes.iter().zip(rows.bars..rows.bars + rows.lanes) {
        name(buffer, y, &lane.name, lane.style);
        for (column, (count, next)) in lane.started.iter().zip(&lane.next).enumerate() {
            let mark = match (count, next) {
                (0, 0) => {
                    empty(buffer, column, y);
                    continue;
                }
                (0, _) => "□",
                (1.., _) if nominal <= 1 => "■",
                (count, _) => {
                    let level = (count * 8).div_ceil(nominal).clamp(1, 8);
                    LEVELS[usize::try_from(level - 1).unwrap_or(7)]
                }
            };
            sign(buffer, plot, x(column), y, mark, lane.style);
        }
    }
    scale(buffer, plot, area.height.saturating_sub(1), axis, theme);
}

fn x(column: usize) -> u16 {
    u16::try_from(column).unwrap_or(u16::MAX)
}

/// Draws the axis: past times, `now`, and future times.
fn scale(buffer: &mut Buffer, plot: Rect, y: u16, axis: &Axis, theme: Theme) {
    let column = axis.column.get().max(1);
    let step =
        MARK_SECONDS.into_iter().find(|step| step * 1_000_000 / column >= MIN_MARK_COLUMNS).unwrap_or(3600);
    let put_at = |buffer: &mut Buffer, column: usize, text: &str| {
        let width = display_width(text);
        // The last letter of a past time, and the first letter of a future time, mark the instant.
        let begin = if text.starts_with('+') { Some(column) } else { (column + 1).checked_sub(width) };
        if let Some(begin) = begin.filter(|begin| begin + width <= axis.columns) {
            let area = Rect { x: plot.x + x(begin), width: x(width), ..row(plot, y) };
            put(buffer, area, Span::styled(text.to_owned(), theme.dim()));
        }
    };
    for n in 1.. {
        let seconds = n * step;
        let distance = usize::try_from(seconds * 1_000_000 / column).unwrap_or(usize::MAX);
        let (past, future) = (axis.now.checked_sub(distance), axis.now.checked_add(distance));
        let text = ago(seconds);
        if let Some(past) = past {
            put_at(buffer, past, &format!("-{text}"));
        }
        match future.filter(|future| *future < axis.columns) {
            Some(future) => put_at(buffer, future, &format!("+{text}")),
            None if past.is_none() => break,
            None => {}
        }
    }
    put_at(buffer, axis.now, "now");
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        60..3600 => format!("{}m{:02}", seconds / 60, seconds % 60),
        _ => format!("{}h", seconds / 3600),
    }
}

/// The heading with the duration of a column.
pub(crate) fn heading(axis: &Axis, interval: Micros) -> Line<'static> {
    let column = interval_queue_documents::words::show(axis.column);
    Line::from(match axis.nominal(interval) {
        1 if axis.column < interval => format!("a column is {column}"),
        1 => format!("a column is {column}, one slot"),
        slots => format!("a column is {column}, {slots} slots"),
    })
}
