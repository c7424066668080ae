//! Who started when: a row for each process, and one for all of them.

use std::{io, ops::Range};

use plotters::prelude::*;

use super::{
    canvas::{
        self, Area, CLOSE, Drawn, FAINT, GRID, INK, NAMES, OURS, Side, THEIRS, alarm, label, line, part,
        rule, size, type_face, units,
    },
    starts::Starts,
};
use crate::{choice::is_ours, report::Pace};

const ROW: f64 = 17.0;
/// The height of the row for all processes.
const ALL: f64 = 24.0;
const SPACE: f64 = 20.0;
const AXIS: f64 = 28.0;
/// Slots that are shown, and so many of them before the end of a process that is killed.
const SHOWN: f64 = 50.0;
const BEFORE_KILL: f64 = 15.0;
/// From a slot to the middle between it and the next.
const HALF: f64 = 0.5;

/// From the middle of a run.
pub(super) fn draw(contenders: &[&Pace]) -> io::Result<Option<String>> {
    let title = "Who starts when: the ticks of all processes should form an even comb";
    let explanation = "A dot is a start of one process, a tick the same start among those of all. Orange: too close to the one before.";
    timeline(contenders, title, explanation, "slots, one interval each", |_, starts| {
        let middle = &starts.all[starts.all.len() / 2];
        Some(Window { zero: middle.at, shown: -HALF..SHOWN - HALF, has_kill: false, killed: None })
    })
}

/// Around the end of a process that is killed.
pub(super) fn draw_kill(contenders: &[&Pace]) -> io::Result<Option<String>> {
    let title = "Killed with kill -9: who goes on, and how";
    let explanation =
        "One process, with jobs waiting in it, is gone from 0 on. The others should keep the pace.";
    let unit = "slots since the kill, one interval each";
    timeline(contenders, title, explanation, unit, |pace, starts| {
        let (zero, process) = starts.kill(pace)?;
        let shown = -BEFORE_KILL - HALF..SHOWN - BEFORE_KILL - HALF;
        Some(Window { zero, shown, has_kill: true, killed: process })
    })
}

/// What is shown of a run.
struct Window {
    /// The instant that is called zero.
    zero: f64,
    shown: Range<f64>,
    /// Whether a process was killed at zero, and which one if it can be seen.
    has_kill: bool,
    killed: Option<u32>,
}

fn timeline(
    contenders: &[&Pace],
    title: &str,
    explanation: &str,
    unit: &str,
    window: impl Fn(&Pace, &Starts) -> Option<Window>,
) -> io::Result<Option<String>> {
    let panels = contenders.iter().filter_map(|pace| {
        let starts = Starts::of(pace)?;
        let window = window(pace, &starts)?;
        Some((*pace, starts, window))
    });
    let panels: Vec<_> = panels.collect();
    if panels.is_empty() {
        return Ok(None);
    }
    let heights: Vec<_> =
        panels.iter().map(|(_, starts, _)| ROW * starts.processes.len() as f64 + ALL + SPACE).collect();
    let svg = canvas::paint(title, explanation, heights.iter().sum::<f64>() + AXIS, |area| {
        let mut top = 0.0;
        for (index, ((pace, starts, window), height)) in panels.iter().zip(&heights).enumerate() {
            let axis = if index + 1 == panels.len() { AXIS } else { 0.0 };
            let panel = part(area, (0.0, top), (size(area).0, height + axis));
            top += height;
            canvas::name(&panel, &pace.contender, is_ours(pace), &facts(pace, starts, window))?;
            let plot = part(&panel, (NAMES, 0.0), (size(area).0 - NAMES, height + axis));
            rows(&plot, starts, window, is_ours(pace), axis)?;
            if axis > 0.0 {
                let middle = NAMES + (size(area).0 - NAMES) / 2.0;
                let at = (middle, height + axis - 10.0);
                canvas::text(&panel, at, unit, type_face(12.5, FAINT, false, Side::Middle))?;
            }
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// What is said of the starts that are seen.
fn facts(pace: &Pace, starts: &Starts, window: &Window) -> Vec<(String, RGBColor)> {
    let seen = starts.all.iter().filter(|start| window.shown.contains(&(start.at - window.zero)));
    let (count, close) =
        seen.fold((0, 0), |(count, close), start| (count + 1, close + u64::from(start.is_close())));
    let slots = window.shown.end.min(starts.end() - window.zero) - window.shown.start;
    vec![
        (format!("on {}", pace.state), FAINT),
        (format!("{count} starts in {slots:.0} slots"), FAINT),
        (format!("{close} of them too close"), alarm(close)),
    ]
}

fn rows(area: &Area<'_>, starts: &Starts, window: &Window, ours: bool, axis: f64) -> Drawn {
    let count = starts.processes.len() as f64;
    let bottom = count + ALL / ROW;
    let (left, right) = (window.shown.start - HALF, window.shown.end + HALF);
    let mut chart = ChartBuilder::on(area)
        .margin_right(units(10.0))
        .set_label_area_size(LabelAreaPosition::Left, units(44.0))
        .set_label_area_size(LabelAreaPosition::Bottom, units(SPACE + axis))
        .build_cartesian_2d(left..right, bottom..0.0)?;
    let color = if ours { OURS } else { THEIRS };

    let shade = Rectangle::new([(left, count), (right, bottom)], GRID.mix(0.45).filled());
    chart.draw_series([shade])?;
    for (row, &process) in starts.processes.iter().enumerate() {
        let middle = row as f64 + HALF;
        let killed = window.killed == Some(process);
        let name = (row + 1).to_string();
        let ink = if killed { INK } else { FAINT };
        rule(&mut chart, [(left, middle), (right, middle)], line(GRID, 1.0))?;
        label(&mut chart, (left, middle), (-8.0, 0.0), &name, type_face(12.0, ink, killed, Side::Right))?;
        if killed {
            rule(&mut chart, [(0.0, middle - 0.4), (0.0, middle + 0.4)], line(INK, 2.0))?;
            label(&mut chart, (0.0, middle), (9.0, 0.0), "killed", type_face(12.0, INK, true, Side::Left))?;
        }
    }
    if window.has_kill {
        rule(&mut chart, [(0.0, 0.0), (0.0, bottom)], line(INK, 0.75))?;
    }
    let all = (left, (count + bottom) / 2.0);
    label(&mut chart, all, (-8.0, 0.0), "all", type_face(12.0, INK, false, Side::Right))?;

    for start in &starts.all {
        let at = start.at - window.zero;
        if !window.shown.contains(&at) {
            continue;
        }
        let Ok(row) = starts.processes.binary_search(&start.process) else { continue };
        let color = if start.is_close() { CLOSE } else { color };
        let dot = Circle::new((at, row as f64 + HALF), units(4.0), color.filled());
        chart.draw_series([dot])?;
        rule(&mut chart, [(at, count + 0.15), (at, bottom - 0.15)], line(color, 2.0))?;
    }
    if axis > 0.0 {
        let mut slot = (left / 10.0).ceil() * 10.0;
        while slot <= right {
            label(
                &mut chart,
                (slot, bottom),
                (0.0, 15.0),
                &signed(slot),
                type_face(12.0, INK, false, Side::Middle),
            )?;
            slot += 10.0;
        }
    }
    Ok(())
}

fn signed(slot: f64) -> String {
    let sign = if slot < 0.0 { "−" } else { "" };
    format!("{sign}{}", slot.abs())
}
