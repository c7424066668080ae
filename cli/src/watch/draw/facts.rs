//! The title, the reason, and the numbers of the chosen queue.

use std::time::Duration;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};
use textwrap::core::display_width;

use super::{
    draw_text::{fit, lines, put, row},
    theme::{Theme, sign},
};
use crate::{
    rate::{in_unit, pace, rate},
    watch::{
        history::{History, Rate, Waiting},
        model::Model,
        reason::{Reason, Tone, span},
    },
};
use interval_queue_documents::words::show;

/// Data older than this is marked with its age.
const STALE_AGE: Duration = Duration::from_secs(2);

/// Draws the left and the right text of a line. The left one is cut if both do not fit.
pub(crate) fn ends(buffer: &mut Buffer, area: Rect, left: (&str, Style), right: (&str, Style)) {
    let width = usize::from(area.width);
    let right_width = display_width(right.0).min(width);
    let room = width.saturating_sub(right_width + 1);
    let left_text = fit(left.0, if right.0.is_empty() { width } else { room });
    let gap = width.saturating_sub(display_width(&left_text) + right_width);
    put(
        buffer,
        area,
        Line::from(vec![
            Span::styled(left_text, left.1),
            Span::raw(" ".repeat(gap)),
            Span::styled(fit(right.0, width), right.1),
        ]),
    );
}

/// Draws the reason in at most `most` lines. Returns the number of lines.
pub(crate) fn reason(buffer: &mut Buffer, area: Rect, reason: &Reason, most: u16, theme: Theme) -> u16 {
    let width = usize::from(area.width);
    let chip = fit(&format!(" {} {} ", sign(reason.tone), reason.word), width);
    let indent = display_width(&chip) + 1;
    // On a narrow screen the word has a line of its own.
    let (first, indent) = if indent + 12 > width && most > 1 { (1, 0) } else { (0, indent) };
    let text = lines(&reason.text, width, indent, usize::from(most.min(area.height) - first.min(most)));
    let style = theme.tone(reason.tone).patch(theme.strong());
    put(buffer, row(area, 0), Span::styled(chip, theme.chip(reason.tone)));
    for (line, y) in text.iter().zip(first..) {
        let skip = if y == 0 { indent } else { 0 };
        let area = row(area, y);
        let skip = u16::try_from(skip).unwrap_or(u16::MAX).min(area.width);
        put(
            buffer,
            Rect { x: area.x + skip, width: area.width - skip, ..area },
            Span::styled(line.clone(), style),
        );
    }
    (first + u16::try_from(text.len()).unwrap_or(0)).max(1)
}

/// As [`rate_text`], without its time.
fn short_rate_text(rate: Option<Rate>, history: &History) -> String {
    let text = rate_text(rate, history);
    text.split_once(", in ").map_or(text.clone(), |(short, _)| short.to_owned())
}

/// Formats the achieved rate and the nominal rate.
pub(crate) fn rate_text(rate: Option<Rate>, history: &History) -> String {
    let interval = history.snapshot().record.meters.longest();
    let Some(rate) = rate else { return "not known yet".into() };
    let achieved = in_unit(interval, rate.share());
    format!("{achieved} of {}, {:.0}%, in {}", self::rate(interval), rate.share() * 100.0, show(rate.over))
}

/// Draws the numbers, three per line if there is room.
pub(crate) fn numbers(buffer: &mut Buffer, area: Rect, history: &History, theme: Theme) {
    let snapshot = history.snapshot();
    let record = &snapshot.record;
    let width = usize::from(area.width);
    let key = |name: &str| Span::styled(format!("{name:9}"), theme.dim());
    let pace = pace(&record.meters.rates());
    let achieved = history.rate();
    let running = match record.max_running {
        Some(limit) => format!("{} of {limit}", snapshot.running()),
        None => "not counted".into(),
    };
    let full = record.max_running.is_some_and(|limit| snapshot.running() >= u64::from(limit));
    let waiting = snapshot.tickets();
    let tickets = format!(" ({} taken, current {})", record.ticket, record.current);
    let share = achieved.map_or(0.0, |rate| rate.share());
    let bar = |cells: usize| {
        let filled = (share * cells as f64).round().clamp(0.0, cells as f64) as usize;
        let style = theme.tone(if achieved.is_some() { Tone::Good } else { Tone::Idle });
        [Span::styled("━".repeat(filled), style), Span::styled("─".repeat(cells - filled), theme.dim())]
    };
    let running_style = theme.tone(if full { Tone::Waiting } else { Tone::Idle });
    if width >= 76 {
        let half = width / 2;
        let right = [
            vec![key("running"), Span::styled(running, running_style)],
            vec![key("waiting"), Span::raw(waiting)],
        ];
        let widest = right.iter().map(|line| Line::from(line.clone()).width()).max().unwrap_or(0);
        // Parts that do not fit are left out as a whole: first the bar, then the time.
        let (whole, short) = (rate_text(achieved, history), short_rate_text(achieved, history));
        let mut texts = [(10, whole.as_str()), (0, &whole), (0, &short)].into_iter().map(|(cells, text)| {
            let gap = if cells > 0 { " " } else { "" };
            [vec![key("achieved")], bar(cells).to_vec(), vec![Span::raw(format!("{gap}{text}"))]].concat()
        });
        let fits = |text: &Vec<Span<'_>>| Line::from(text.clone()).width() + 2 + widest <= width;
        let achieved = texts.find(fits).unwrap_or_else(|| vec![key("achieved"), Span::raw(short.clone())]);
        let [running, waiting] = right;
        let halves = [(vec![key("rate"), Span::raw(pace)], running), (achieved, waiting)];
        // The right halves begin after the longest left half.
        let longest = halves.iter().map(|(left, _)| Line::from(left.clone()).width()).max().unwrap_or(0);
        let begin = half.min(width.saturating_sub(widest)).max(longest + 2);
        let begin = u16::try_from(begin).unwrap_or(u16::MAX).min(area.width);
        for ((left, mut right), y) in halves.into_iter().zip(0..) {
            let area = row(area, y);
            let used = begin + u16::try_from(Line::from(right.clone()).width()).unwrap_or(u16::MAX);
            if y == 1 && usize::from(used) + display_width(&tickets) <= width {
                right.push(Span::styled(tickets.clone(), theme.dim()));
            }
            put(buffer, Rect { width: begin.saturating_sub(1), ..area }, Line::from(left));
            put(buffer, Rect { x: area.x + begin, width: area.width - begin, ..area }, Line::from(right));
        }
        return;
    }
    let all = [
        Line::from(vec![key("rate"), Span::raw(pace)]),
        Line::from(vec![key("achieved"), Span::raw(rate_text(achieved, history))]),
        Line::from(vec![
            key("waiting"),
            Span::raw(waiting),
            Span::styled("   running ", theme.dim()),
            Span::styled(running, running_style),
        ]),
    ];
    for (line, y) in all.into_iter().zip(0..area.height) {
        put(buffer, row(area, y), line);
    }
}

/// Number of lines of the numbers.
pub(crate) fn number_lines(width: u16) -> u16 {
    if width >= 76 { 2 } else { 3 }
}

/// Draws the title.
pub(crate) fn title(buffer: &mut Buffer, area: Rect, model: &Model, theme: Theme) {
    let queue = match (model.queue(), model.names.len()) {
        (None, _) => "no queue".to_owned(),
        (Some(queue), 0 | 1) => queue.as_str().to_owned(),
        (Some(queue), count) => format!("{}  ({} of {count})", queue.as_str(), model.chosen + 1),
    };
    let age = model.history().map(|history| history.age(model.now)).filter(|age| *age > STALE_AGE);
    let age = age.map_or(String::new(), |age| format!("read {} ago  ", span(age)));
    let place = fit(&model.place, usize::from(area.width) / 2);
    ends(buffer, area, (&queue, theme.strong()), (&(age + &place), theme.dim()));
}
