//! Stored tasks on real servers.

mod application;
mod bad_input;
mod conformance;
mod cost;
mod crowd;
mod differential;
mod floors;
mod followed;
mod interleaved;
mod places;
mod pooler;
mod prepared;
mod settled;
mod support;
mod within;
