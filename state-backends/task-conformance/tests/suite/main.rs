//! The suite and the fuzzer, checked: their failures on stores that are wrong in one thing.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod flawed;
mod rows;
#[path = "../promises/t12_cost.rs"]
mod t12_cost;
mod wrong;
