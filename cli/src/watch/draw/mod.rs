//! Draws the model with the widgets of `ratatui`. The drawing depends only on the model and the
//! size; it leaves the scroll positions in the model.

mod head;
mod overlay;
mod panel;
mod panels;
mod theme;
mod wrapped_text;

use std::time::Duration;

use interval_queue_documents::words::{about, line};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::Style,
    text::Line,
    widgets::Paragraph,
};

pub(crate) use self::theme::Theme;
use self::{
    panel::{Panel, draw_bands},
    wrapped_text::paragraphs,
};
use super::{model::Model, queue_state::Tone};
use crate::tasks::Summary;

/// A smaller screen has no table.
const MIN_SIZE: (u16, u16) = (40, 10);
/// With fewer lines the queues are not listed.
const MIN_LINES_FOR_LIST: u16 = 14;
/// Older data is marked with its age.
const STALE_AGE: Duration = Duration::from_secs(2);

pub(crate) fn draw(frame: &mut Frame<'_>, model: &mut Model, theme: Theme) {
    let area = frame.area();
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        small(frame, area, model, theme);
    } else {
        large(frame, area, model, theme);
    }
    overlay::draw(frame, area, model, theme);
}

/// The queue, its status, and the order of starts or the counts of tasks.
fn small(frame: &mut Frame<'_>, area: Rect, model: &mut Model, theme: Theme) {
    let status = model.status();
    let chip = Line::styled(format!("{} {}", status.tone.sign(), status.word), theme.chip(status.tone));
    let mut text = paragraphs([status.text.as_str()], area.width, theme.tone(status.tone));
    let next: Vec<_> = model.state().into_iter().flat_map(|state| state.order_of_starts()).collect();
    let next = next.iter().filter_map(|shard| {
        let (time, label) = (panels::starts_in(shard.starts_in), line(&shard.label));
        Some(format!("{time} {} {label}", shard.ticket?))
    });
    let counts = model.tasks().map(Summary::in_words);
    let rest: Vec<_> = next.chain(counts).take(area.height.into()).collect();
    let rest = paragraphs(rest.iter().map(String::as_str), area.width, Style::new());
    let kept = u16::from(!rest.is_empty() && area.height > 3);
    let title = u16::from(area.height > 2);
    text.truncate(area.height.saturating_sub(title + 1 + kept).into());
    let [at_title, at_chip, at_text, at_rest] = Layout::vertical([
        Constraint::Length(title),
        Constraint::Length(1),
        Constraint::Length(text.len() as u16),
        Constraint::Fill(1),
    ])
    .areas(area);
    frame.render_widget(Line::styled(model.title(), theme.strong()), at_title);
    frame.render_widget(chip, at_chip);
    frame.render_widget(Paragraph::new(text), at_text);
    frame.render_widget(Paragraph::new(rest), at_rest);
    (model.page, *model.queue_rows.offset_mut()) = (1, model.chosen);
}

fn large(frame: &mut Frame<'_>, area: Rect, model: &mut Model, theme: Theme) {
    let [at_title, body, at_footer] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]).areas(area);
    let age = model.age().filter(|age| *age > STALE_AGE);
    let age = age.map_or(String::new(), |age| format!("read {} ago  ", about(age)));
    let store = Line::styled(age + &model.store, theme.dim());
    ends(frame, at_title, Line::styled(model.title(), theme.strong()), store);
    footer(frame, at_footer, model, theme);

    let mut rest = body;
    if model.names.len() > 1 && body.height >= MIN_LINES_FOR_LIST {
        let mut queues = panels::queues(model, theme);
        let most = (body.height / 4).max(4);
        let [list, below] =
            Layout::vertical([Constraint::Length(queues.wanted().min(most)), Constraint::Fill(1)])
                .areas(body);
        queues.draw(frame, list, theme);
        (model.page, model.queue_rows) = (Panel::page(list.height), queues.position);
        rest = below;
    } else {
        (model.page, *model.queue_rows.offset_mut()) = (1, model.chosen);
    }
    rest = head::draw(frame, rest, model, theme);
    let (mut starts, mut counts) = (panels::starts(model, theme), panels::counts(model, theme));
    let (mut failures, mut workers) = (panels::failures(model, theme), panels::workers(model, theme));
    let mut tasks = panels::tasks(model);
    let bands = vec![
        [starts.as_mut(), counts.as_mut()],
        [tasks.as_mut(), None],
        [failures.as_mut(), workers.as_mut()],
    ];
    draw_bands(frame, rest, bands, theme);
    if let Some(tasks) = tasks {
        model.task_rows = tasks.position;
    }
}

/// The right text is cut if both do not fit.
fn ends(frame: &mut Frame<'_>, area: Rect, left: Line<'_>, right: Line<'_>) {
    let width = u16::try_from(left.width()).unwrap_or(u16::MAX).saturating_add(2);
    let [at_left, at_right] = Layout::horizontal([Constraint::Max(width), Constraint::Fill(1)]).areas(area);
    frame.render_widget(left, at_left);
    frame.render_widget(right.right_aligned(), at_right);
}

fn footer(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: Theme) {
    let has_tasks = model.tasks().is_some_and(|tasks| !tasks.runs.is_empty() || !tasks.upcoming.is_empty());
    let some = match model.marked {
        Some(_) => vec![(true, "↑↓ task"), (true, "enter open"), (true, "esc back"), (true, "? help")],
        None => vec![
            (model.names.len() > 1, "↑↓ queue"),
            (has_tasks, "tab tasks"),
            (model.tasks().is_some(), "f failed"),
            (true, "p pause"),
            (true, "? help"),
            (true, "q quit"),
        ],
    };
    let keys: Vec<_> = some.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, key)| key).collect();
    let note = Line::styled(model.note().unwrap_or_default().to_owned(), theme.tone(Tone::Waiting));
    ends(frame, area, note, Line::styled(keys.join("  "), theme.dim()));
}

#[cfg(test)]
mod tests;
