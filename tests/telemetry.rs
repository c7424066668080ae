//! What a subscriber sees: names, levels and fields are kept, and are those of the documentation. This is a
//! program of its own, because a process has one subscriber.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::{cell::RefCell, collections::BTreeMap, fmt::Debug, sync::Once, time::Duration};

use common::{Starts, add_in_turn, all_done, far, memory, ms, shard, shards, spawned};
use interval_queue::{
    IntervalQueue, JobOptions, Limits, MaxRunning, OnExisting, Retry, SECOND, SpaceBy, WhenStateIsLost,
};
use interval_queue_conformance::Faulty;
use tokio::time::sleep;
use tracing::{Instrument, Level, Subscriber, field::Field, info, info_span, span};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

/// The page that lists all names.
const PAGE: &str = include_str!("../src/telemetry/mod.rs");

/// A span that was made, or an event.
#[derive(Clone, Debug)]
struct Seen {
    name: String,
    level: Level,
    message: String,
    fields: BTreeMap<String, String>,
    /// The spans around it, from the outermost on.
    within: Vec<String>,
}

impl Seen {
    fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or_else(|| panic!("no {field} in {self:?}"), String::as_str)
    }

    fn number(&self, field: &str) -> u64 {
        self.get(field).parse().unwrap()
    }
}

thread_local! {
    // A test with all its tasks is one thread.
    static SEEN: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
    static CLOSED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

struct Fields(BTreeMap<String, String>);

impl tracing::field::Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

/// Notes all there is to see.
struct Capture;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Capture {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let mut fields = Fields(BTreeMap::new());
        attributes.record(&mut fields);
        let mut within = scope(context.span_scope(id));
        within.pop();
        note(attributes.metadata(), fields, within);
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        note(event.metadata(), fields, scope(context.event_scope(event)));
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        let name = context.span(&id).map(|span| span.name().to_owned());
        CLOSED.with_borrow_mut(|closed| closed.extend(name));
    }
}

fn scope<'a, S: LookupSpan<'a>>(scope: Option<tracing_subscriber::registry::Scope<'a, S>>) -> Vec<String> {
    scope.into_iter().flat_map(|scope| scope.from_root()).map(|span| span.name().to_owned()).collect()
}

fn note(metadata: &tracing::Metadata<'_>, mut fields: Fields, within: Vec<String>) {
    let message = fields.0.remove("message").unwrap_or_default();
    let (name, level) = (metadata.name().to_owned(), *metadata.level());
    let seen = Seen { name, level, message, fields: fields.0, within };
    if metadata.target() == "interval_queue" {
        check_page(&seen);
    }
    SEEN.with_borrow_mut(|all| all.push(seen));
}

/// Asserts that the documentation has a row for it, with its level and every field.
fn check_page(seen: &Seen) {
    let name = format!("`{}`", seen.name);
    let row = PAGE.lines().find(|line| line.starts_with("//! | `") && line.contains(&name));
    let row = row.unwrap_or_else(|| panic!("not documented: {seen:?}"));
    let before = row.replace("the same", "`rates`, `max_running`, `rates_before`, `max_running_before`");
    assert!(row.contains(&seen.level.to_string().to_lowercase()), "another level: {seen:?}");
    for field in seen.fields.keys().filter(|field| !["queue", "shard"].contains(&field.as_str())) {
        assert!(before.contains(&format!("`{field}`")), "{field} is not documented: {seen:?}");
    }
    assert_eq!(seen.get("queue"), "test");
    assert_eq!(seen.get("shard").len(), 16, "{seen:?}");
}

fn capture() {
    // One for all tests: what is wanted of an event is decided once for a process.
    static CAPTURE: Once = Once::new();
    CAPTURE.call_once(|| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Capture)).unwrap();
    });
}

/// All of that name until now.
fn seen(name: &str) -> Vec<Seen> {
    SEEN.with_borrow(|all| all.iter().filter(|seen| seen.name == name).cloned().collect())
}

fn one(name: &str) -> Seen {
    let mut all = seen(name);
    assert_eq!(all.len(), 1, "{name}: {all:?}");
    all.remove(0)
}

fn names(seen: &Seen) -> Vec<&str> {
    seen.fields.keys().map(String::as_str).collect()
}

async fn queue(interval: Duration) -> IntervalQueue {
    capture();
    shard(&memory().1, interval).await
}

#[tokio::test(start_paused = true)]
async fn unspaced_starts_are_logged_once() {
    capture();
    let open = || IntervalQueue::builder("test").space_by(SpaceBy::Starts);
    let far = open().rate(5).per(SECOND).burst(20).open(memory().1).await.unwrap();
    let near = open().interval(ms(100)).open(memory().1).await.unwrap();
    SEEN.take();
    for queue in [far, near] {
        for _ in 0..3 {
            queue.add(async {}).await.unwrap().await.unwrap();
        }
    }
    let told = one("starts.unspaced");
    assert_eq!((told.level, told.number("interval_us")), (Level::WARN, 200_000));
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_in_its_span_within_the_one_it_was_added_in() {
    let queue = queue(ms(100)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    SEEN.take();
    CLOSED.take();
    let job = async {
        info!(name: "first", "in the job");
        sleep(ms(10)).await;
        info!(name: "second", "in the job");
    };
    let options = JobOptions::new().weight(2).priority(3);
    let handle = queue.job(job).options(options).add().instrument(info_span!("request")).await.unwrap();
    assert_eq!(CLOSED.with_borrow(Vec::len), 0, "its parent stays open");
    handle.await.unwrap();

    let span = one("job");
    assert_eq!((span.level, span.within.as_slice()), (Level::INFO, &["request".to_owned()][..]));
    let fields = ["late_us", "priority", "queue", "shard", "ticket", "waited_us", "weight"];
    assert_eq!(names(&span), fields, "no attempt: it is not tried again");
    assert_eq!(span.get("queue"), "test");
    assert_eq!(span.get("shard"), queue.shard_id().to_string());
    assert_eq!((span.number("ticket"), span.number("weight"), span.number("priority")), (2, 2, 3));
    let (waited, late) = (span.number("waited_us"), span.number("late_us"));
    assert!((90_000..150_000).contains(&waited), "the slot is 100 ms after that of the first: {waited}");
    assert!(late < 50_000, "from the slot, not from the call: {late}");
    for event in ["first", "second", "job.started", "job.finished"] {
        assert_eq!(one(event).within, ["request", "job"], "{event}");
    }
    assert_eq!(names(&one("job.started")), fields);
    let finished = one("job.finished");
    assert_eq!(names(&finished), ["outcome", "queue", "ran_us", "shard", "ticket"]);
    assert_eq!((finished.get("outcome"), finished.level), ("ok", Level::DEBUG));
    assert!((10_000..20_000).contains(&finished.number("ran_us")), "{finished:?}");
    assert_eq!(CLOSED.take(), ["job", "request"]);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_a_span_within_that_of_the_call() {
    let queue = queue(ms(10)).await;
    let mut failures = 2;
    let make = move || {
        failures -= 1;
        let result = if failures >= 0 { Err(()) } else { Ok(()) };
        async move { result }
    };
    let handle = queue.retrying(Retry::times(5), make).add().instrument(info_span!("request")).await.unwrap();
    handle.await.unwrap().unwrap();
    let attempts = seen("job");
    assert_eq!(attempts.iter().map(|span| span.number("attempt")).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(attempts.iter().all(|span| span.within == ["request"]), "{attempts:?}");
    assert!(attempts.iter().all(|span| span.fields.contains_key("waited_us")), "{attempts:?}");
    let outcomes = seen("job.finished");
    assert_eq!(outcomes.iter().map(|end| end.get("outcome")).collect::<Vec<_>>(), ["failed", "failed", "ok"]);
    assert!(seen("job.started").iter().all(|start| start.fields.contains_key("attempt")));
}

#[tokio::test(start_paused = true)]
async fn a_turn_leaves_the_callers_span_as_it_is() {
    let queue = queue(ms(10)).await;
    async {
        let turn = queue.turn().await.unwrap();
        info!(name: "in_turn", "in place");
        drop(turn);
    }
    .instrument(info_span!("request"))
    .await;
    assert!(seen("job").is_empty());
    for event in ["job.started", "in_turn", "job.finished"] {
        assert_eq!(one(event).within, ["request"]);
    }
    assert_eq!(one("job.finished").get("outcome"), "ok");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_job_is_logged() {
    let queue = queue(ms(10)).await;
    queue.add(async { panic!("on purpose") }).await.unwrap().await.unwrap_err();
    let limited = JobOptions::new().timeout(ms(5));
    queue.job(std::future::pending::<()>()).options(limited).add().await.unwrap().await.unwrap_err();
    let endless = queue.add(std::future::pending::<()>()).await.unwrap();
    sleep(ms(50)).await;
    queue.shutdown(ms(1)).await;
    endless.await.unwrap_err();
    let ends = seen("job.finished");
    let ends: Vec<_> = ends.iter().map(|end| (end.get("outcome"), end.level)).collect();
    let expected = [("panicked", Level::WARN), ("timed_out", Level::WARN), ("cancelled", Level::DEBUG)];
    assert_eq!(ends, expected);
}

#[tokio::test(start_paused = true)]
async fn a_late_job_is_logged_where_it_was_added() {
    let queue = queue(ms(1_000)).await;
    queue.pause().await.unwrap();
    let options = JobOptions::new().start_within(ms(300)).priority(7);
    let handle =
        queue.job(async {}).options(options.clone()).add().instrument(info_span!("request")).await.unwrap();
    handle.await.unwrap_err();
    let event = one("job.too_late");
    assert_eq!(event.within, ["request"]);
    assert_eq!((event.get("priority"), event.get("weight"), event.level), ("7", "1", Level::INFO));
    assert!((300_000..400_000).contains(&event.number("waited_us")), "{event:?}");

    queue.resume().await.unwrap();
    queue.add(async {}).await.unwrap().await.unwrap();
    // Its slot is known to be too far away.
    queue.job(async {}).options(options).add().instrument(info_span!("other")).await.unwrap_err();
    assert_eq!(seen("job.too_late").len(), 2);
    assert_eq!(seen("job.too_late")[1].within, ["other"]);
}

#[tokio::test(start_paused = true)]
async fn a_missed_slot_is_logged() {
    capture();
    let (_, wire, queue) = far(ms(20)).await;
    let starts = Starts::new();
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, 10).await;
    // One reply takes three seconds; what it grants is stale when it arrives.
    wire.change(|faults| faults.delay_after = ms(3_000));
    sleep(ms(30)).await;
    wire.change(|faults| faults.delay_after = ms(0));
    all_done(handles).await;
    let lost = seen("slot.lost");
    assert!(!lost.is_empty());
    for event in lost {
        assert_eq!(names(&event), ["queue", "reason", "shard", "ticket"]);
        assert_eq!((event.get("reason"), event.level), ("late_start", Level::INFO));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unwanted_slot_is_logged() {
    let queue = queue(ms(100)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    let next = queue.add(async {}).await.unwrap();
    // Its slot has been granted half a lead before, at least half a millisecond.
    sleep(next.estimated_start().unwrap() - Duration::from_micros(500)).await;
    assert!(next.cancel());
    let lost = one("slot.lost");
    assert_eq!((lost.get("reason"), lost.number("ticket")), ("unwanted", next.ticket().await.unwrap().get()));
    assert_eq!(lost.level, Level::DEBUG);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_logged_with_its_kind_and_its_end() {
    capture();
    let (_, wire, queue) = far(ms(50)).await;
    wire.change(|faults| faults.outage = true);
    let added = spawned(&queue, async {});
    sleep(ms(30_000)).await;
    wire.change(|faults| faults.outage = false);
    added.await.unwrap();
    let failed = seen("state.failed");
    assert!(failed.len() > 3, "{failed:?}");
    assert_eq!(names(&failed[0]), ["error", "kind", "queue", "shard"]);
    assert_eq!((failed[0].get("kind"), failed[0].level), ("unreachable", Level::WARN));
    let back = one("state.answers");
    assert_eq!((names(&back), back.level), (vec!["outage_us", "queue", "shard"], Level::INFO));
    assert!(back.number("outage_us") >= 30_000_000 - 1_000, "{back:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_runs_alone_logs_it_once_per_outage() {
    capture();
    let wire = Faulty::new(memory().1);
    let alone = WhenStateIsLost::RunAlone { after: ms(2_000), shards: 3 };
    let builder = IntervalQueue::builder("test").interval(ms(100)).linger(ms(0)).when_state_is_lost(alone);
    let queue = builder.open(wire.clone()).await.unwrap();
    wire.change(|faults| faults.outage = true);
    queue.add(async {}).await.unwrap().await.unwrap();
    let starts = Starts::new();
    let jobs = add_in_turn(std::slice::from_ref(&queue), &starts, 20).await;
    wire.change(|faults| faults.outage = false);
    queue.tick().await;
    queue.add(async {}).await.unwrap().await.unwrap();
    all_done(jobs).await;
    let began = one("shard.alone");
    assert_eq!((began.number("shards"), began.number("pace_us"), began.level), (3, 300_000, Level::WARN));
    assert!(began.message.contains("runs alone"), "{began:?}");
    let back = one("shard.rejoined");
    assert_eq!((back.number("settling_us"), back.level), (20_000_000, Level::INFO));
    assert_eq!(
        names(&seen("job")[0]),
        ["priority", "queue", "shard", "waited_us", "weight"],
        "no ticket, no slot"
    );
}

#[tokio::test(start_paused = true)]
async fn a_shard_logs_changes_by_others_when_it_sees_them() {
    capture();
    let state = memory().1;
    let both = shards(2, &state, ms(100)).await;
    let starts = Starts::new();
    let jobs = add_in_turn(&both[1..], &starts, 30).await;
    let by = |name: &str, shard: usize| {
        let id = both[shard].shard_id().to_string();
        seen(name).iter().filter(|seen| seen.get("shard") == id).cloned().collect::<Vec<_>>()
    };
    both[0].pause().await.unwrap();
    assert_eq!(by("queue.paused", 0).len(), 1, "it did it itself");
    sleep(ms(2_000)).await;
    assert_eq!(by("queue.paused", 1).len(), 1);
    both[0].resume().await.unwrap();
    both[1].tick().await;
    assert_eq!((by("queue.resumed", 0).len(), by("queue.resumed", 1).len()), (1, 1));
    both[0].hold(ms(700)).await.unwrap();
    both[0].set_interval(ms(50)).await.unwrap();
    both[0].set_max_running(MaxRunning::AtMost(9)).await.unwrap();
    all_done(jobs).await;
    assert_eq!(by("queue.held", 0)[0].number("hold_us"), 700_000);
    assert!(by("queue.held", 1)[0].number("hold_us") <= 700_000);
    let settings = by("queue.settings", 0);
    assert_eq!(settings.len(), 2, "{settings:?}");
    assert_eq!((settings[0].get("rates"), settings[0].get("rates_before")), ("every 50ms", "every 100ms"));
    assert_eq!(settings[1].number("max_running"), 9);
    assert!(!settings[1].fields.contains_key("max_running_before"), "there was no limit");
    assert!(!by("queue.settings", 1).is_empty());

    shards(1, &state, ms(70)).await;
    let kept = one("queue.kept");
    assert_eq!((kept.get("rates"), kept.get("rates_asked")), ("every 50ms", "every 70ms"));
    assert_eq!((kept.number("max_running"), kept.level), (9, Level::WARN));
    let builder = IntervalQueue::builder("test").interval(ms(70)).on_existing(OnExisting::Replace);
    builder.open(state.clone()).await.unwrap();
    let replaced = one("queue.replaced");
    assert_eq!((replaced.get("rates"), replaced.get("rates_before")), ("every 70ms", "every 50ms"));
    assert_eq!(replaced.level, Level::WARN);
    assert!(by("queue.settings", 0).len() == 2, "who opens it has no settings from before");
}

#[test]
fn a_parent_that_only_the_adding_thread_knows_is_no_harm() {
    capture();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let local = std::sync::Arc::new(tracing_subscriber::registry().with(Capture));
    let _local = tracing::subscriber::set_default(local);
    let queue = runtime.block_on(shards(1, &memory().1, ms(1))).remove(0);
    let request = info_span!("request");
    let job = async {
        tokio::task::yield_now().await;
        info!(name: "elsewhere", "on the thread of the runtime");
        one("elsewhere").within
    };
    let handle = runtime.block_on(queue.add(job).instrument(request)).unwrap();
    assert_eq!(runtime.block_on(handle).unwrap(), ["request", "job"]);
    runtime.block_on(queue.add(async {}).instrument(info_span!("next"))).unwrap();
    runtime.block_on(queue.wait_idle());
}

#[cfg(feature = "http")]
#[tokio::test(start_paused = true)]
async fn an_unusable_value_of_a_response_is_named_in_a_warning() {
    use http::{HeaderMap, HeaderValue, StatusCode};
    let observer = interval_queue::http::Observer::new(queue(ms(10)).await);
    let warned = async |status: StatusCode, name: &'static str, value: &'static str| {
        SEEN.take();
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_static(value))]);
        observer.observe(status, &headers).await;
        let warnings = SEEN.take().into_iter().filter(|seen| seen.level == Level::WARN);
        warnings.map(|warning| warning.message).collect::<Vec<_>>()
    };
    for value in ["-17", "Sun, 06 Nov 1994 08:49:37 GMT", "31536000", "tomorrow"] {
        let warnings = warned(StatusCode::TOO_MANY_REQUESTS, "retry-after", value).await;
        assert!(warnings.len() == 1 && warnings[0].contains(value), "{value}: {warnings:?}");
    }
    // Where it makes no difference nobody is warned at every response.
    let warnings = warned(StatusCode::OK, "ratelimit", "what?").await;
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_of_several_limits_has_one_span_for_all_its_queues() {
    capture();
    let queues = [shard(&memory().1, ms(100)).await, shard(&memory().1, ms(10)).await];
    let limits = Limits::new(queues.clone()).unwrap();
    SEEN.take();
    CLOSED.take();
    let job = limits.run(async { info!("the job") });
    job.instrument(info_span!("request")).await.unwrap();
    let span = one("job");
    assert_eq!(
        (span.get("shard"), &span.within[..]),
        (queues[0].shard_id().as_str(), &["request".to_owned()][..])
    );
    assert!(span.number("waited_us") < 10_000 && span.number("late_us") < 50_000, "{span:?}");
    let within = ["request", "job"];
    for name in ["job.started", "job.finished"] {
        let events = seen(name);
        let shards: Vec<_> = events.iter().map(|event| event.get("shard")).collect();
        assert_eq!(shards, queues.each_ref().map(|queue| queue.shard_id().to_string()), "{name}");
        assert!(events.iter().all(|event| event.within == within), "{events:?}");
    }
    assert!(seen("job.finished").iter().all(|event| event.get("outcome") == "ok"));
    let said = SEEN.with_borrow(|all| all.iter().find(|seen| seen.message == "the job").cloned().unwrap());
    assert_eq!(said.within, within);
    assert!(CLOSED.with_borrow(|closed| closed.contains(&"job".to_owned())), "it is closed at its end");
    assert!(seen("slot.lost").is_empty());

    drop(limits.turn().instrument(info_span!("handler")).await.unwrap());
    assert_eq!(seen("job.started").len(), 4);
    assert_eq!(seen("job.started")[3].within, ["handler"]);
}
