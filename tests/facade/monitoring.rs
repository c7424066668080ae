//! The dashboard and the alert rules know what the library tells: every metric, label and value that they use
//! is there, and the dashboard shows every metric.

use std::collections::{BTreeMap, BTreeSet};

use interval_queue::{IntervalQueue, MemoryState};
use interval_queue_conformance::Faulty;
use metrics_util::{MetricKind, debugging::DebuggingRecorder};

use crate::common::ms;

const DASHBOARD: &str = include_str!("../../monitoring/grafana-dashboard.json");
const ALERTS: &str = include_str!("../../monitoring/prometheus-alerts.yml");
const PREFIX: &str = "interval_queue_";

/// The labels of each series as Prometheus has it, with their values as far as they are known.
type Series = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What a shard tells that has seen an error.
async fn told() -> Series {
    let recorder = Box::leak(Box::new(DebuggingRecorder::new()));
    let _local = metrics::set_default_local_recorder(recorder);
    let state = Faulty::new(MemoryState::new());
    let queue = IntervalQueue::builder("test").interval(ms(10)).open(state.clone()).await.unwrap();
    state.change(|faults| faults.outage = true);
    queue.pause().await.unwrap_err();
    let mut series = Series::new();
    for (key, ..) in recorder.snapshotter().snapshot().into_vec() {
        let suffixes = match key.kind() {
            MetricKind::Histogram => &["_bucket", "_sum", "_count"][..],
            _ => &[""],
        };
        for suffix in suffixes {
            let labels = series.entry(format!("{}{suffix}", key.key().name())).or_default();
            for label in key.key().labels() {
                labels.entry(label.key().into()).or_default().insert(label.value().into());
            }
            if *suffix == "_bucket" {
                labels.entry("le".into()).or_default();
            }
        }
    }
    series
}

fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// The first word behind each place where `before` stands.
fn words_behind<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    text.split(before).skip(1).map(|rest| word(rest.trim_start())).collect()
}

/// What is wrong with an expression and the texts beside it; the series that it uses.
fn check(expression: &str, beside: &str, series: &Series) -> Result<BTreeSet<String>, String> {
    let mut used = BTreeSet::new();
    let mut labels = BTreeSet::new();
    for (at, _) in expression.match_indices(PREFIX) {
        let name = word(&expression[at..]);
        let has = series.get(name).ok_or_else(|| format!("there is no {name}"))?;
        labels.extend(has.keys().map(String::as_str));
        used.insert(name.to_owned());
        let Some(matchers) = expression[at + name.len()..].strip_prefix('{') else { continue };
        let matchers = matchers.split_once('}').ok_or("an open brace")?.0;
        for matcher in matchers.split(',') {
            let label = word(matcher.trim());
            let values = has.get(label).ok_or_else(|| format!("{name} has no label {label}"))?;
            let value = matcher.split('"').nth(1).ok_or_else(|| format!("{matcher} has no value"))?;
            let unknown = |value: &&str| !value.starts_with('$') && !values.contains(*value);
            if let Some(unknown) = value.split('|').find(unknown) {
                return Err(format!("{label} of {name} is never {unknown}"));
            }
        }
    }
    let by = expression.split("by (").skip(1).flat_map(|rest| rest.split(')').next().unwrap().split(", "));
    let shown = words_behind(beside, "{{").into_iter().filter(|word| !word.is_empty());
    let shown = shown.chain(words_behind(beside, "$labels."));
    if let Some(unknown) = by.chain(shown).find(|label| !labels.contains(label)) {
        return Err(format!("no series of {expression} has a label {unknown}"));
    }
    Ok(used)
}

#[tokio::test(start_paused = true)]
async fn the_dashboard_shows_all_metrics_and_no_others() {
    let series = told().await;
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut used = BTreeSet::new();
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let text = |field| target[field].as_str().unwrap();
            used.extend(check(text("expr"), text("legendFormat"), &series).unwrap());
        }
    }
    let choice = dashboard["templating"]["list"][1]["query"]["query"].as_str().unwrap();
    assert_eq!(choice, "label_values(interval_queue_started_total, queue)");
    let shown = |name: &str| used.iter().any(|used| used.trim_end_matches("_bucket") == name);
    let names = series.keys().filter(|name| !name.ends_with("_sum") && !name.ends_with("_count"));
    let missing: Vec<_> =
        names.map(|name| name.trim_end_matches("_bucket")).filter(|name| !shown(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
}

#[tokio::test(start_paused = true)]
async fn the_alerts_use_existing_metrics() {
    let series = told().await;
    let rules: Vec<_> = ALERTS.split("- alert: ").skip(1).collect();
    assert!(rules.len() >= 5);
    for rule in rules {
        let (expression, rest) = rule.split_once("expr: ").unwrap().1.split_once("for: ").unwrap();
        let (_, texts) = rest.split_once("annotations:").unwrap();
        let used = check(expression, texts, &series).unwrap_or_else(|wrong| panic!("{rule}: {wrong}"));
        assert!(!used.is_empty(), "{rule}");
        assert!(rule.contains("summary: ") && rule.contains("severity: "), "{rule}");
    }
}

#[tokio::test(start_paused = true)]
async fn rules_and_dashboards_use_existing_metrics() {
    let series = told().await;
    let wrong = |expression: &str, beside: &str| check(expression, beside, &series).unwrap_err();
    assert!(wrong("rate(interval_queue_ended_total[5m])", "").contains("interval_queue_ended_total"));
    assert!(wrong("interval_queue_waiting{host=\"a\"}", "").contains("no label host"));
    assert!(wrong("interval_queue_finished_total{outcome=~\"ok|lost\"}", "").contains("never lost"));
    assert!(wrong("sum by (queue, kind) (interval_queue_waiting)", "").contains("label kind"));
    assert!(wrong("interval_queue_waiting", "{{outcome}}").contains("label outcome"));
    assert!(wrong("interval_queue_waiting", "queue {{ $labels.le }}").contains("label le"));
    let fine = "sum by (le) (rate(interval_queue_run_seconds_bucket{queue=~\"$queue\"}[5m]))";
    assert!(check(fine, "{{le}}", &series).is_ok());
}
