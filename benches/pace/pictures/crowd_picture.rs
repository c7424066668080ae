//! What becomes of accuracy and cost as more shards wait.

use std::{io, ops::Range};

use interval_queue_report::counted;
use plotters::{coord::ranged1d::Ranged, prelude::*};

use super::canvas::{
    self, Area, Drawn, FAINT, GRID, INK, SERIES, Side, label, line, part, rule, size, type_face, units,
};
use crate::{figures::interval, report::Crowd};

const KEY: f64 = 30.0;
const PANEL: f64 = 190.0;
const SPACE: f64 = 24.0;

/// A figure of a crowd, in the unit that its title names.
struct Measure {
    title: &'static str,
    pick: fn(&Crowd) -> Option<f64>,
    /// Seen whatever the figures are.
    at_least: Range<f64>,
}

const MEASURES: [Measure; 4] = [
    Measure { title: "Rate, % of nominal", pick: |crowd| Some(100.0 * crowd.rate), at_least: 95.0..100.0 },
    Measure {
        title: "First percentile of the gaps, % of the interval",
        pick: |crowd| Some(100.0 * crowd.gaps.p1 / crowd.interval as f64),
        at_least: 80.0..100.0,
    },
    Measure {
        title: "Operations on the state per job",
        pick: |crowd| Some(crowd.operations),
        at_least: 0.0..2.0,
    },
    Measure {
        title: "CPU of the server, % of one core",
        pick: |crowd| crowd.server_share.map(|share| 100.0 * share),
        at_least: 0.0..4.0,
    },
];

pub(super) fn draw(crowds: &[Crowd]) -> io::Result<Option<String>> {
    let crowds: Vec<_> = crowds.iter().filter(|crowd| crowd.failure.is_none()).collect();
    let mut kinds: Vec<_> = crowds.iter().map(|crowd| (crowd.state.as_str(), crowd.interval)).collect();
    kinds.dedup();
    let sizes = crowds.iter().map(|crowd| crowd.shards as f64);
    let (fewest, most) =
        sizes.fold((f64::MAX, 0.0_f64), |(low, high), shards| (low.min(shards), high.max(shards)));
    if fewest >= most {
        return Ok(None);
    }
    let series: Vec<_> = kinds
        .iter()
        .zip(SERIES)
        .map(|(kind, color)| {
            let of_kind = crowds.iter().filter(|crowd| (crowd.state.as_str(), crowd.interval) == *kind);
            (color, of_kind.copied().collect::<Vec<_>>())
        })
        .collect();
    let measures: Vec<_> = MEASURES
        .iter()
        .filter(|measure| crowds.iter().any(|crowd| (measure.pick)(crowd).is_some()))
        .collect();
    let rows = measures.len().div_ceil(2) as f64;
    let title = "Many waiting shards: does the pace hold, and what does it cost?";
    let explanation = "Every point is a run with so many shards that wait on one queue.";
    let svg = canvas::paint(title, explanation, KEY + rows * (PANEL + SPACE) - SPACE, |area| {
        let mut left = 0.0;
        for (&(state, each), (color, _)) in kinds.iter().zip(&series) {
            let name = format!("{state}, one job per {}", interval(each));
            area.draw(&Circle::new((units(left + 5.0), units(8.0)), units(4.5), color.filled()))?;
            canvas::text(area, (left + 15.0, 8.0), &name, type_face(13.0, *color, true, Side::Left))?;
            left += 40.0 + 7.6 * name.len() as f64;
        }
        let width = (size(area).0 - SPACE) / 2.0;
        for (index, measure) in measures.iter().enumerate() {
            let at = ((width + SPACE) * (index % 2) as f64, KEY + (PANEL + SPACE) * (index / 2) as f64);
            curves(&part(area, at, (width, PANEL)), measure, &series, fewest..most)?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

fn curves(
    area: &Area<'_>,
    measure: &Measure,
    series: &[(RGBColor, Vec<&Crowd>)],
    shards: Range<f64>,
) -> Drawn {
    canvas::text(area, (0.0, 10.0), measure.title, type_face(13.0, INK, true, Side::Left))?;
    let figures =
        series.iter().flat_map(|(_, crowds)| crowds.iter().filter_map(|crowd| (measure.pick)(crowd)));
    let Range { start, end } = measure.at_least;
    let (low, high) = figures.fold((start, end), |(low, high), figure| (low.min(figure), high.max(figure)));
    let high = high + 0.04 * (high - low);
    let (left, right) = (shards.start / 1.25, shards.end * 1.25);
    let mut chart = ChartBuilder::on(area)
        .margin_top(units(28.0))
        .margin_right(units(6.0))
        .set_label_area_size(LabelAreaPosition::Left, units(46.0))
        .set_label_area_size(LabelAreaPosition::Bottom, units(36.0))
        .build_cartesian_2d((left..right).log_scale(), low..high)?;
    for at in plotters::coord::types::RangedCoordf64::from(low..high).key_points(5) {
        rule(&mut chart, [(left, at), (right, at)], line(GRID, 1.0))?;
        label(&mut chart, (left, at), (-6.0, 0.0), &tick(at), type_face(12.0, FAINT, false, Side::Right))?;
    }
    rule(&mut chart, [(left, low), (right, low)], line(FAINT, 1.0))?;
    let mut seen: Vec<_> =
        series.iter().flat_map(|(_, crowds)| crowds.iter().map(|crowd| crowd.shards)).collect();
    seen.sort_unstable();
    seen.dedup();
    for shards in seen {
        let at = (shards as f64, low);
        label(&mut chart, at, (0.0, 13.0), &counted(shards), type_face(12.0, INK, false, Side::Middle))?;
    }
    let middle = ((left * right).sqrt(), low);
    label(&mut chart, middle, (0.0, 30.0), "waiting shards", type_face(12.5, FAINT, false, Side::Middle))?;
    for (color, crowds) in series {
        let points = crowds.iter().filter_map(|crowd| Some((crowd.shards as f64, (measure.pick)(crowd)?)));
        let mut points: Vec<_> = points.collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        chart.draw_series(points.iter().map(|&point| Circle::new(point, units(4.0), color.filled())))?;
        chart.draw_series([PathElement::new(points, line(*color, 2.0))])?;
    }
    Ok(())
}

/// A round number.
fn tick(at: f64) -> String {
    let text = format!("{at:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
