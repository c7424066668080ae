//! Overlays: the help, a page of text, and the question before a change.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::{Block, BorderType, Clear, Padding, Widget},
};
use textwrap::core::display_width;

use super::{
    draw_text::{lines, put, row},
    theme::Theme,
};
use crate::watch::{
    messages::Wanted,
    model::{Model, Opened},
    reason::Tone,
};

/// Maximum lines of one line of a text, such as a payload.
const MAX_TEXT_LINES: usize = 40;

const KEYS: [(&str, &str); 11] = [
    ("↑ ↓  k j", "choose a queue; also PgUp, PgDn, Home, End, g, G"),
    ("Tab", "go to the running and next tasks, and back"),
    ("Enter", "open the task"),
    ("b", "show or hide the payload and result of the task"),
    ("f", "show failures, grouped by error text"),
    ("p", "pause or resume the queue for all, after a question"),
    ("?  h", "show or hide this help"),
    ("q  Esc", "quit; also Ctrl-C. Esc goes back first"),
    ("■  □", "a start, and a slot to come; now is at the right"),
    ("unseen", "processes that came and went between two reads"),
    ("!", "missed its own slot, takes the next free one"),
];

pub(crate) fn draw(buffer: &mut Buffer, area: Rect, model: &Model, theme: Theme) {
    if let Some((queue, wanted)) = &model.to_confirm {
        let (verb, what) = match wanted {
            Wanted::Pause => (
                "Pause",
                "Nothing starts any more, on all hosts, until it is resumed. Running tasks and commands continue.",
            ),
            Wanted::Resume => {
                ("Resume", "Tasks and commands start again within about a second, on all hosts.")
            }
        };
        let question = format!("{verb} {}?  y: yes   any other key: no", queue.as_str());
        text(buffer, area, &[&question, what], theme.tone(Tone::Waiting));
    } else if let Some(opened) = &model.opened {
        page(buffer, area, opened);
    } else if model.help {
        let width = KEYS.iter().map(|(key, _)| display_width(key)).max().unwrap_or(0);
        let inner = frame(buffer, area, 62, KEYS.len(), Style::new());
        for ((key, what), y) in KEYS.iter().zip(0..) {
            let pad = " ".repeat(width - display_width(key) + 2);
            let line = vec![Span::styled(*key, theme.strong()), Span::raw(pad), Span::raw(*what)];
            put(buffer, row(inner, y), Line::from(line));
        }
    }
}

/// Draws a page over the whole screen.
fn page(buffer: &mut Buffer, area: Rect, opened: &Opened) {
    let inner =
        frame(buffer, area, area.width.saturating_sub(4), area.height.saturating_sub(2).into(), Style::new());
    let bodies = opened.shows_bodies.then_some(opened.page.bodies.as_str());
    let keys = match opened.page.bodies.as_str() {
        "" => "esc back   ↑↓ scroll",
        _ => "esc back   b payload and result   ↑↓ scroll",
    };
    let texts = [Some(opened.page.about.as_str()), bodies, Some(keys)];
    let width = usize::from(inner.width);
    let all = texts.into_iter().flatten().flat_map(str::lines);
    let all = all.flat_map(|line| match lines(line, width, 0, MAX_TEXT_LINES) {
        none if none.is_empty() => vec![String::new()],
        some => some,
    });
    for (line, y) in all.skip(opened.first_line).zip(0..inner.height) {
        put(buffer, row(inner, y), Span::raw(line));
    }
}

fn text(buffer: &mut Buffer, area: Rect, paragraphs: &[&str], style: Style) {
    let width = area.width.min(64);
    let wrapped = |width: u16| -> Vec<String> {
        paragraphs.iter().flat_map(|text| lines(text, usize::from(width.saturating_sub(4)), 0, 9)).collect()
    };
    let inner = frame(buffer, area, 60, wrapped(width).len(), style);
    for (line, y) in wrapped(inner.width + 4).iter().zip(0..) {
        put(buffer, row(inner, y), Span::raw(line.clone()));
    }
}

/// Draws an empty frame in the middle. Without room for borders there are none.
fn frame(buffer: &mut Buffer, area: Rect, columns: u16, lines: usize, style: Style) -> Rect {
    let lines = u16::try_from(lines).unwrap_or(u16::MAX);
    let borders = area.height >= lines.saturating_add(2);
    let (across, down) = if borders { (4, 2) } else { (0, 0) };
    let width = area.width.min(columns + across);
    let height = area.height.min(lines.saturating_add(down));
    let outer =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(outer, buffer);
    if !borders {
        return outer;
    }
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(style)
        .padding(Padding::horizontal(1));
    let inner = block.inner(outer);
    block.render(outer, buffer);
    inner
}
