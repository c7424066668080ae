//! The program as its users meet it: real processes, on files and databases and on real servers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod alert_tests;
mod becoming;
mod child_tests;
mod commands;
mod delete_tests;
mod documents_tests;
mod each;
mod failures_tests;
mod flows;
mod follow_tests;
mod init;
mod json_text;
mod kind_policy_tests;
mod list_tests;
mod loops;
mod migrate_tests;
mod page_blocks;
mod pages_tests;
mod place_tests;
mod policy;
mod process;
mod pty;
mod rates;
mod recount_tests;
mod schedules;
mod sharing;
mod stores;
mod tags_tests;
mod tasks;
mod tasks_schema;
mod terminal;
mod times_tests;
mod transfer_tests;
mod turns;
mod usage;
mod waiting;
mod watch;
mod why_tests;
mod work;
