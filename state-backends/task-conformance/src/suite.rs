//! The list of all checks, as tests of [`task_conformance_tests!`](crate::task_conformance_tests)
//! and as [`CHECKS`].

use crate::{Check, checks};

/// Passes the names of all checks to another macro of this crate, those that need a settable clock
/// last. The only list of checks.
#[doc(hidden)]
#[macro_export]
macro_rules! __every_task_check {
    ($then:ident $arguments:tt) => {
        $crate::$then! { $arguments [
            the_first_add_makes_the_queue
            a_repeated_add_adds_nothing
            a_batch_is_added_whole_or_not_at_all
            a_large_flow_is_added_by_one_command
            a_late_add_is_refused
            edges_name_tasks_that_are_there
            too_large_a_payload_is_refused
            the_most_urgent_task_is_leased_first
            equals_run_in_the_order_of_adding
            ordered_tasks_of_names_run_in_the_order_of_adding
            equals_of_a_key_run_in_the_order_of_adding
            retried_tasks_run_in_the_order_of_adding
            imported_tasks_run_in_the_order_of_adding
            missed_instants_run_oldest_first
            priority_counts_as_time
            a_backlog_behind_keys_holds_up_no_ready_work
            a_backlog_is_admitted_without_its_workers
            a_worker_with_room_admits_a_backlog_in_the_end
            a_worker_gets_what_it_serves
            a_worker_gets_what_fits_in_its_order
            too_heavy_a_task_runs_alone
            a_task_waiting_for_load_says_why
            a_task_waiting_for_room_says_why
            a_key_runs_one_task_at_a_time
            a_key_runs_as_many_as_it_may
            a_more_urgent_task_takes_the_place
            a_key_is_paused_and_its_limit_changed
            a_closed_kind_holds_no_key
            many_tasks_of_a_closed_kind_hold_no_key
            a_limit_holds_for_all_workers
            a_task_gets_the_results_of_its_upstreams
            a_failed_upstream_acts_as_its_edges_say
            an_end_goes_down_the_whole_graph
            a_task_waits_for_a_thousand_others
            a_retry_reopens_edges
            a_retry_waits_for_what_runs_again
            a_graph_fans_out_and_in
            a_repeated_graph_adds_nothing
            a_task_is_added_behind_one_in_any_state
            a_broken_graph_is_retried_at_once
            a_unique_name_keeps_others_out
            a_unique_name_refuses_others
            a_unique_task_is_replaced_in_place
            a_name_until_leased_makes_one_more_run
            a_retried_task_finds_its_name_taken
            a_stale_token_changes_nothing
            an_older_step_changes_nothing
            a_lost_reply_costs_no_attempt
            an_unknown_worker_resyncs_first
            a_dead_workers_task_runs_again
            a_prefetched_task_of_a_dead_worker_has_not_failed
            tasks_are_leased_ahead_of_permits
            some_tasks_are_not_prefetched
            nothing_is_prefetched_under_a_pause_or_a_limit
            a_worker_that_is_declared_lost_loses_its_runs_at_once
            an_unknown_worker_cannot_be_declared_lost
            a_rolled_back_store_gives_runs_back
            workers_are_notified
            a_result_is_kept
            too_large_a_result_is_a_failure
            a_permanent_failure_is_one
            to_be_run_again_is_no_failure
            twenty_returns_back_off
            an_exchange_counts_nothing
            cancelled_tasks_end
            released_tasks_go_back
            tags_come_and_go
            a_task_is_linked_while_it_waits
            a_task_is_linked_to_one_that_has_ended
            a_task_is_unlinked
            links_make_no_cycle
            a_link_looks_so_far
            many_are_linked_page_by_page
            imported_tasks_go_on_as_they_were
            imported_tasks_wait_for_their_upstreams
            moved_tasks_leave_nothing_behind
            a_moved_task_is_retried_there_alone
            a_key_that_runs_is_not_moved
            verbs_go_page_by_page
            selectors_select
            pages_follow_each_order
            a_search_is_bounded_and_continued
            an_odd_selector_is_refused
            purged_tasks_are_forgotten
            a_cancelled_flow_is_purged
            upstreams_of_live_tasks_are_not_purged
            each_instant_makes_one_task
            an_instant_is_skipped
            an_instant_makes_a_flow
            an_instant_is_kept
            an_instant_that_is_due_hurries_nobody
            settings_are_seen_by_all
            a_policy_of_a_kind_applies_to_its_tasks
            policies_of_kinds_change_one_by_one
            policies_of_kinds_are_bounded
            a_paused_queue_leases_nothing
            a_setting_creates_the_queue
            pauses_are_listed
            an_invalid_command_changes_nothing
            counts_are_exact
            a_refused_command_changes_nothing
            every_field_is_kept
            a_look_at_too_much_gives_what_fits
            odd_names_are_distinct
            json_keeps_its_text
            results_and_errors_of_runs_are_kept
            a_run_leaves_its_log
            a_log_is_bounded_and_goes_with_its_task
            notes_are_kept_with_the_task
            events_report_the_changes_of_tasks
            events_of_many_tasks_are_reported_in_order
            edges_are_listed_from_both_ends
            large_replies_come_in_parts
            changes_notify_watchers
            tasks_beyond_a_workers_room_notify_others
            a_heartbeat_notifies_nobody
            a_task_is_leased_to_one_worker
            limits_hold_when_many_lease_at_once
            one_of_many_has_a_name
            queues_are_independent
        ] [
            a_task_waits_for_its_time
            a_gate_once_passed_stays_passed
            ordered_tasks_run_in_the_order_of_adding
            an_ordered_task_runs_alone
            the_least_urgent_of_many_gives_way
            a_closed_kind_gives_up_its_key_after_a_retry
            a_worker_that_comes_back_has_what_it_says
            a_lone_worker_that_comes_back_keeps_its_runs
            an_outage_costs_no_lease
            a_failure_is_tried_again_later
            unset_options_of_a_task_are_the_queues
            a_backoff_of_the_task_wins
            reordered_tasks_take_their_places
            a_reordered_retry_keeps_its_time
            a_deadline_ends_a_task
            ended_tasks_are_kept_as_long_as_said
            as_many_ended_tasks_are_kept_as_said
            times_are_counted_by_kind_and_hour
            times_are_kept_for_a_week
            events_are_counted_by_hour_and_day
            a_follower_that_was_away_is_notified_of_gaps
            a_step_of_the_clock_forgets_no_id
            inputs_are_kept_for_downstreams
            the_id_of_a_purged_task_is_kept
            a_dead_worker_is_forgotten_after_an_hour
            tasks_of_a_dead_worker_are_lost
            a_task_is_ready_since_its_last_gate
            a_task_is_ready_since_its_key_or_its_upstreams_let_it_in
            a_batch_is_whole_and_a_repeated_one_adds_nothing
            a_task_that_cannot_go_on_is_there_with_its_reason
            a_late_worker_changes_nothing_and_is_notified
            deaths_count_until_a_task_has_failed_and_stays
            an_outage_costs_nobody_an_attempt
            a_day_of_waiting_outweighs_one_priority
            a_retry_keeps_its_place
            equals_of_one_time_run_in_the_order_of_adding
            a_task_that_waits_for_its_slot_gives_it_to_a_more_urgent_one
            a_dead_worker_leaks_no_place
            the_next_in_line_is_ready_in_the_same_command
            a_failure_goes_down_the_whole_graph
            two_workers_that_see_one_instant_make_one_task
            a_dry_run_shows_what_the_real_one_touches
            a_worker_hears_of_a_cancellation_with_its_next_step
            a_task_cancelled_while_it_runs_ends_cancelled
            every_attempt_is_recorded
            a_task_says_why_it_does_not_run
            an_idle_worker_sleeps_until_there_is_something_to_do
            ended_tasks_are_purged_without_a_cleaner
            ended_tasks_are_purged_while_workers_come_and_go
            a_stepped_clock_forgets_no_id
            a_short_lease_ends_in_time_among_the_idle
            a_lease_that_ends_unseen_is_looked_for_soon
            a_backlog_that_is_due_holds_up_no_ready_work
            a_backlog_is_admitted_beside_ready_work
            an_urgent_task_passes_a_backlog
            a_worker_of_another_kind_admits_a_backlog_slowly
            commands_follow_the_rules
        ] }
    };
}

/// Expands to a test of every check.
///
/// `make` is an `async fn() -> `[`Handles`](crate::Handles): two handles on one store, as two
/// processes would have them, and its clock. Attributes apply to every test. `no clock` omits the
/// checks that need a settable clock:
///
/// ```
/// # async fn make() -> interval_queue_task_conformance::Handles { std::future::pending().await }
/// interval_queue_task_conformance::task_conformance_tests!(#[ignore = "needs a server"] make, no clock);
/// ```
///
/// Each test has its own multi-threaded tokio runtime and queues, so that all can share one server.
/// The caller needs no other dependency.
#[macro_export]
macro_rules! task_conformance_tests {
    ($(#[$($attribute:tt)*])* $make:path) => {
        $crate::__every_task_check! { __task_tests ([$(#[$($attribute)*])*] $make) }
    };
    ($(#[$($attribute:tt)*])* $make:path, no clock) => {
        $crate::__every_task_check! { __task_tests ([$(#[$($attribute)*])*] $make, no clock) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __task_tests {
    (($attributes:tt $make:path) [$($check:ident)*] [$($later:ident)*]) => {
        $($crate::__task_test! { ($attributes $make) $check })*
        $($crate::__task_test! { ($attributes $make) $later })*
    };
    (($attributes:tt $make:path, no clock) [$($check:ident)*] [$($later:ident)*]) => {
        $($crate::__task_test! { ($attributes $make) $check })*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __task_test {
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
macro_rules! __task_table {
    (() [$($check:ident)*] [$($later:ident)*]) => {
        /// All checks, in a good order to read failures.
        pub const CHECKS: &[Check] = &[
            $(Check::new(stringify!($check), false, |handles| Box::pin(checks::$check(handles))),)*
            $(Check::new(stringify!($later), true, |handles| Box::pin(checks::$later(handles))),)*
        ];
    };
}

crate::__every_task_check! { __task_table () }
