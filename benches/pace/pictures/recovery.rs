//! The rate before and after a kill -9.

use std::io;

use interval_queue_report::counted;
use plotters::prelude::*;

use super::{
    canvas::{
        self, Area, Drawn, FAINT, GRID, INK, NAMES, OURS, Side, THEIRS, label, line, part, rule, size,
        type_face, units,
    },
    starts::Starts,
};
use crate::{
    choice::is_ours,
    figures::{median, percent},
    report::{Kill, Pace},
};

const PANEL: f64 = 84.0;
const AXIS: f64 = 46.0;
/// Slots over which a rate is taken.
const STEP: f64 = 25.0;
const BEFORE: f64 = 100.0;
/// As long after the kill at most.
const AFTER: f64 = 1_000.0;
/// The highest rate that is shown.
const TOP: f64 = 1.5;

pub(super) fn draw(contenders: &[&Pace]) -> io::Result<Option<String>> {
    let panels = contenders.iter().filter_map(|pace| {
        let starts = Starts::of(pace)?;
        let (zero, _) = starts.kill(pace)?;
        Some((*pace, starts, zero))
    });
    let panels: Vec<_> = panels.collect();
    let longest = panels.iter().map(|(_, starts, zero)| starts.end() - zero).fold(0.0, f64::max);
    if longest < 4.0 * STEP {
        return Ok(None);
    }
    let right = longest.min(AFTER);
    let title = "Killed with kill -9: how long is the rate lower?";
    let explanation = "Starts of all processes in each 25 slots. Nobody can know that a process is dead before its lease ends.";
    let svg = canvas::paint(title, explanation, PANEL * panels.len() as f64 + AXIS, |area| {
        for (index, (pace, starts, zero)) in panels.iter().enumerate() {
            let axis = if index + 1 == panels.len() { AXIS } else { 0.0 };
            let panel = part(area, (0.0, PANEL * index as f64), (size(area).0, PANEL + axis));
            canvas::name(&panel, &pace.contender, is_ours(pace), &facts(pace))?;
            let plot = part(&panel, (NAMES, 0.0), (size(area).0 - NAMES, PANEL + axis));
            let lease = is_ours(pace).then(|| kill_figure(pace, |kill| Some(kill.lease as f64))).flatten();
            let lease = lease.map(|lease| lease / pace.interval as f64);
            rates(&plot, starts, *zero, lease, right, axis)?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

fn kill_figure(pace: &Pace, pick: impl Fn(&Kill) -> Option<f64>) -> Option<f64> {
    median(pace.runs.iter().filter_map(|run| run.kill.as_ref().and_then(&pick)))
}

fn facts(pace: &Pace) -> Vec<(String, RGBColor)> {
    let during = kill_figure(pace, |kill| kill.rate_during);
    let after = kill_figure(pace, |kill| kill.rate_after);
    let mut facts = vec![(format!("on {}", pace.state), FAINT)];
    if is_ours(pace) {
        facts.extend(during.map(|rate| (format!("{} % during the lease", percent(rate)), FAINT)));
        facts.extend(after.map(|rate| (format!("{} % after it", percent(rate)), FAINT)));
    } else {
        facts.extend(during.map(|rate| (format!("{} % after the kill", percent(rate)), FAINT)));
    }
    facts
}

fn rates(area: &Area<'_>, starts: &Starts, zero: f64, lease: Option<f64>, right: f64, axis: f64) -> Drawn {
    let color = if lease.is_some() { OURS } else { THEIRS };
    let mut chart = ChartBuilder::on(area)
        .margin_top(units(8.0))
        .margin_right(units(10.0))
        .set_label_area_size(LabelAreaPosition::Left, units(44.0))
        .set_label_area_size(LabelAreaPosition::Bottom, units(axis + 8.0))
        .build_cartesian_2d(-BEFORE..right, 0.0..TOP)?;
    for (rate, text) in [(0.5, "50 %"), (1.0, "100 %")] {
        rule(&mut chart, [(-BEFORE, rate), (right, rate)], line(GRID, 1.0))?;
        label(&mut chart, (-BEFORE, rate), (-6.0, 0.0), text, type_face(12.0, FAINT, false, Side::Right))?;
    }

    let mut corners = Vec::new();
    let mut from = -BEFORE;
    while from + STEP <= right.min(starts.end() - zero) + 1.0 {
        let within = |at: f64| (from..from + STEP).contains(&(at - zero));
        let count = starts.all.iter().filter(|start| within(start.at)).count();
        let rate = (count as f64 / STEP).min(TOP);
        corners.extend([(from, rate), (from + STEP, rate)]);
        from += STEP;
    }
    chart.draw_series(
        [AreaSeries::new(corners.iter().copied(), 0.0, color.mix(0.15))].into_iter().flatten(),
    )?;
    chart.draw_series([PathElement::new(corners, line(color, 1.6))])?;
    rule(&mut chart, [(-BEFORE, 0.0), (right, 0.0)], line(FAINT, 1.0))?;
    rule(&mut chart, [(0.0, 0.0), (0.0, TOP)], line(INK, 1.2))?;
    label(&mut chart, (0.0, TOP), (5.0, 5.0), "killed", type_face(12.0, INK, true, Side::Left))?;
    if let Some(lease) = lease.filter(|&lease| lease < right) {
        for dot in 0..12 {
            let from = TOP * f64::from(dot) / 12.0;
            rule(&mut chart, [(lease, from), (lease, from + TOP / 24.0)], line(INK, 1.2))?;
        }
        label(&mut chart, (lease, TOP), (5.0, 5.0), "lease ends", type_face(12.0, INK, true, Side::Left))?;
    }
    if axis > 0.0 {
        let each = if right > 500.0 { 200.0 } else { 50.0 };
        let mut slot = 0.0;
        while slot <= right {
            label(
                &mut chart,
                (slot, 0.0),
                (0.0, 14.0),
                &counted(slot as u64),
                type_face(12.0, INK, false, Side::Middle),
            )?;
            slot += each;
        }
        let middle = ((right - BEFORE) / 2.0, 0.0);
        let unit = "slots since the kill, one interval each";
        label(&mut chart, middle, (0.0, 34.0), unit, type_face(12.5, FAINT, false, Side::Middle))?;
    }
    Ok(())
}
