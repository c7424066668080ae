//! Overlays: the help, a page of text, and the question before a change.

use ratatui::{
    Frame,
    layout::{Constraint, Rect},
    style::Style,
    text::Line,
    widgets::{Block, BorderType, Clear, Padding, Paragraph},
};

use super::{theme::Theme, wrapped_text::paragraphs};
use crate::watch::{
    messages::Wanted,
    model::{Model, Opened},
    queue_state::Tone,
};

const MAX_COLUMNS: u16 = 66;
/// Columns and lines.
const BORDER: (u16, u16) = (4, 2);

const KEYS: [(&str, &str); 9] = [
    ("↑ ↓  k j", "choose a queue; also PgUp, PgDn, Home, End, g, G"),
    ("Tab", "go to the running and next tasks, and back"),
    ("Enter", "open the task"),
    ("b", "show or hide the payload and result of the task"),
    ("f", "show failures, grouped by error text"),
    ("p", "pause or resume the queue for all, after a question"),
    ("?  h", "show or hide this help"),
    ("q  Esc", "quit; also Ctrl-C. Esc goes back first"),
    ("Ctrl-Z", "suspend"),
];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: Theme) {
    if let Some((queue, wanted)) = &model.to_confirm {
        let (verb, effect) = match wanted {
            Wanted::Pause => (
                "Pause",
                "Nothing starts any more, on all hosts, until it is resumed. Running tasks and commands continue.",
            ),
            Wanted::Resume => {
                ("Resume", "Tasks and commands start again within about a second, on all hosts.")
            }
        };
        let question = format!("{verb} {queue}?  y: yes   any other key: no");
        text(frame, area, &[&question, effect], theme.tone(Tone::Waiting));
    } else if let Some(opened) = &model.opened {
        page(frame, area, opened, theme);
    } else if model.help {
        let rows = KEYS.map(|(key, effect)| format!("{key:10}{effect}"));
        text(frame, area, &rows.each_ref().map(String::as_str), Style::new());
    }
}

fn page(frame: &mut Frame<'_>, area: Rect, opened: &Opened, theme: Theme) {
    let keys = match opened.page.bodies.as_str() {
        "" => " esc back   ↑↓ scroll ",
        _ => " esc back   b payload and result   ↑↓ scroll ",
    };
    let block = bordered(Style::new()).title_bottom(Line::styled(keys, theme.dim()));
    let text = opened.text();
    let in_view = text.lines().skip(opened.first_line).take(area.height.into());
    let shown = paragraphs(in_view, area.width.saturating_sub(BORDER.0), Style::new());
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

/// In the middle, without borders if there is no room.
fn text(frame: &mut Frame<'_>, area: Rect, texts: &[&str], style: Style) {
    let width = area.width.min(MAX_COLUMNS);
    let wrapped = |width: u16| paragraphs(texts.iter().copied(), width, Style::new());
    let height = |lines: &[Line<'_>]| u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let mut lines = wrapped(width.saturating_sub(BORDER.0));
    let mut wanted = height(&lines).saturating_add(BORDER.1);
    let mut block = bordered(style);
    if wanted > area.height {
        lines = wrapped(width);
        (block, wanted) = (Block::new(), height(&lines));
    }
    let area = area.centered(Constraint::Length(width), Constraint::Length(wanted.min(area.height)));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn bordered(style: Style) -> Block<'static> {
    Block::bordered().border_type(BorderType::Rounded).border_style(style).padding(Padding::horizontal(1))
}
