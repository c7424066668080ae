//! The page on reliability: what it is made of, and whether the one that is committed is up to date.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod document;
mod evidence_tests;
