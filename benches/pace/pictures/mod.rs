//! The pictures of `docs/benchmarks.md`.

mod canvas;
mod crowd_picture;
mod gap_error;
mod recovery;
mod starts;
mod timeline;

use std::{io, ptr};

use crate::{
    choice::Choice,
    report::{Report, Scenario},
};

/// A picture and what is said of it to those who cannot see it.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) svg: String,
}

/// All pictures for which there is something to show.
pub(crate) fn pictures(report: &Report) -> io::Result<Vec<Picture>> {
    let choice = Choice::of(report);
    let saturated = choice.contenders(Scenario::Saturated);
    let killed = choice.contenders(Scenario::Killed);
    let drawn = [
        ("gap_error", "histogram of the gap error of each contender", gap_error::draw(&saturated)?),
        ("starts", "timeline of the starts of each process, for each contender", timeline::draw(&saturated)?),
        ("kill", "timeline of the starts of each process around a kill -9", timeline::draw_kill(&killed)?),
        ("recovery", "rate of each contender before and after a kill -9", recovery::draw(&killed)?),
        ("crowds", "accuracy and cost by the number of waiting shards", crowd_picture::draw(&report.crowds)?),
    ];
    let some = drawn
        .into_iter()
        .filter_map(|(name, description, svg)| svg.map(|svg| Picture { name, description, svg }));
    Ok(some.collect())
}

/// Forgets the starts that no picture shows: they are most of what is stored.
pub(crate) fn forget_unseen(report: &mut Report) {
    let choice = Choice::of(report);
    let shown = [Scenario::Saturated, Scenario::Killed].map(|scenario| choice.contenders(scenario)).concat();
    let is_shown: Vec<_> =
        report.paces.iter().map(|pace| shown.iter().any(|shown| ptr::eq(*shown, pace))).collect();
    for (pace, is_shown) in report.paces.iter_mut().zip(is_shown) {
        if !is_shown {
            pace.sample.clear();
        }
    }
}
