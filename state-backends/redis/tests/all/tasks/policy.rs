//! Numbers of the Lua files against those of the contract.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract as contract;
use interval_queue_task_contract::{MAX_DELAY, Policy, TaskId};
use interval_queue_test_support::RedisServer;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use uuid::Uuid;

const POLICY: &str = include_str!("../../../src/tasks/lua/policy.lua");
const LIMITS: &str = include_str!("../../../src/tasks/lua/limits.lua");

/// The finaliser of SplitMix64.
fn mix(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

#[test]
#[ignore = "needs redis-server: scripts/test runs it"]
fn random_numbers_are_mixed_alike() {
    let server = RedisServer::start();
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut random = StdRng::seed_from_u64(7);
    let script = format!(
        "{POLICY}
        local mixed = {{}}
        for n = 1, #ARGV, 2 do
          mixed[n], mixed[n + 1] = mix(tonumber(ARGV[n]), tonumber(ARGV[n + 1]))
          mixed[n], mixed[n + 1] = string.format('%.0f', mixed[n]), string.format('%.0f', mixed[n + 1])
        end
        return mixed"
    );
    let mut seeds: Vec<u64> = (0..64).flat_map(|bit| [1 << bit, u64::MAX << bit, u64::MAX >> bit]).collect();
    seeds.extend((0..3_000).map(|_| random.random::<u64>()));
    let mut call = redis::cmd("EVAL");
    call.arg(script).arg(0);
    for seed in &seeds {
        call.arg(seed >> 32).arg(seed & 0xffff_ffff);
    }
    let mixed: Vec<u64> = call.query(&mut connection).unwrap();
    for (seed, mixed) in seeds.iter().zip(mixed.chunks(2)) {
        assert_eq!(mixed[0] << 32 | mixed[1], mix(*seed), "{seed:#x}");
    }
}

#[test]
#[ignore = "needs redis-server: scripts/test runs it"]
fn failures_wait_alike() {
    let server = RedisServer::start();
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut random = StdRng::seed_from_u64(8);
    let script = format!(
        "{POLICY}
        local policy = {{ backoff = tonumber(ARGV[1]), max_backoff = tonumber(ARGV[2]) }}
        return string.format('%.0f', wait_of(policy, tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])))"
    );
    for round in 0..2_000 {
        let longest = Micros::new(MAX_DELAY.get() >> random.random_range(0..48));
        let first = Micros::new(longest.get() >> random.random_range(0..50));
        let micros = |micros: Micros| Duration::from_micros(micros.get());
        let policy = Policy::default().backoff(micros(first), micros(longest));
        let failures = if round % 3 == 0 { random.random::<u32>() } else { random.random_range(0..70) };
        let low = if round % 5 == 0 { u64::MAX } else { random.random() };
        let id = TaskId::new(Uuid::from_u64_pair(random.random(), low));
        let attempt = random.random::<u32>();
        let mut call = redis::cmd("EVAL");
        call.arg(&script).arg(0).arg(first.get()).arg(longest.get()).arg(failures);
        call.arg(id.uuid().as_bytes()).arg(attempt);
        let wait: u64 = call.query(&mut connection).unwrap();
        assert_eq!(wait, policy.wait(failures, id, attempt).get(), "{policy:?} {failures} {id} {attempt}");
    }
}

#[test]
fn the_bounds_are_those_of_the_contract() {
    let of = |name: &str| -> u64 {
        let line = LIMITS.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(" = "));
        line.and_then(|line| line.trim_end_matches(',').parse().ok()).unwrap_or_else(|| panic!("no {name}"))
    };
    for (name, value) in [
        ("MAX_HELD", contract::MAX_HELD.into()),
        ("MAX_EDGES", contract::MAX_EDGES as u64),
        ("MAX_CYCLE_SEARCH", contract::MAX_CYCLE_SEARCH.into()),
        ("MAX_KIND_POLICIES", contract::MAX_KIND_POLICIES as u64),
        ("MAX_PAGE", contract::MAX_PAGE.into()),
        ("MAX_TAGS", contract::MAX_TAGS as u64),
        ("MAX_ERROR", contract::MAX_ERROR as u64),
        ("MAX_HISTORY", contract::MAX_HISTORY as u64),
        ("MAX_REPLY", contract::MAX_REPLY as u64),
        ("MIN_LEASE", contract::MIN_LEASE.get()),
        ("LATE_ADD", contract::LATE_ADD.get()),
        ("KEEP_IDS", contract::KEEP_IDS.get()),
        ("KEEP_PRESENCE", contract::KEEP_PRESENCE.get()),
        ("KEEP_TIMES", contract::KEEP_TIMES.get()),
        ("FOLLOWED", contract::FOLLOWED.get()),
        ("KEEP_EVENTS", contract::KEEP_EVENTS.get()),
        ("LENGTHS", contract::LENGTHS as u64),
        ("MAX_RETURNS", contract::MAX_RETURNS.into()),
        ("MAX_PRIORITY", contract::MAX_PRIORITY as u64),
        ("RULES_VERSION", contract::RULES_VERSION.into()),
        ("MAX_ATTEMPT", u32::MAX.into()),
    ] {
        assert_eq!(of(name), value, "{name}");
    }
}

/// Choices are stored as the numbers of their variants.
#[test]
fn the_numbers_of_choices_are_those_of_the_contract() {
    use contract::{AttemptEnd, EdgeState, OnFailure, State, Stop};
    let check = |table: &str, variants: &[(String, usize)]| {
        let begin = LIMITS.find(&format!("local {table} = {{")).unwrap_or_else(|| panic!("no {table}"));
        let text = LIMITS[begin..].split_once('{').unwrap().1.split_once('}').unwrap().0;
        let stored: Vec<_> = text.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
        let expected: Vec<_> = variants.iter().map(|(name, number)| format!("{name} = {number}")).collect();
        assert_eq!(stored, expected, "{table}");
    };
    check("State", &State::ALL.map(|state| (format!("{state:?}"), state as usize)));
    check("STATES", &State::ALL.map(|state| (state.to_string(), state as usize)));
    let edges =
        [EdgeState::New, EdgeState::Open, EdgeState::Held, EdgeState::Met, EdgeState::Failed, EdgeState::Cut];
    check("EdgeState", &edges.map(|state| (format!("{state:?}"), state as usize)));
    let actions = [OnFailure::Cancel, OnFailure::Run, OnFailure::Wait];
    check("OnFailure", &actions.map(|action| (action.as_str().to_owned(), action as usize)));
    let stops = [Stop::Cancel, Stop::Deadline, Stop::Release];
    check("Stop", &stops.map(|stop| (format!("{stop:?}"), stop as usize)));
    let ends = [
        AttemptEnd::Done,
        AttemptEnd::Error,
        AttemptEnd::Retry,
        AttemptEnd::Released,
        AttemptEnd::Stopped,
        AttemptEnd::Died,
        AttemptEnd::Lost,
    ];
    check("AttemptEnd", &ends.map(|end| (format!("{end:?}").to_lowercase(), end as usize)));
}
