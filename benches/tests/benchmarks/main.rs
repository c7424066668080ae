//! The benchmarks, checked: they measure, what they find is what happened, and the page says what was found.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test uses a part of them, and fails by panicking"
)]

#[path = "../../pace/analysis.rs"]
mod analysis;
#[path = "../../pace/assignment.rs"]
mod assignment;
#[path = "../../strict/strict_case.rs"]
mod case;
#[path = "../../pace/choice.rs"]
mod choice;
#[path = "../../pace/clock.rs"]
mod clock;
#[path = "../../pace/contender.rs"]
mod contender;
#[path = "../../pace/document/mod.rs"]
mod document;
#[path = "../../pace/figures.rs"]
mod figures;
#[path = "../../strict/nginx.rs"]
mod nginx;
#[path = "../../pace/notes.rs"]
mod notes;
#[path = "../../pace/order.rs"]
mod order;
#[path = "../../pace/pictures/mod.rs"]
mod pictures;
#[path = "../../pace/render.rs"]
mod render;
#[path = "../../pace/report.rs"]
mod report;
#[path = "../../pace/scenario.rs"]
mod scenario;
#[path = "../../pace/trace.rs"]
mod trace;

mod keyed;
mod made_up;
mod measured;
mod numbers;
mod page_tests;
mod strict;
mod tasks;
