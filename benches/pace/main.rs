//! How accurate and how cheap the pace is: real processes on real states, other libraries beside them.
//!
//!     cargo bench --bench pace -- --help

mod assignment;
mod contender;
mod report;
mod scenario;

fn main() {}
