//! Stored tasks on a Redis: each file is a promise.

mod cases;
mod conformance;
mod cost;
mod differential;
mod play;
mod policy;
mod support;
mod trouble;
