//! The page `docs/reliability.md`: what was promised, what was done to break it, and what happened.
//!
//! `scripts/reliability` runs the simulation, the model check, the chaos and the fuzzing into a directory of
//! JSON files, one for the pace and one for stored tasks. [`collect`] reads such a directory into one half of
//! the [`Report`], which is kept as `docs/reliability.json`, and refuses it if something is missing or a
//! promise was broken; [`render`] writes the page from both. A test keeps the two files equal.

mod collect;
mod evidence;
mod promises;
mod render;
mod table;
mod words;

pub use collect::collect;
pub use evidence::{
    BrokenRule, Half, Layer, Machine, Named, Recovery, Report, Row, Simulation, SimulationRun, Violation,
};
pub use render::render;
pub use table::{counted, paragraph};
