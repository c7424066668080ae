//! The program as its users meet it: real processes, on files and databases and on real servers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod becoming;
mod carrying;
mod child;
mod commands;
mod delete;
mod documents;
mod each;
mod failures;
mod flows;
mod follow;
mod init;
mod json_text;
mod loops;
mod migrate;
mod place;
mod policy;
mod process;
mod pty;
mod rates;
mod recount;
mod schedules;
mod sharing;
mod stores;
mod tags;
mod tasks;
mod tasks_schema;
mod terminal;
mod times;
mod turns;
mod usage;
mod waiting;
mod watch;
mod why;
mod work;
