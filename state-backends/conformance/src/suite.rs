//! The list of all checks, as tests of [`suite!`](crate::suite) and as [`CHECKS`].

use crate::{Check, checks};

/// Passes the names of all checks to another macro of this crate. The only list of checks.
#[doc(hidden)]
#[macro_export]
macro_rules! __every_check {
    ($then:ident $arguments:tt) => {
        $crate::$then! { $arguments
            reading_creates_nothing
            steps_and_changes_need_a_queue
            opening_creates_the_queue
            opening_again_replaces_the_settings
            joining_keeps_the_settings
            failing_on_other_settings_changes_nothing
            opening_can_reset
            opened_queues_are_listed
            tickets_are_unique_and_dense
            a_retried_take_gets_the_same_tickets
            slots_keep_their_distance
            slots_follow_the_tickets
            ticket_and_current_only_rise
            a_pause_is_seen_by_all
            a_hold_is_seen_by_all
            settings_are_seen_by_all
            a_reset_is_seen_by_all
            a_deleted_queue_is_gone
            a_queue_in_use_is_deleted_by_force_only
            an_idle_queue_is_one_that_nobody_wrote_to
            a_presence_is_stored_as_sent
            an_idle_shard_leaves_no_presence
            running_jobs_are_counted_until_the_lease_ends
            a_dead_shard_blocks_until_its_lease_ends
            a_reply_counts_the_shards
            an_older_step_changes_nothing
            an_invalid_command_changes_nothing
            queues_are_independent
            odd_names_are_distinct
            the_clock_goes_forward
            the_clock_is_read_in_turn
            large_numbers_stay_exact
            commands_follow_the_rules
            commands_that_meet_follow_the_rules
            dropped_commands_leave_a_working_state
            one_thread_may_have_many_commands_under_way
            changes_are_notified_to_all_watchers
            no_change_is_missed_when_watching_begins
            steps_and_reads_are_not_notified
            dropped_watching_leaves_a_working_state
        }
    };
}

/// Expands to a test of every check.
///
/// `make` is an `async fn() -> `[`Handles`](crate::Handles): two handles on one store, as two
/// processes would have them. Attributes apply to every test:
///
/// ```
/// # async fn make() -> interval_queue_conformance::Handles { std::future::pending().await }
/// interval_queue_conformance::suite!(#[ignore = "needs a Redis server"] make);
/// ```
///
/// Each test has its own multi-threaded tokio runtime and queues, so that all can share one server.
/// It runs in real time. The caller needs no other dependency.
#[macro_export]
macro_rules! suite {
    ($(#[$($attribute:tt)*])* $make:path) => {
        $crate::__every_check! { __tests ([$(#[$($attribute)*])*] $make) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ($how:tt $($check:ident)*) => { $($crate::__test! { $how $check })* };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __test {
    (([$($attributes:tt)*] $make:path) $check:ident) => {
        $($attributes)*
        #[test]
        fn $check() {
            $crate::__private::test(stringify!($check), Box::pin($make()));
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __table {
    (() $($check:ident)*) => {
        /// All checks, in a good order to read failures.
        pub const CHECKS: &[Check] =
            &[$(Check::new(stringify!($check), |handles| Box::pin(checks::$check(handles)))),*];
    };
}

crate::__every_check! { __table () }
