//! Stored tasks on real servers.

mod application;
mod bad_input;
mod completed;
mod cost;
mod differential;
mod drivers;
mod followed;
mod interleaved;
mod load;
mod low_mark_tests;
mod pooler;
mod support;
mod task_conformance;
mod task_places;
mod task_prepared;
mod within_bad_input;
mod within_tests;
