//! The page `docs/reliability.md`: what was promised, what was done to break it, and what happened.
//!
//! `scripts/reliability` runs the simulation, the model check, the chaos and the fuzzing into a directory of
//! JSON files. [`collect`] reads that directory into one [`Report`], which is kept as
//! `docs/reliability.json`, and refuses it if something is missing or a promise was broken; [`render`] writes
//! the page from it. A test keeps the two files equal.

mod collect;
mod evidence;
mod render;
mod table;

pub use collect::collect;
pub use evidence::{BrokenRule, Machine, Named, Recovery, Report, Row, Simulation, SimulationRun, Violation};
pub use render::render;
pub use table::{counted, paragraph};
