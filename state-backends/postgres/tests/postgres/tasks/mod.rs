//! Stored tasks on real servers.

mod application;
mod bad_input;
mod completed;
mod conformance;
mod cost;
mod crowd;
mod differential;
mod followed;
mod interleaved;
mod low_mark_tests;
mod places;
mod pooler;
mod prepared;
mod support;
mod within;
