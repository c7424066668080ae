//! The plans of the lookups that read a declared index.

use interval_queue_contract::Micros;
use interval_queue_test_support::PostgresServer;

use super::*;
use crate::tasks::TASKS;

#[test]
#[ignore = "needs postgresql: scripts/test runs it"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
fn a_lookup_reads_its_index_in_order() {
    const SETTINGS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; \
                            SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan;";
    let server = PostgresServer::start();
    server.psql(&TASKS.steps(0).unwrap());
    let plan = |query: &Query| {
        let nulls = vec!["NULL"; query.values.len()].join(", ");
        let explain = format!("EXPLAIN (COSTS OFF) EXECUTE look ({nulls})");
        server.psql(&format!("{SETTINGS} PREPARE look AS {}; {explain}", query.sql)).join("\n")
    };
    let scope =
        Scope { queue: 1, locks: Locks::None, writes: true, is_read_ahead: false, has_low_marks: false };
    for (number, declared) in DECLARED.iter().enumerate() {
        let target = Target::Look(number, vec![String::new(); declared.columns.len()]);
        let untils =
            [Micros::ZERO, Micros::MAX].map(|until| Lookup { until, limit: 1, target: target.clone() });
        let looks = untils.map(|lookup| tasks::look(scope, number, vec![lookup]));
        let first = tasks::page(scope, Lookup::one(Target::First(number)));
        let mut queries = vec![&looks[0]];
        if declared.order.len() > 1 {
            queries.push(&looks[1]);
        }
        if declared.order.len() > 1 && declared.columns.is_empty() {
            queries.push(&first);
        }
        for one in queries {
            let plan = plan(&one.query);
            let scan = format!("using interval_queue_task_{} on", declared.name);
            assert!(plan.contains(&scan) && !plan.contains("Sort"), "{}\n{plan}", one.query.sql);
            let cond = plan.lines().find(|line| line.contains("Index Cond")).unwrap();
            let is_look = one.query.sql.contains("unnest");
            for column in declared.columns.iter().filter(|_| is_look) {
                assert!(cond.contains(column), "{}\n{plan}", one.query.sql);
            }
        }
    }
}
