//! The starts of the timeline by lane: past and upcoming starts of each shard.

use std::collections::{BTreeMap, HashMap};

use interval_queue::{Label, Micros, ShardId};
use ratatui::style::Style;

use super::theme::Theme;
use crate::watch::{forecast::Next, history::History};

/// Time as columns of equal length. Their borders are fixed on the store's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    /// The time of a column: 1/8 s to 1 s, a multiple or a fraction of the interval.
    pub(crate) column: Micros,
    pub(crate) columns: usize,
    /// The column of the present.
    pub(crate) now: usize,
    first: i64,
}

const MIN_COLUMN_MICROS: u64 = 125_000;
const MAX_COLUMN_MICROS: u64 = 1_000_000;

impl Axis {
    pub(crate) fn new(interval: Micros, now: Micros, columns: usize) -> Self {
        let interval = interval.get().max(1);
        let column = match interval {
            ..MIN_COLUMN_MICROS => interval * MIN_COLUMN_MICROS.div_ceil(interval),
            MIN_COLUMN_MICROS..=MAX_COLUMN_MICROS => interval,
            _ => interval / interval.div_ceil(MAX_COLUMN_MICROS),
        };
        let present = columns.saturating_sub(1 + columns / 6);
        let first = i64::try_from(now.get() / column).unwrap_or(0) - i64::try_from(present).unwrap_or(0);
        Self { column: Micros::new(column), columns, now: present, first }
    }

    /// The column of an instant, if it is in view.
    pub(crate) fn column_of(&self, at: Micros) -> Option<usize> {
        let column = i64::try_from(at.get() / self.column.get()).ok()? - self.first;
        usize::try_from(column).ok().filter(|column| *column < self.columns)
    }

    /// Starts per column at the nominal rate, at least one.
    pub(crate) fn nominal(&self, interval: Micros) -> u64 {
        (self.column.get() / interval.get().max(1)).max(1)
    }
}

/// The starts of one shard, or of several that share a lane.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) style: Style,
    /// Starts by column.
    pub(crate) started: Vec<u64>,
    /// Upcoming starts by column.
    pub(crate) next: Vec<u64>,
}

/// All lanes.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    pub(crate) lanes: Vec<Lane>,
    /// Starts of all lanes, by column.
    pub(crate) started: Vec<u64>,
    seen: HashMap<ShardId, u64>,
    styles: HashMap<String, Style>,
}

/// The name of the lane for starts of unseen shards.
const UNSEEN_LANE: &str = "unseen";

impl Lanes {
    /// Makes a lane for each shard, at most `most`. Shards that start once, such as those of `run`,
    /// share a lane by their command.
    pub(crate) fn new(history: &History, next: &[Next], axis: &Axis, most: usize, theme: Theme) -> Self {
        let mut seen: HashMap<ShardId, u64> = HashMap::new();
        let in_view = || {
            let starts = history.starts().iter();
            starts.filter_map(|start| Some((axis.column_of(start.slot)?, start)))
        };
        for who in in_view().filter_map(|(_, start)| start.who.as_ref()) {
            *seen.entry(who.shard.clone()).or_default() += 1;
        }
        let mut found =
            Self { lanes: Vec::new(), started: vec![0; axis.columns], seen, styles: HashMap::new() };
        let mut lanes: BTreeMap<String, Lane> = BTreeMap::new();
        let empty = |name: &str| Lane {
            name: name.to_owned(),
            style: Style::new(),
            started: vec![0; axis.columns],
            next: vec![0; axis.columns],
        };
        for (column, start) in in_view() {
            let name =
                start.who.as_ref().map_or(UNSEEN_LANE.into(), |who| found.name(&who.shard, &who.label));
            lanes.entry(name.clone()).or_insert_with(|| empty(&name)).started[column] += start.count;
            found.started[column] += start.count;
        }
        for next in next {
            let name = found.name(&next.shard, &next.label);
            let lane = lanes.entry(name.clone()).or_insert_with(|| empty(&name));
            if let Some(column) = next.slot.and_then(|slot| axis.column_of(slot)) {
                lane.next[column] += 1;
            }
        }
        // Shards that wait and have not started yet have lanes, too.
        for (n, lane) in lanes.values_mut().enumerate() {
            lane.style = theme.lane(n);
            found.styles.insert(lane.name.clone(), lane.style);
        }
        found.lanes = few(lanes.into_values().collect(), most, empty);
        found
    }

    /// The name of the lane of a shard.
    fn name(&self, shard: &ShardId, label: &Label) -> String {
        let label = label.as_str();
        let once = self.seen.get(shard).is_none_or(|starts| *starts < 2);
        match label.rsplit_once(" pid ") {
            Some((command, pid)) if once && pid.bytes().all(|byte| byte.is_ascii_digit()) => {
                command.to_owned()
            }
            _ if label.is_empty() => shard.as_str().to_owned(),
            _ => label.to_owned(),
        }
    }

    /// The colour of a shard, for every mention of it.
    pub(crate) fn style(&self, shard: &ShardId, label: &Label) -> Style {
        self.styles.get(&self.name(shard, label)).copied().unwrap_or_default()
    }
}

/// Keeps the lanes with the most starts, and merges the others.
fn few(lanes: Vec<Lane>, most: usize, empty: impl Fn(&str) -> Lane) -> Vec<Lane> {
    if lanes.len() <= most {
        return lanes;
    }
    if most == 0 {
        return Vec::new();
    }
    let mut counts: Vec<(u64, usize)> = lanes.iter().map(|lane| lane.started.iter().sum()).zip(0..).collect();
    counts.sort_by_key(|(count, n)| (std::cmp::Reverse(*count), *n));
    let kept: Vec<usize> = counts.iter().take(most - 1).map(|(_, n)| *n).collect();
    let mut rest = empty(&format!("{} others", lanes.len() - kept.len()));
    let mut shown = Vec::new();
    for (n, lane) in lanes.into_iter().enumerate() {
        if kept.contains(&n) {
            shown.push(lane);
        } else {
            let add =
                |to: &mut Vec<u64>, from: &[u64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            add(&mut rest.started, &lane.started);
            add(&mut rest.next, &lane.next);
        }
    }
    shown.push(rest);
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::watch::{forecast::forecast, scene::Scene};

    const MS: u64 = 1000;

    #[test]
    fn a_column_holds_whole_intervals_or_parts_of_one() {
        for (interval, column) in [
            (1, 125_000),
            (10 * MS, 130 * MS),
            (124 * MS, 248 * MS),
            (250 * MS, 250 * MS),
            (1000 * MS, 1000 * MS),
            (3_600_000 * MS, 1000 * MS),
        ] {
            let axis = Axis::new(Micros::new(interval), Micros::new(1_000_000 * MS), 60);
            assert_eq!(axis.column, Micros::new(column));
            assert_eq!(axis.column_of(Micros::new(1_000_000 * MS)), Some(axis.now));
            assert_eq!(axis.column_of(Micros::ZERO), None);
        }
        Axis::new(Micros::new(1), Micros::ZERO, 0);
    }

    fn history() -> History {
        let scene = |at: u64| Scene::new(250 * MS).at(at * MS).free_at(at * MS + 100 * MS);
        let mut history = History::new(
            scene(10_000)
                .ticket(3)
                .current(0)
                .shard("curl pid 7", 1)
                .shard("curl pid 8", 2)
                .shard("web", 3)
                .build(),
            Duration::ZERO,
        );
        history.feed(
            scene(10_500).ticket(4).current(2).shard("web", 3).shard("curl pid 9", 4).build(),
            Duration::ZERO,
        );
        history
    }

    #[test]
    fn shards_that_start_once_share_a_lane_by_their_command() {
        let history = history();
        let now = history.snapshot().at;
        let axis = Axis::new(Micros::new(250 * MS), now, 60);
        let next = forecast(history.snapshot(), now, 10);
        let lanes = Lanes::new(&history, &next, &axis, 5, Theme::Plain);
        let summaries: Vec<_> = lanes
            .lanes
            .iter()
            .map(|lane| (lane.name.as_str(), lane.started.iter().sum::<u64>(), lane.next.iter().sum::<u64>()))
            .collect();
        assert_eq!(summaries, [("curl", 2, 1), ("web", 0, 1)]);
        assert_eq!(lanes.started.iter().sum::<u64>(), 2);
        let one = Lanes::new(&history, &next, &axis, 1, Theme::Plain);
        assert_eq!((one.lanes[0].name.as_str(), one.lanes.len()), ("2 others", 1));
        assert!(Lanes::new(&history, &next, &axis, 0, Theme::Plain).lanes.is_empty());
    }
}
