//! Rules and times of schedules, for people.

use std::time::SystemTime;

use interval_queue_tasks::Rule;
use jiff::{Timestamp, tz::TimeZone};

use interval_queue_documents::words::show;

/// `None`: UTC.
pub(super) fn time(at: SystemTime, zone: Option<&str>) -> String {
    let Ok(at) = Timestamp::try_from(at) else { return "far away".into() };
    match zone.map(TimeZone::get) {
        Some(Ok(zone)) => at.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        _ => at.to_string(),
    }
}

pub(super) fn rule(rule: &Rule) -> String {
    match rule {
        Rule::Every { every_us, offset_us } if offset_us.get() > 0 => {
            format!("every {} + {}", show(*every_us), show(*offset_us))
        }
        Rule::Every { every_us, .. } => format!("every {}", show(*every_us)),
        Rule::Cron { line, zone } => format!("{line} {zone}"),
        Rule::AfterEnd { after_us } => format!("{} after the end", show(*after_us)),
        _ => "a rule of a newer version".into(),
    }
}

pub(super) fn zone(rule: &Rule) -> Option<&str> {
    match rule {
        Rule::Cron { zone, .. } => Some(zone),
        _ => None,
    }
}
