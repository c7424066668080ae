//! The suite that every store of tasks passes, and a play of the rules under faults.

pub mod play;
