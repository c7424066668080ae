//! The suite, checked: what it says to a backend that is right, to those that are wrong, and the tools beside it.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod backends;
mod faulty_tests;
mod inline;
mod load_tests;
mod racy;
mod wrong;
