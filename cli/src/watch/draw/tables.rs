//! The tables of shards and of upcoming tickets.

use std::time::Duration;

use interval_queue::Snapshot;
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use super::{
    draw_text::{left, put, right, row},
    lanes::Lanes,
    theme::Theme,
};
use crate::watch::{
    forecast::Next,
    history::History,
    reason::{Tone, span},
};

/// A lease that ends sooner than this is marked.
const SHORT_LEASE: Duration = Duration::from_secs(2);

/// Rows that would show all shards, with the heading.
pub(crate) fn shard_rows(snapshot: &Snapshot) -> usize {
    snapshot.record.shards.len().max(1) + 1
}

pub(crate) fn shards(
    buffer: &mut Buffer,
    area: Rect,
    history: &History,
    lanes: &Lanes,
    now: Duration,
    theme: Theme,
) {
    let snapshot = history.snapshot();
    let width = usize::from(area.width);
    // The columns: label, head, running, lease left; and an id if there is room.
    let id = if width >= 76 { 34 } else { 0 };
    let head = if width >= 30 { 10 } else { 0 };
    let label = width.saturating_sub(head + id + 8 + 11);
    let cells = |cells: [&str; 5]| {
        let [name, shard, ticket, running, lease] = cells;
        let id = if id > 0 { format!("{}  ", left(shard, id - 2)) } else { String::new() };
        (left(name, label), format!("{id}{}{}", right(ticket, head), right(running, 8)), right(lease, 11))
    };
    let (name, middle, lease) = cells(["SHARD", "ID", "HEAD", "RUNNING", "LEASE LEFT"]);
    put(buffer, row(area, 0), Span::styled(name + &middle + &lease, theme.heading()));
    let mut all: Vec<_> = snapshot.record.shards.iter().collect();
    all.sort_by_key(|(id, presence)| (presence.head.is_none(), presence.head, *id));
    if all.is_empty() {
        put(buffer, row(area, 1), Span::styled("none waits or runs", theme.dim()));
    }
    let room = usize::from(area.height.saturating_sub(1));
    let shown = if all.len() > room { room.saturating_sub(1) } else { all.len() };
    for ((shard, presence), y) in all.iter().take(shown).zip(1..) {
        let left = presence.expires_at - snapshot.at;
        let left = left.to_duration().saturating_sub(history.age(now));
        let dead = presence.expires_at <= snapshot.at;
        let lease = if dead { "dead".into() } else { span(left) };
        let ticket = presence.head.map_or("-".into(), |head| head.to_string());
        let running = presence.running.to_string();
        let (name, middle, lease) =
            cells([presence.label.as_str(), shard.as_str(), &ticket, &running, &lease]);
        let tone = if dead {
            theme.tone(Tone::Bad)
        } else if left < SHORT_LEASE {
            theme.tone(Tone::Waiting)
        } else {
            theme.dim()
        };
        let name = Span::styled(name, lanes.style(shard, &presence.label));
        put(buffer, row(area, y), Line::from(vec![name, Span::raw(middle), Span::styled(lease, tone)]));
    }
    if all.len() > shown && room > 0 {
        let more = format!("… {} more", all.len() - shown);
        put(buffer, row(area, area.height - 1), Span::styled(more, theme.dim()));
    }
}

/// Draws the next slots. A slot at an unknown time has a dash.
pub(crate) fn slots(
    buffer: &mut Buffer,
    area: Rect,
    history: &History,
    next: &[Next],
    lanes: &Lanes,
    now: Duration,
    theme: Theme,
) {
    let width = usize::from(area.width);
    let ticket = if width >= 34 { 10 } else { 7 };
    let label = width.saturating_sub(ticket + 1 + 9);
    let heading = format!("{} {}{}", right("NEXT", ticket), left("SHARD", label), right("IN", 9));
    put(buffer, row(area, 0), Span::styled(heading, theme.heading()));
    if next.is_empty() {
        put(buffer, row(area, 1), Span::styled(format!("{} none waits", " ".repeat(ticket)), theme.dim()));
    }
    let state_now = history.state_now(now);
    for (next, y) in next.iter().zip(1..area.height) {
        let time = match next.slot.map(|slot| slot - state_now) {
            None => "-".into(),
            Some(left) if left.get() == 0 => "now".into(),
            Some(left) => span(left.to_duration()),
        };
        let number = right(&next.ticket.to_string(), ticket);
        let mark = if next.late { Span::styled("!", theme.tone(Tone::Waiting)) } else { Span::raw(" ") };
        let name = Span::styled(left(next.label.as_str(), label), lanes.style(&next.shard, &next.label));
        put(
            buffer,
            row(area, y),
            Line::from(vec![Span::raw(number), mark, name, Span::raw(right(&time, 9))]),
        );
    }
}
