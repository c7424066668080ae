//! How far the time between two starts is from the interval, as a histogram for each contender.

use std::io;

use interval_queue_report::counted;
use plotters::prelude::*;

use super::{
    canvas::{
        self, Area, CLOSE, Drawn, FAINT, GRID, INK, NAMES, OURS, Side, THEIRS, alarm, label, line, part,
        rule, size, type_face, units,
    },
    starts::Starts,
};
use crate::{
    choice::is_ours,
    figures::{interval, percent},
    report::Pace,
};

const PANEL: f64 = 92.0;
const AXIS: f64 = 46.0;
/// Bars in an interval, of which one ends where gaps begin to be close.
const BARS: i32 = 45;
/// The bar for all that is later than what is shown.
const LATER: i32 = BARS + 7;
/// The least share that is shown.
const LEAST: f64 = 0.0003;

pub(super) fn draw(contenders: &[&Pace]) -> io::Result<Option<String>> {
    let panels: Vec<_> =
        contenders.iter().filter_map(|pace| Starts::of(pace).map(|starts| (*pace, starts))).collect();
    let Some((first, _)) = panels.first() else { return Ok(None) };
    let title = format!(
        "How exact is the pace? {} processes, one job per {}",
        first.processes,
        interval(first.interval)
    );
    let milliseconds = first.interval as f64 / 1_000.0;
    let explanation = "The time from a start to the next, less the interval. A needle at 0 is perfect; what stands on \
                       orange came too close.";
    let svg = canvas::paint(&title, explanation, PANEL * panels.len() as f64 + AXIS, |area| {
        for (index, (pace, starts)) in panels.iter().enumerate() {
            let axis = if index + 1 == panels.len() { AXIS } else { 0.0 };
            let panel = part(area, (0.0, PANEL * index as f64), (size(area).0, PANEL + axis));
            let (close, gaps) = (starts.close() as u64, starts.all.len() as u64 - 1);
            let facts = [
                (format!("on {}", pace.state), FAINT),
                (format!("{} of {} too close", counted(close), counted(gaps)), alarm(close)),
                (format!("{} % of the rate", percent(starts.rate())), FAINT),
            ];
            canvas::name(&panel, &pace.contender, is_ours(pace), &facts)?;
            let plot = part(&panel, (NAMES, 0.0), (size(area).0 - NAMES, PANEL + axis));
            histogram(&plot, starts, if is_ours(pace) { OURS } else { THEIRS }, milliseconds, axis)?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

fn histogram(area: &Area<'_>, starts: &Starts, color: RGBColor, interval: f64, axis: f64) -> Drawn {
    let bar = interval / f64::from(BARS);
    let (left, right) = (-interval - bar, f64::from(LATER + 1) * bar);
    let mut chart = ChartBuilder::on(area)
        .margin_top(units(8.0))
        .margin_right(units(10.0))
        .set_label_area_size(LabelAreaPosition::Left, units(44.0))
        .set_label_area_size(LabelAreaPosition::Bottom, units(axis + 8.0))
        .build_cartesian_2d(left..right, (LEAST..1.0).log_scale())?;

    let too_close = [(left, LEAST), (-0.1 * interval, 1.0)];
    chart.draw_series([Rectangle::new(too_close, CLOSE.mix(0.12).filled())])?;
    for share in [0.001, 0.01, 0.1, 1.0] {
        rule(&mut chart, [(left, share), (right, share)], line(GRID, 1.0))?;
    }
    for (share, text) in [(0.01, "1 %"), (1.0, "100 %")] {
        label(&mut chart, (left, share), (-6.0, 0.0), text, type_face(12.0, FAINT, false, Side::Right))?;
    }

    let mut counts = vec![0_u32; 2 * BARS as usize + 2];
    for gap in starts.gaps() {
        let error = ((gap - 1.0) * f64::from(BARS)).round() as i32;
        counts[(error.clamp(-BARS, BARS + 1) + BARS) as usize] += 1;
    }
    let all = (starts.all.len() - 1) as f64;
    let bars = (-BARS..).zip(counts).filter(|&(_, count)| count > 0).map(|(error, count)| {
        let middle = f64::from(if error > BARS { LATER } else { error }) * bar;
        let share = (f64::from(count) / all).max(1.4 * LEAST);
        let color = if error < -BARS / 10 { CLOSE } else { color };
        Rectangle::new([(middle - 0.42 * bar, LEAST), (middle + 0.42 * bar, share)], color.filled())
    });
    chart.draw_series(bars)?;
    rule(&mut chart, [(left, LEAST), (right, LEAST)], line(FAINT, 1.0))?;

    if axis > 0.0 {
        let number = |side| type_face(12.0, INK, false, side);
        for (at, sign) in [(-1.0, "−"), (-0.5, "−"), (0.0, ""), (0.5, "+"), (1.0, "+")] {
            let at = at * interval;
            let text = format!("{sign}{}", at.abs());
            label(&mut chart, (at, LEAST), (0.0, 14.0), &text, number(Side::Middle))?;
        }
        let later = f64::from(LATER) * bar;
        label(&mut chart, (later, LEAST), (0.0, 14.0), "later", number(Side::Middle))?;
        let unit = "gap less interval, ms (bars: share of all gaps, logarithmic)";
        label(&mut chart, (0.0, LEAST), (0.0, 34.0), unit, type_face(12.5, FAINT, false, Side::Middle))?;
    }
    Ok(())
}
