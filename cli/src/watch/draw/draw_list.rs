//! The queues of the store, one per row.

use indicatif::HumanCount;
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use super::{
    draw_text::{fit, left, put, right, row},
    theme::{Theme, sign},
};
use crate::watch::{history::Waiting, messages::Known, model::Model};
use interval_queue_documents::words::show;

/// The first row such that the chosen queue is in view. Scrolls no further than necessary.
pub(crate) fn first_row(model: &Model, rows: usize) -> usize {
    let last = model.names.len().saturating_sub(rows);
    let lowest = (model.chosen + 1).saturating_sub(rows);
    model.first_row.clamp(lowest, model.chosen.max(lowest)).min(last)
}

pub(crate) fn draw(buffer: &mut Buffer, area: Rect, model: &Model, theme: Theme) {
    let width = usize::from(area.width);
    let wide = width >= 60;
    let name_width = (width / 3).clamp(8, 36);
    let columns = |name: &str, every: &str, waiting: &str, running: &str| {
        let numbers = if wide {
            format!("{}{}{}", right(every, 9), right(waiting, 10), right(running, 10))
        } else {
            right(waiting, 9)
        };
        format!("{}{numbers}  ", left(name, name_width))
    };
    let rows = usize::from(area.height.saturating_sub(1));
    let place = format!("STATUS  {} of {}", model.chosen + 1, model.names.len());
    let heading = columns("  QUEUE", "EVERY", "WAITING", "RUNNING") + &place;
    put(buffer, row(area, 0), Span::styled(heading, theme.heading()));
    let first = first_row(model, rows);
    for ((n, queue), y) in model.names.iter().enumerate().skip(first).take(rows).zip(1..) {
        let chosen = n == model.chosen;
        let known = model.known(queue);
        let (every, waiting, running) = match known {
            Some(Known::Queue(history)) => {
                let snapshot = history.snapshot();
                let limit = snapshot.record.max_running;
                let running = limit.map_or("-".into(), |limit| format!("{}/{limit}", snapshot.running()));
                (show(snapshot.record.interval()), snapshot.outstanding().to_string(), running)
            }
            _ => Default::default(),
        };
        // Counts all stored tasks, whether they wait for a ticket or not.
        let (waiting, running) = match model.summary(queue) {
            Some(tasks) => {
                let running = tasks.running();
                (HumanCount(tasks.left() - running).to_string(), HumanCount(running).to_string())
            }
            None => (waiting, running),
        };
        let mark = if chosen { "▌ " } else { "  " };
        let style = if chosen { theme.strong() } else { ratatui::style::Style::new() };
        let cells =
            columns(&format!("{mark}{}", queue.as_str()), &every.replace(' ', ""), &waiting, &running);
        let reason = model.reason_of(queue);
        let status = match known {
            None => Span::styled("…", theme.dim()),
            Some(_) => {
                let room = width.saturating_sub(textwrap::core::display_width(&cells));
                let text = format!("{} {}: {}", sign(reason.tone), reason.word.to_lowercase(), reason.text);
                // Without colour during an outage: the row is old.
                let style = if model.outage.is_some() { theme.dim() } else { theme.tone(reason.tone) };
                Span::styled(fit(&text, room), style)
            }
        };
        put(buffer, row(area, y), Line::from(vec![Span::styled(cells, style), status]));
    }
}
