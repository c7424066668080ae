//! The head of the screen: the status, the rate limit, the achieved rate and the starts.

use interval_queue_documents::words::show;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    symbols,
    text::{Line, Span},
    widgets::{Block, LineGauge, Paragraph, RenderDirection, Sparkline},
};

use super::{theme::Theme, wrapped_text::paragraph};
use crate::{
    rate::{in_unit, pace, rate},
    watch::{history::Starts, model::Model, queue_state::Tone},
};

const MAX_STATUS_LINES: usize = 3;
/// Includes their title.
const STARTS_LINES: u16 = 4;
/// For a queue without tasks, and with them.
const MIN_LINES_FOR_STARTS: [u16; 2] = [16, 24];

/// Returns the area below.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: Theme) -> Rect {
    let status = model.status();
    let chip = format!(" {} {} ", status.tone.sign(), status.word);
    let style = theme.tone(status.tone).patch(theme.strong());
    let text = format!(" {}", status.text);
    let mut text = paragraph(Span::styled(chip, theme.chip(status.tone)), &text, area.width, style);
    text.truncate(MAX_STATUS_LINES);
    let limit = model.state().and_then(|state| state.rate.as_ref());
    let starts = model.history().and_then(|history| history.starts()).filter(|_| limit.is_some());
    let (of_limit, of_gauge) = (u16::from(limit.is_some()) * 2, u16::from(starts.is_some()));
    let least = MIN_LINES_FOR_STARTS[usize::from(model.tasks().is_some())];
    let of_starts = if starts.is_some() && area.height >= least { STARTS_LINES } else { 0 };
    let [at_status, at_limit, at_gauge, at_starts, below] = Layout::vertical([
        Constraint::Length(text.len() as u16),
        Constraint::Length(of_limit),
        Constraint::Length(of_gauge),
        Constraint::Length(of_starts),
        Constraint::Fill(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(text), at_status);
    if let Some(limit) = limit {
        let key = |key: &'static str| Span::styled(key, theme.dim());
        let rates = Line::from(vec![key("rate     "), Span::raw(pace(&limit.record.meters.rates()))]);
        let facts = Line::from(vec![key("jobs     "), Span::raw(model.facts().unwrap_or_default())]);
        frame.render_widget(Paragraph::new(vec![rates, facts]), at_limit);
    }
    if let (Some(starts), Some(limit)) = (starts, limit) {
        let longest = limit.record.meters.longest();
        let achieved = match starts.share {
            Some(share) => format!("achieved {} of {}", in_unit(longest, share), rate(longest)),
            None => "achieved: not known yet".into(),
        };
        let gauge = LineGauge::default()
            .ratio(starts.share.unwrap_or(0.0).clamp(0.0, 1.0))
            .label(achieved)
            .filled_symbol(symbols::line::THICK_HORIZONTAL)
            .unfilled_symbol(symbols::line::HORIZONTAL)
            .filled_style(theme.tone(Tone::Good))
            .unfilled_style(theme.dim());
        frame.render_widget(gauge, at_gauge);
        frame.render_widget(sparkline(&starts, theme), at_starts);
    }
    below
}

/// The newest at the right. The full height is the rate limit, or the maximum above it.
fn sparkline(starts: &Starts, theme: Theme) -> Sparkline<'_> {
    let column = format!(" a column is {} ", show(starts.column));
    let block = Block::new()
        .title(Line::styled("starts", theme.strong()))
        .title(Line::styled(column, theme.dim()).right_aligned());
    let most = starts.columns.iter().copied().max().unwrap_or(0).max(starts.nominal);
    Sparkline::default()
        .data(&starts.columns)
        .max(most)
        .direction(RenderDirection::RightToLeft)
        .style(theme.tone(Tone::Good))
        .block(block)
}
