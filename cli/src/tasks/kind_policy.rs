//! The policy of a kind, as `tasks set --kind` changes and prints it.

use std::collections::BTreeMap;

use interval_queue::Micros;
use interval_queue_documents::words::show;
use interval_queue_tasks::{Kind, PolicyOverride, Settings, SettingsChange};

/// Parts that are not given stay.
pub(super) fn change(kind: &Kind, given: PolicyOverride, inherit: bool, now: &Settings) -> SettingsChange {
    let stored = now.kinds.get(kind).copied().unwrap_or_default();
    let kept = if inherit { PolicyOverride::default() } else { stored };
    let own = PolicyOverride {
        max_attempts: given.max_attempts.or(kept.max_attempts),
        max_retries: given.max_retries.or(kept.max_retries),
        backoff: given.backoff.or(kept.backoff),
        max_backoff: given.max_backoff.or(kept.max_backoff),
        timeout: given.timeout.or(kept.timeout),
    };
    let kinds = (own != stored).then(|| (kind.clone(), own)).into_iter().collect();
    SettingsChange { kinds, ..SettingsChange::default() }
}

/// Only differences, because another process may change the other kinds meanwhile.
pub(super) fn differences(now: &Settings, wanted: &Settings) -> BTreeMap<Kind, PolicyOverride> {
    let own = |settings: &Settings, kind: &Kind| settings.kinds.get(kind).copied().unwrap_or_default();
    let all = now.kinds.keys().chain(wanted.kinds.keys());
    let changed = all.filter(|kind| own(now, kind) != own(wanted, kind));
    changed.map(|kind| (kind.clone(), own(wanted, kind))).collect()
}

pub(super) fn lines(settings: &Settings) -> String {
    settings.kinds.iter().map(|(kind, own)| format!("\nkind {kind}: {}", parts(own))).collect()
}

fn parts(own: &PolicyOverride) -> String {
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let [backoff, max_backoff, timeout] =
        [own.backoff, own.max_backoff, own.timeout].map(|time: Option<Micros>| time.map(show));
    let parts = [
        ("max attempts", number(own.max_attempts)),
        ("max retries", number(own.max_retries)),
        ("backoff", backoff),
        ("max backoff", max_backoff),
        ("timeout", timeout),
    ];
    let set: Vec<_> =
        parts.into_iter().filter_map(|(name, text)| Some(format!("{name} {}", text?))).collect();
    set.join(", ")
}
