//! See `rows` in `../bodies/src`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| interval_queue_fuzz_bodies::run("rows", bytes));
