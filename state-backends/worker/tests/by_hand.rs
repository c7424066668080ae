//! Each rule of a worker, with a store that is played by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use interval_queue_contract::{Label, Micros, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Json, Kind, Leased, MIN_LEASE, Outcome, Policy, Progress, RunLog, State, Step, Stepped, Stop, Task,
    TaskId, Token, WorkerId,
};
use interval_queue_worker::{
    Absorbed, Because, Identity, LOOKUP_INTERVAL, MAX_LOOKUP_AGE, MAX_WAIT, Next, POLL_INTERVAL, RunId,
    Worker,
};
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(30);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn id(number: u128) -> TaskId {
    TaskId::new(Uuid::from_u128(number))
}

fn task(number: u128, attempt: u32) -> Leased {
    let token = Token { incarnation: Micros::from_millis(1), attempt };
    let task = Task { due: number as i64, state: State::Leased, token, ..Task::bare(id(number)) };
    Leased { task, payload: Json::default(), policy: Policy::default(), deadline: None }
}

fn run(leased: &Leased) -> RunId {
    RunId { id: leased.task.id, token: leased.task.token }
}

fn gives(leased: impl IntoIterator<Item = Leased>) -> Stepped {
    Stepped { leased: leased.into_iter().collect(), may_prefetch: true, ..Stepped::default() }
}

fn done() -> Outcome {
    Outcome::Done(Json::default())
}

/// A worker, its clock, and the store's side of the wire.
struct Bench {
    worker: Worker,
    now: Instant,
}

impl Bench {
    fn new(permits: u32, prefetch: u32) -> Self {
        Self::with(permits, |identity| identity.prefetch = prefetch)
    }

    #[allow(clippy::disallowed_methods, reason = "any instant does")]
    fn with(permits: u32, change: impl FnOnce(&mut Identity)) -> Self {
        let mut identity = Identity {
            worker: WorkerId::new(Uuid::from_u128(7)),
            label: Label::default(),
            kinds: vec![Kind::default()],
            lease: Micros::from_duration(LEASE),
            permits,
            prefetch: 0,
            capacity: None,
        };
        change(&mut identity);
        Self { worker: Worker::new(identity), now: Instant::now() }
    }

    /// One that the store knows, with an empty queue.
    fn registered(permits: u32, prefetch: u32) -> Self {
        Self::new(permits, prefetch).introduced()
    }

    fn introduced(mut self) -> Self {
        let first = self.sends();
        self.answers(&first, Stepped { resync: true, ..Stepped::default() });
        self
    }

    /// One that runs these.
    fn running(permits: u32, tasks: impl IntoIterator<Item = Leased>) -> (Self, Vec<RunId>) {
        let mut bench = Self::registered(permits, 0);
        let step = bench.sends();
        bench.answers(&step, gives(tasks));
        let runs = bench.starts();
        (bench, runs)
    }

    /// Starts all that can start.
    fn starts(&mut self) -> Vec<RunId> {
        self.lookup(false);
        self.starts_without_lookup()
    }

    /// The same, without a look at the rate.
    fn starts_without_lookup(&mut self) -> Vec<RunId> {
        let starts = std::iter::from_fn(|| self.worker.start(self.now));
        starts.map(|leased| run(&leased)).collect()
    }

    /// Looks at the rate, and finds one or none. Whether that is news.
    fn lookup(&mut self, has_rate: bool) -> bool {
        let number = self.worker.begin_lookup(self.now);
        self.worker.finish_lookup(number, has_rate, self.now)
    }

    /// In how long it looks at the rate by itself.
    fn lookup_in(&self) -> Option<Duration> {
        self.worker.lookup_due(self.now).map(|at| at.saturating_duration_since(self.now))
    }

    #[track_caller]
    fn sends(&mut self) -> Step {
        match self.worker.next(self.now) {
            Next::Send(step) => *step,
            other => panic!("no step: {other:?}"),
        }
    }

    /// After how long it does something by itself.
    #[track_caller]
    fn sleeps(&mut self) -> Option<Duration> {
        match self.worker.next(self.now) {
            Next::Sleep(until) => until.map(|until| until.saturating_duration_since(self.now)),
            other => panic!("it does not sleep: {other:?}"),
        }
    }

    fn answers(&mut self, step: &Step, stepped: Stepped) -> Absorbed {
        self.worker.absorb(step.sequence, stepped, self.now).expect("the step under way")
    }

    fn fails(&mut self, step: &Step, kind: StateErrorKind) {
        self.worker.fail(step.sequence, &StateError::new(kind, "no answer"), self.now, 1);
    }

    fn orders(&mut self) -> Vec<(RunId, Because)> {
        std::iter::from_fn(|| self.worker.order()).map(|order| (order.run, order.because)).collect()
    }

    fn is_done(&mut self) -> bool {
        matches!(self.worker.next(self.now), Next::Done)
    }
}

fn outcomes(step: &Step) -> Vec<(TaskId, Outcome)> {
    step.complete.iter().map(|completion| (completion.id, completion.outcome.clone())).collect()
}

#[test]
fn the_step_after_a_resync_lists_all_held_leases() {
    let mut bench = Bench::new(3, 0);
    let first = bench.sends();
    assert_eq!((first.sequence, first.acknowledged, first.want), (1, 0, 0));
    assert_eq!(first.held, Some(Vec::new()));
    bench.answers(&first, Stepped { resync: true, ..Stepped::default() });
    let second = bench.sends();
    assert_eq!((second.sequence, second.acknowledged, second.want), (2, 1, 3));
    assert_eq!(second.held, Some(Vec::new()));

    bench.answers(&second, gives([task(1, 1), task(2, 1), task(3, 1)]));
    let runs = bench.starts();
    runs[..2].iter().for_each(|run| assert!(bench.worker.ended(*run, done())));
    let third = bench.sends();
    assert_eq!(third.held, None, "the store knows");
    bench.answers(&third, Stepped { resync: true, lost: vec![id(2)], ..Stepped::default() });
    let fourth = bench.sends();
    assert_eq!(fourth.held, Some(vec![(runs[2].id, runs[2].token)]));
    assert_eq!(outcomes(&fourth), [(id(2), done())], "with that the store may know it again");
}

#[test]
fn runs_that_end_during_a_step_are_completed_by_the_next() {
    let (mut bench, runs) = Bench::running(3, [task(1, 1), task(2, 1), task(3, 1)]);
    bench.worker.ended(runs[0], done());
    let step = bench.sends();
    assert_eq!((step.complete.len(), step.want), (1, 1), "refilled at once");
    bench.worker.ended(runs[1], done());
    bench.worker.ended(runs[2], Outcome::Error("why".into()));
    bench.sleeps();
    bench.answers(&step, gives([task(4, 1)]));
    bench.starts();
    let step = bench.sends();
    assert_eq!(outcomes(&step), [(id(2), done()), (id(3), Outcome::Error("why".into()))]);
    assert_eq!(step.want, 2);
}

#[test]
fn a_step_without_a_reply_is_repeated_with_all_held_leases() {
    let (mut bench, runs) = Bench::running(2, [task(1, 1), task(2, 1)]);
    bench.worker.ended(runs[0], done());
    bench.worker.progress(runs[1], Progress { done: 1, total: 3, text: String::new() });
    let lost = bench.sends();
    assert_eq!((lost.held.as_ref(), lost.progress.len()), (None, 1));
    bench.fails(&lost, StateErrorKind::TimedOut);
    assert!(bench.sleeps().unwrap() >= ms(20), "not at once");
    bench.now += ms(50);
    let again = bench.sends();
    assert_eq!((again.sequence, again.acknowledged), (lost.sequence + 1, lost.sequence - 1));
    assert_eq!(again.complete, lost.complete);
    assert_eq!(again.progress, lost.progress);
    assert_eq!(again.held, Some(vec![(runs[1].id, runs[1].token)]));
    assert!(
        bench.worker.absorb(lost.sequence, gives([task(9, 1)]), bench.now).is_none(),
        "a late answer is none"
    );
    bench.answers(&again, gives([task(4, 1)]));
    assert_eq!(bench.starts().len(), 1);
    assert_eq!(bench.sleeps(), Some(LEASE / 5));
}

/// The numbers of the lines of each run in a step.
fn logged(step: &Step) -> Vec<(TaskId, Vec<u32>)> {
    let numbers = |log: &RunLog| log.lines.iter().map(|line| line.number).collect();
    step.log.iter().map(|log| (log.id, numbers(log))).collect()
}

#[test]
fn lines_of_logs_are_sent_until_they_are_confirmed() {
    let (mut bench, runs) = Bench::running(2, [task(1, 1), task(2, 1)]);
    let at = bench.now;
    let log = |bench: &mut Bench, run, text: &str| bench.worker.log(run, at, text.into());
    log(&mut bench, runs[0], "a");
    log(&mut bench, runs[1], "b");
    bench.now += secs(6);
    let lost = bench.sends();
    assert_eq!(logged(&lost), [(id(1), vec![1]), (id(2), vec![1])]);
    assert_eq!(
        (lost.log[0].lines[0].text.as_str(), lost.log[0].lines[0].age),
        ("a", Micros::from_millis(6_000))
    );
    log(&mut bench, runs[0], "c");
    bench.fails(&lost, StateErrorKind::TimedOut);
    bench.worker.ended(runs[1], done());
    log(&mut bench, runs[1], "too late");
    bench.now += ms(50);
    let again = bench.sends();
    assert_eq!(logged(&again), [(id(2), vec![1]), (id(1), vec![1, 2])], "ended runs first");
    log(&mut bench, runs[0], "d");
    bench.answers(&again, Stepped::default());
    bench.now += secs(6);
    let rest = bench.sends();
    assert_eq!(logged(&rest), [(id(1), vec![3])]);
    bench.answers(&rest, Stepped { lost: vec![id(1)], ..Stepped::default() });
    log(&mut bench, runs[0], "not ours");
    assert_eq!(bench.orders(), [(runs[0], Because::Lost)]);
    bench.now += LEASE;
    assert_eq!(logged(&bench.sends()), []);
}

#[test]
fn a_log_between_two_steps_keeps_its_last_lines() {
    let (mut bench, runs) = Bench::running(1, [task(1, 1)]);
    for n in 0..100 {
        bench.worker.log(runs[0], bench.now, n.to_string());
    }
    bench.worker.ended(runs[0], done());
    let step = bench.sends();
    assert_eq!(logged(&step), [(id(1), (37..=100).collect::<Vec<_>>())]);
    assert_eq!((step.complete.len(), step.log[0].lines[63].text.as_str()), (1, "99"));
}

#[test]
fn retries_back_off_until_a_reply() {
    let mut bench = Bench::registered(1, 0);
    let mut waits = Vec::new();
    for _ in 0..12 {
        let step = bench.sends();
        bench.fails(&step, StateErrorKind::Unreachable);
        let wait = bench.sleeps().unwrap();
        waits.push(wait);
        bench.now += wait;
    }
    assert!(waits[0] < ms(50) && waits[11] >= secs(5) && waits[11] <= secs(10), "{waits:?}");
    assert!(
        bench.worker.connection.failing.as_ref().is_some_and(|failing| failing.passes && failing.tries == 12)
    );
    let step = bench.sends();
    let heard = bench.answers(&step, Stepped::default());
    assert_eq!(heard.outage, Some(waits.iter().sum()));
    let step = Bench::registered(1, 0).sends();
    let mut refused = Bench::registered(1, 0);
    let _ = refused.sends();
    refused.fails(&step, StateErrorKind::Denied);
    assert!(refused.worker.connection.failing.is_some_and(|failing| !failing.passes));
}

#[test]
fn an_idle_worker_backs_off_but_keeps_its_lease() {
    let mut bench = Bench::registered(4, 0);
    let mut waits = Vec::new();
    for _ in 0..7 {
        let step = bench.sends();
        assert_eq!(step.want, 4);
        bench.answers(&step, Stepped::default());
        let wait = bench.sleeps().unwrap();
        waits.push(wait.as_secs());
        bench.now += wait;
    }
    assert_eq!(waits, [2, 4, 7, 7, 7, 7, 7], "a quarter of the lease at most");
    let step = bench.sends();
    bench.answers(&step, Stepped { next: Some(Micros::from_millis(300)), ..Stepped::default() });
    assert_eq!(bench.sleeps(), Some(ms(300)), "the store knows of something");
    bench.now += ms(300);
    let step = bench.sends();
    bench.answers(&step, Stepped { more: true, ..Stepped::default() });
    let step = bench.sends();
    bench.answers(&step, gives([task(1, 1)]));
    bench.starts();
    assert_eq!(bench.sleeps(), Some(POLL_INTERVAL.0), "it begins again");
}

#[test]
fn a_notification_polls_at_once_with_a_free_permit_else_soon() {
    let mut bench = Bench::registered(1, 0);
    let step = bench.sends();
    bench.answers(&step, Stepped::default());
    bench.now += ms(500);
    bench.worker.notify();
    let step = bench.sends();
    let mut answered = step;
    for wait in [1, 2, 4, 8, 16, 20, 20] {
        bench.worker.notify();
        bench.answers(&answered, Stepped::default());
        assert_eq!(
            bench.sleeps(),
            Some(ms(wait)),
            "what came meanwhile counts, and no store makes it ask in a circle"
        );
        bench.now += ms(wait);
        answered = bench.sends();
    }
    let step = answered;
    bench.answers(&step, gives([task(1, 1)]));
    bench.starts();
    assert_eq!(bench.sleeps(), Some(LEASE / 5));
    bench.worker.notify();
    assert_eq!(bench.sleeps(), Some(secs(1)), "it may be asked to stop something");
}

#[test]
fn a_full_worker_steps_five_times_a_lease() {
    let (mut bench, _) = Bench::running(1, [task(1, 1)]);
    bench.now += LEASE / 5;
    let step = bench.sends();
    assert_eq!((step.want, step.held.as_ref(), step.complete.len()), (0, None, 0));
    bench.now += secs(2);
    bench.answers(&step, Stepped::default());
    assert_eq!(bench.sleeps(), Some(LEASE / 5 - secs(2)));
}

#[test]
fn only_a_worker_with_room_steps_again_for_what_is_left() {
    let mut bench = Bench::registered(1, 0);
    let step = bench.sends();
    bench.answers(&step, Stepped { more: true, ..gives([task(1, 1)]) });
    let runs = bench.starts();
    assert_eq!(bench.sleeps(), Some(LEASE / 5), "it has no room");
    bench.worker.ended(runs[0], done());
    let step = bench.sends();
    assert_eq!(step.want, 1);
    bench.answers(&step, Stepped { more: true, ..Stepped::default() });
    let step = bench.sends();
    bench.answers(&step, Stepped::default());
    assert_eq!(bench.sleeps(), Some(POLL_INTERVAL.0 * 2));
}

/// A worker with two permits that starts two tasks in 10 ms, which is a round trip, and its next step.
fn fast(identity: impl FnOnce(&mut Identity)) -> (Bench, Step) {
    let mut bench = Bench::with(2, |of| {
        of.prefetch = 8;
        identity(of);
    })
    .introduced();
    let step = bench.sends();
    assert_eq!((step.want, step.ahead), (2, 0), "its speed is not known yet");
    bench.now += ms(10);
    bench.answers(&step, gives([task(1, 1), task(2, 1)]));
    bench.starts().into_iter().for_each(|run| assert!(bench.worker.ended(run, done())));
    let step = bench.sends();
    (bench, step)
}

/// The worker of [`fast`] with two runs and four tasks in hand.
fn with_a_hand() -> (Bench, Vec<RunId>) {
    let (mut bench, step) = fast(|_| ());
    assert_eq!((step.want, step.ahead), (2, 4), "what starts in two round trips");
    bench.now += ms(10);
    bench.answers(&step, gives([6, 4, 5, 3, 8, 7].map(|number| task(number, 1))));
    let runs = bench.starts();
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), [id(3), id(4)], "the most urgent ones");
    (bench, runs)
}

#[test]
fn prefetched_tasks_start_without_a_round_trip() {
    let (mut bench, runs) = with_a_hand();
    bench.worker.ended(runs[0], done());
    assert_eq!(bench.starts().iter().map(|run| run.id).collect::<Vec<_>>(), [id(5)]);
    let step = bench.sends();
    assert_eq!((step.complete.len(), step.want, step.ahead), (1, 0, 3), "six start in two round trips");
    bench.answers(&step, gives([task(9, 1)]));
    bench.worker.ended(runs[1], done());
    bench.starts();
    assert_eq!(bench.sends().ahead, 0, "the store has no more");
}

#[test]
fn slow_work_and_held_back_work_are_not_prefetched() {
    let slow = |wait| {
        let mut bench = Bench::with(2, |of| of.prefetch = 8).introduced();
        let step = bench.sends();
        bench.answers(&step, gives([task(1, 1), task(2, 1)]));
        let runs = bench.starts();
        bench.now += wait;
        runs.into_iter().for_each(|run| _ = bench.worker.ended(run, done()));
        bench.sends().ahead
    };
    assert_eq!([ms(10), secs(10)].map(slow), [0, 0], "a reply came at once");
    let (_, step) = fast(|of| of.capacity = Some(9));
    assert_eq!(step.ahead, 0, "a capacity");
    let (_, step) = fast(|of| of.prefetch = 3);
    assert_eq!(step.ahead, 3, "no more than is set");
    let (mut bench, mut step) = fast(|_| ());
    bench.worker.restrict(&mut step, Some(1));
    assert_eq!(step.ahead, 0, "load");
    bench.now += secs(1);
    bench.answers(&step, gives([task(3, 1), task(4, 1)]));
    bench.starts().into_iter().for_each(|run| _ = bench.worker.ended(run, done()));
    assert_eq!(bench.sends().ahead, 0, "a round trip of a second: two tasks take longer than 50 ms");
}

#[test]
fn tasks_that_wait_in_hand_go_back() {
    let (mut bench, runs) = with_a_hand();
    assert_eq!(bench.sleeps(), Some(MAX_WAIT));
    bench.now += MAX_WAIT;
    let step = bench.sends();
    let back: Vec<_> = [5, 6, 7, 8].map(|number| (id(number), Outcome::Exchanged)).into();
    assert_eq!((outcomes(&step), step.want, step.ahead), (back.clone(), 0, 0));
    bench.answers(&step, gives([]));
    bench.worker.ended(runs[0], done());
    let step = bench.sends();
    assert_eq!((step.want, step.ahead), (1, 0));

    let (mut bench, runs) = with_a_hand();
    bench.worker.ended(runs[0], done());
    let step = bench.sends();
    bench.answers(&step, Stepped { may_prefetch: false, ..Stepped::default() });
    let step = bench.sends();
    assert_eq!(outcomes(&step), back[1..], "the queue was paused; a free permit keeps its task");
}

#[test]
fn runs_end_with_the_lease_and_are_still_reported() {
    let (mut bench, runs) = Bench::running(3, [task(1, 1), task(2, 1)]);
    let began = bench.now;
    bench.worker.ended(runs[0], done());
    while bench.now < began + LEASE {
        if let Next::Send(step) = bench.worker.next(bench.now) {
            bench.fails(&step, StateErrorKind::Unreachable);
        }
        assert_eq!(bench.orders(), []);
        let rest = bench.sleeps().unwrap();
        bench.now += rest.min(began + LEASE - bench.now);
    }
    bench.sleeps();
    assert_eq!(bench.orders(), [(runs[1], Because::LeaseEnded)]);
    assert_eq!(bench.worker.free(), 2, "its place is free when it has ended");
    bench.now += secs(10);
    let step = bench.sends();
    let still = [(runs[1].id, runs[1].token)];
    // Unsaid, the store would take it for a lease that was lost on the way, and lease it again as if it had never run.
    assert_eq!((step.held.as_deref(), outcomes(&step)), (Some(&still[..]), vec![(id(1), done())]));
    assert!(bench.worker.ended(runs[1], Outcome::Released));
    bench.answers(&step, Stepped::default());
    assert_eq!(outcomes(&bench.sends()), [(id(2), Outcome::Released)]);
}

/// A store that was rolled back may have leased by a request that came again, and nobody has heard of it.
#[test]
fn all_held_leases_are_listed_once_a_lease() {
    let (mut bench, runs) = Bench::running(1, [task(1, 1)]);
    let until = bench.now + LEASE * 3;
    let mut said = Vec::new();
    while bench.now < until {
        if let Next::Send(step) = bench.worker.next(bench.now) {
            said.extend(step.held.clone());
            bench.answers(&step, Stepped::default());
        }
        let rest = bench.sleeps().unwrap();
        bench.now += rest.min(LEASE / 5);
    }
    let own = vec![(runs[0].id, runs[0].token)];
    assert!((2..=3).contains(&said.len()) && said.iter().all(|holding| *holding == own), "{said:?}");
}

#[test]
fn results_rejected_past_the_lease_become_failures() {
    let (mut bench, runs) = Bench::running(1, [task(1, 1)]);
    let began = bench.now;
    bench.worker.ended(runs[0], done());
    while bench.now < began + LEASE {
        if let Next::Send(step) = bench.worker.next(bench.now) {
            assert_eq!(outcomes(&step), [(id(1), done())]);
            bench.fails(&step, StateErrorKind::Full);
        }
        let rest = bench.sleeps().unwrap();
        bench.now += rest.min(began + LEASE - bench.now);
    }
    bench.now += secs(10);
    let step = bench.sends();
    assert!(matches!(&outcomes(&step)[..], [(_, Outcome::Error(_))]), "{step:?}");
    assert_eq!(bench.answers(&step, Stepped::default()).refused, [id(1)], "and that is told");
}

#[test]
fn a_reply_after_the_lease_reports_the_lost_run() {
    let (mut bench, runs) = Bench::running(1, [task(1, 1)]);
    let until = bench.now + LEASE * 2;
    bench.worker.ended(runs[0], done());
    while bench.now < until {
        if let Next::Send(step) = bench.worker.next(bench.now) {
            bench.fails(&step, StateErrorKind::Full);
        }
        let rest = bench.sleeps().unwrap();
        assert!(rest <= secs(10), "nobody waits longer to hear it: {rest:?}");
        bench.now += rest;
    }
    let step = bench.sends();
    let heard = bench.answers(&step, Stepped { lost: vec![id(1)], ..Stepped::default() });
    assert_eq!((heard.lost, heard.refused), (vec![runs[0]], vec![id(1)]));
}

#[test]
fn tasks_that_arrive_after_the_lease_do_not_start() {
    let mut bench = Bench::registered(1, 0);
    let step = bench.sends();
    bench.now += LEASE;
    let heard = bench.answers(&step, gives([task(1, 1)]));
    assert_eq!((heard.leased, bench.starts().len()), (0, 0));
    let step = bench.sends();
    assert_eq!(step.held, Some(Vec::new()), "it goes back uncounted");

    bench.answers(&step, gives([task(1, 2)]));
    bench.now += LEASE;
    assert_eq!(bench.starts(), [], "nor after a stall");
}

#[test]
fn a_lost_run_has_to_end_and_one_leased_anew_is_another_run() {
    let (mut bench, runs) = Bench::running(2, [task(1, 1)]);
    bench.now += secs(6);
    let step = bench.sends();
    let heard = bench.answers(&step, Stepped { lost: vec![id(1)], ..gives([task(1, 2)]) });
    assert_eq!(heard.lost, [runs[0]]);
    assert_eq!(bench.orders(), [(runs[0], Because::Lost)]);
    let again = bench.starts();
    assert_eq!((again[0].id, again[0].token.attempt), (id(1), 2));
    assert!(!bench.worker.ended(runs[0], done()));
    assert!(bench.worker.ended(again[0], done()));
    assert_eq!(
        bench.sends().complete.iter().map(|completion| completion.token.attempt).collect::<Vec<_>>(),
        [2]
    );
}

#[test]
fn a_run_completed_in_a_transaction_is_not_reported_again() {
    let (mut bench, runs) = Bench::running(2, [task(1, 1), task(2, 1)]);
    let beat = bench.sleeps();
    assert!(beat > Some(Duration::ZERO));
    bench.worker.completed(runs[0]);
    // At once: what waits for the task or its key goes on with it.
    let step = bench.sends();
    assert_eq!((outcomes(&step), step.want, step.held.clone()), (vec![], 1, None));
    bench.answers(&step, Stepped::default());
    // A step that was under way may have said that it has the run, and another one may have the task by now.
    bench.now += LEASE / 5;
    let step = bench.sends();
    bench.answers(&step, Stepped { lost: vec![id(2)], ..Stepped::default() });
    assert_eq!(bench.orders(), [(runs[1], Because::Lost)]);
    assert_eq!(bench.worker.free(), 1);
    bench.worker.completed(runs[1]);
    assert!(bench.worker.held.is_empty());
    assert_eq!(bench.worker.free(), 2);
    // Nor is an order of before given to a later run of the task.
    bench.worker.stop(bench.now);
    assert_eq!(bench.orders(), []);
}

#[test]
fn a_result_rejected_by_the_store_is_reported() {
    let (mut bench, runs) = Bench::running(1, [task(1, 1)]);
    bench.worker.ended(runs[0], done());
    let step = bench.sends();
    let heard =
        bench.answers(&step, Stepped { lost: vec![id(1)], refused: vec![id(5)], ..Stepped::default() });
    assert_eq!((heard.lost, heard.refused), (vec![runs[0]], vec![id(5)]));
    assert_eq!(bench.worker.held.ended.len(), 0);
}

#[test]
fn a_stop_request_is_passed_on_once_and_the_run_given_back() {
    let (mut bench, runs) = Bench::running(2, [task(1, 1), task(2, 1)]);
    let stop =
        || Stepped { stop: vec![(id(1), Stop::Cancel), (id(2), Stop::Deadline)], ..Stepped::default() };
    let mut orders = Vec::new();
    for _ in 0..2 {
        bench.now += secs(6);
        let step = bench.sends();
        bench.answers(&step, stop());
        orders.extend(bench.orders());
    }
    let asked = [(runs[0], Because::Asked(Stop::Cancel)), (runs[1], Because::Asked(Stop::Deadline))];
    assert_eq!(orders, asked);
    bench.worker.ended(runs[0], Outcome::Released);
    bench.worker.ended(runs[1], done());
    let step = bench.sends();
    assert_eq!(
        outcomes(&step),
        [(id(1), Outcome::Released), (id(2), done())],
        "one was done before it noticed"
    );

    let mut ahead = Bench::registered(1, 1);
    let step = ahead.sends();
    ahead.answers(&step, gives([task(1, 1), task(2, 1)]));
    ahead.starts();
    ahead.now += MAX_WAIT / 2;
    ahead.worker.connection.again = true;
    let step = ahead.sends();
    ahead.answers(&step, Stepped { stop: vec![(id(2), Stop::Cancel)], ..gives([]) });
    assert_eq!(outcomes(&ahead.sends()), [(id(2), Outcome::Exchanged)], "it has not begun");
    assert_eq!(ahead.orders(), []);
}

#[test]
fn an_exchange_swaps_the_least_urgent_for_the_most_urgent_task() {
    let mut bench = Bench::registered(5, 0);
    bench.worker.pace.ahead = Some(2);
    let step = bench.sends();
    assert_eq!(step.want, 2, "no more than wait for slots");
    bench.answers(&step, gives([task(5, 1), task(6, 1)]));
    assert_eq!(bench.sleeps(), Some(LEASE / 5));
    let number = bench.worker.exchange();
    let step = bench.sends();
    assert_eq!((outcomes(&step), step.want), (vec![(id(6), Outcome::Exchanged)], 1));
    assert!(bench.worker.exchanged() < number);
    bench.answers(&step, gives([task(1, 1)]));
    assert_eq!(bench.worker.exchanged(), number);
    assert_eq!(bench.worker.start(bench.now), None, "it has no slot");
    assert_eq!(bench.worker.start_in_slot(bench.now).unwrap().task.id, id(1));
    assert_eq!(bench.sends().want, 1);
}

#[test]
fn a_stopping_worker_gives_back_tasks_and_waits_for_runs() {
    let mut bench = Bench::registered(2, 1);
    let step = bench.sends();
    bench.answers(&step, gives([task(1, 1), task(2, 1), task(3, 1)]));
    let runs = bench.starts();
    bench.worker.stop(bench.now + secs(20));
    let step = bench.sends();
    assert_eq!((outcomes(&step), step.want), (vec![(id(3), Outcome::Exchanged)], 0));
    bench.answers(&step, gives([]));
    bench.worker.ended(runs[0], done());
    let step = bench.sends();
    assert_eq!((outcomes(&step), step.lease), (vec![(id(1), done())], Micros::from_duration(LEASE)));
    bench.answers(&step, gives([]));
    assert_eq!(bench.orders(), []);
    bench.now += secs(6);
    let step = bench.sends();
    bench.answers(&step, gives([]));
    bench.now += secs(14);
    bench.sleeps();
    assert_eq!(bench.orders(), [(runs[1], Because::Stopping)], "the grace is over");
    bench.worker.ended(runs[1], Outcome::Released);
    let step = bench.sends();
    assert_eq!((outcomes(&step), step.lease), (vec![(id(2), Outcome::Released)], MIN_LEASE), "it parts");
    assert!(!bench.is_done());
    bench.answers(&step, gives([]));
    assert!(bench.is_done());
}

#[test]
fn a_worker_that_stops_gives_back_what_a_step_under_way_brings() {
    let mut bench = Bench::registered(2, 0);
    let step = bench.sends();
    bench.worker.stop(bench.now);
    bench.answers(&step, gives([task(1, 1)]));
    assert_eq!(bench.starts(), []);
    let step = bench.sends();
    assert_eq!(outcomes(&step), [(id(1), Outcome::Exchanged)]);
    bench.answers(&step, gives([]));
    assert!(bench.is_done());
}

#[test]
fn a_stopping_worker_does_not_wait_forever_for_store_or_run() {
    let mut idle = Bench::new(1, 0);
    idle.worker.stop(idle.now);
    assert!(idle.is_done(), "it never said a word");

    let mut idle = Bench::registered(1, 0);
    idle.worker.stop(idle.now + secs(60));
    for _ in 0..5 {
        let step = idle.sends();
        idle.fails(&step, StateErrorKind::Unreachable);
        idle.now += secs(10);
    }
    assert!(idle.is_done(), "nothing is lost if it just goes");

    let (mut bench, runs) = Bench::running(1, [task(1, 1)]);
    bench.worker.stop(bench.now);
    bench.sleeps();
    assert_eq!(bench.orders(), [(runs[0], Because::Stopping)]);
    bench.now += LEASE;
    bench.sleeps();
    let _ = bench.orders();
    assert!(bench.is_done(), "it does not end, and is nobody's any more");
}

#[test]
fn unreported_runs_are_lost_when_a_worker_gives_up() {
    let (mut bench, runs) = Bench::running(2, [task(1, 1), task(2, 1)]);
    bench.worker.ended(runs[0], done());
    bench.worker.stop(bench.now);
    bench.sleeps();
    assert_eq!(bench.orders(), [(runs[1], Because::Stopping)]);
    let step = bench.sends();
    bench.fails(&step, StateErrorKind::Unreachable);
    bench.now += LEASE;
    bench.sleeps();
    assert_eq!(bench.orders(), [(runs[1], Because::LeaseEnded)]);
    assert!(bench.is_done());
    assert_eq!(bench.worker.give_up(), [runs[0]]);
    assert!(!bench.worker.ended(runs[1], done()), "nor does one that ends later count");
    assert!(bench.worker.held.is_empty());
}

#[test]
fn large_results_travel_in_several_steps() {
    let (mut bench, runs) = Bench::running(3, [task(1, 1), task(2, 1), task(3, 1)]);
    let large = Json::of(&"x".repeat(3 << 20)).unwrap();
    runs.iter().for_each(|run| assert!(bench.worker.ended(*run, Outcome::Done(large.clone()))));
    for left in [2, 1, 0] {
        let step = bench.sends();
        assert_eq!((step.complete.len(), step.want), (1, 3 - left));
        bench.answers(&step, gives([]));
    }
    bench.sleeps();
}

#[test]
fn bad_input_is_named() {
    let check =
        |change: fn(&mut Identity)| Bench::with(1, change).worker.identity.check().unwrap_err().to_string();
    assert_eq!(check(|one| one.permits = 0), "0 jobs at once and 0 ahead: give 1 to 10000 together");
    assert_eq!(
        check(|one| one.kinds.clear()),
        "a worker without a handler: give it one for each kind that it serves"
    );
    assert_eq!(check(|one| one.lease = Micros::from_millis(10)), "lease 10ms: give 1 s to a day");
    assert!(check(|one| one.kinds = vec![Kind::default(); 1001]).contains("1001 kinds"));
}

#[test]
fn a_task_starts_once_a_later_lookup_finds_no_rate() {
    let mut bench = Bench::registered(2, 1);
    assert_eq!(bench.lookup_in(), None, "an idle worker looks at nothing");
    let step = bench.sends();
    let early = bench.worker.begin_lookup(bench.now);
    bench.answers(&step, gives([task(1, 1), task(2, 1), task(3, 1)]));
    assert!(!bench.worker.finish_lookup(early, false, bench.now));
    assert_eq!(
        bench.starts_without_lookup(),
        [],
        "the rate may have been set before the lease and after the look"
    );
    assert_eq!(bench.lookup_in(), Some(Duration::ZERO));
    bench.lookup(false);
    assert_eq!((bench.starts_without_lookup().len(), bench.lookup_in()), (2, None));

    let one = RunId { id: id(1), token: task(1, 1).task.token };
    bench.now += MAX_LOOKUP_AGE + ms(1);
    bench.worker.ended(one, done());
    assert_eq!(bench.starts_without_lookup(), [], "the look is too old");
    assert_eq!(bench.lookup_in(), Some(Duration::ZERO));
    bench.lookup(false);
    assert_eq!(bench.starts_without_lookup().len(), 1);
}

#[test]
fn a_found_rate_keeps_one_task_and_gives_the_others_back() {
    let mut bench = Bench::registered(3, 3);
    let step = bench.sends();
    bench.answers(&step, gives([task(1, 1), task(2, 1), task(3, 1)]));
    assert!(bench.lookup(true));
    assert_eq!(bench.starts_without_lookup(), []);
    let step = bench.sends();
    let back = [(id(2), Outcome::Exchanged), (id(3), Outcome::Exchanged)];
    assert_eq!((outcomes(&step), step.want), (back.into(), 0));
    bench.answers(&step, gives([]));
    assert_eq!(bench.worker.start_in_slot(bench.now).unwrap().task.id, id(1));
}

#[test]
fn tasks_start_at_once_within_a_second_of_a_removed_rate() {
    let mut bench = Bench::registered(3, 3);
    bench.worker.pace.ahead = Some(1);
    let step = bench.sends();
    bench.answers(&step, gives([task(1, 1)]));
    assert_eq!(bench.lookup_in(), Some(Duration::ZERO));
    assert!(!bench.lookup(true));
    assert_eq!(bench.lookup_in(), Some(LOOKUP_INTERVAL));
    bench.now += LOOKUP_INTERVAL;
    assert_eq!(bench.lookup_in(), Some(Duration::ZERO));
    assert!(bench.lookup(false));
    assert_eq!(bench.worker.start_in_slot(bench.now), None, "there are no slots any more");
    assert_eq!(bench.starts_without_lookup().len(), 1);
    assert_eq!(bench.sends().want, 2, "for each permit");
}

#[test]
fn nothing_starts_while_the_rate_cannot_be_read() {
    let mut bench = Bench::registered(1, 0);
    let step = bench.sends();
    bench.answers(&step, gives([task(1, 1)]));
    let number = bench.worker.begin_lookup(bench.now);
    assert_eq!(bench.lookup_in(), None, "one is under way");
    assert!(bench.worker.fail_lookup(number, bench.now, 1));
    assert_eq!(bench.starts_without_lookup(), []);
    let again = bench.lookup_in().unwrap();
    assert!(again > Duration::ZERO && again <= LOOKUP_INTERVAL, "{again:?}");
    bench.now += again;
    let number = bench.worker.begin_lookup(bench.now);
    assert!(!bench.worker.fail_lookup(number, bench.now, 1), "that was known");
    bench.now += LOOKUP_INTERVAL;
    bench.lookup(false);
    assert_eq!(bench.starts_without_lookup().len(), 1);
}
