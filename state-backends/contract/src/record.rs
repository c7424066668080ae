//! The record that all shards of a queue share. People see its JSON form in a store of files.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, MapAccess, Visitor},
};

use crate::{
    Grant, Label, MAX_LEAD, MAX_TAKE, Meters, Micros, Settings, ShardId, StateError, StateErrorKind, Ticket,
};

/// The stored record of one queue. It grows with the shards that have work, not with waiting jobs.
///
/// Instants are microseconds on the store's clock. Only [`rules::apply`](crate::rules::apply)
/// changes a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Version of the format: [`Record::VERSION`].
    pub version: u32,
    /// The server process of the last write. Empty without a server.
    pub incarnation: String,
    /// State of each rate.
    pub meters: Meters,
    /// Running limit of all shards. `None`: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_running: Option<u32>,
    /// Whether the queue is paused.
    pub paused: bool,
    /// Rises with every change of settings, pause or hold; normally its instant.
    pub revision: u64,
    /// The last ticket taken.
    pub ticket: Ticket,
    /// The highest ticket started.
    pub current: Ticket,
    /// The last slot granted, or perhaps granted before a loss.
    pub last_slot: Micros,
    /// Nothing starts before this instant.
    pub held_until: Micros,
    /// Overtaken tickets from this one on still own the slot of their distance.
    pub line_from: Ticket,
    /// Tickets up to this one may have no living owner.
    pub gaps_until: Ticket,
    /// The longest lead of a shard: how far ahead slots may have been granted.
    pub longest_lead: Micros,
    /// When a loss was last detected and repaired.
    pub lifted_at: Micros,
    /// Latest time of a write.
    pub seen_at: Micros,
    /// Shards that have work.
    #[serde(deserialize_with = "each_once")]
    pub shards: BTreeMap<ShardId, Presence>,
}

/// A shard with waiting or running jobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Presence {
    /// Its lowest outstanding ticket. `None`: nothing waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Ticket>,
    /// Weight of the job of `head`.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// Number of running jobs.
    pub running: u32,
    /// End of the lease.
    pub expires_at: Micros,
    /// Number of its last step.
    pub sequence: u64,
    /// The last take, so that a retry gets the same tickets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_take: Option<LastTake>,
    /// Grants of the last step for weight 1, so that a retry gets the same. Empty without bursts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<Grant>,
    /// Label for people.
    pub label: Label,
}

/// The reply to a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastTake {
    /// Number of the request.
    pub request: u64,
    /// First ticket.
    pub first: Ticket,
    /// Number of tickets.
    pub count: u32,
}

impl LastTake {
    /// A false count would fill the memory of the shard.
    fn is_within(&self, ticket: Ticket) -> bool {
        let taken = Ticket::NONE < self.first && self.first <= ticket;
        taken
            && (1..=MAX_TAKE).contains(&self.count)
            && u64::from(self.count) - 1 <= ticket.behind(self.first)
    }
}

impl Record {
    /// The version written, and the newest readable.
    pub const VERSION: u32 = 2;

    /// The record of a new queue.
    pub fn new(settings: Settings) -> Self {
        Self {
            version: Self::VERSION,
            incarnation: String::new(),
            meters: Meters::new(&settings.rates),
            max_running: settings.max_running,
            paused: false,
            revision: 1,
            ticket: Ticket::NONE,
            current: Ticket::NONE,
            last_slot: Micros::ZERO,
            held_until: Micros::ZERO,
            line_from: Ticket::NONE,
            gaps_until: Ticket::NONE,
            longest_lead: Micros::ZERO,
            lifted_at: Micros::ZERO,
            seen_at: Micros::ZERO,
            shards: BTreeMap::new(),
        }
    }

    /// The shortest interval of its rates.
    pub fn interval(&self) -> Micros {
        self.meters.first().interval
    }

    /// The earliest slot for a job of this weight.
    pub fn next_slot(&self, weight: u32) -> Micros {
        self.meters.next_slot(self.held_until, weight)
    }

    /// The slot of a job of this weight after `slots` jobs of weight 1, with `kept` of each burst
    /// left to heavier jobs. Not counted from now: waiting jobs would recede for ever.
    pub(crate) fn slot_behind(&self, slots: u64, kept: u64, weight: u32) -> Micros {
        self.meters.slot_behind(self.held_until, Micros::ZERO, slots, kept, weight)
    }

    /// Overtaken tickets below `first` lose the slots of their distance.
    pub(crate) fn break_line(&mut self, first: Ticket) {
        self.line_from = self.line_from.max(first);
    }

    /// The rates and the running limit.
    pub fn settings(&self) -> Settings {
        Settings { rates: self.meters.rates(), max_running: self.max_running }
    }

    /// Parses a record from JSON.
    ///
    /// # Errors
    ///
    /// [`Damaged`](StateErrorKind::Damaged): not JSON.
    /// [`NewerVersion`](StateErrorKind::NewerVersion): of newer software.
    /// [`Foreign`](StateErrorKind::Foreign): not a record. Leave the stored text untouched.
    pub fn from_json(text: &str) -> Result<Self, StateError> {
        let record: Self = serde_json::from_str(text).map_err(|error| of_json(text, error))?;
        record.check()?;
        Ok(record)
    }

    /// The record as JSON, one field per line.
    ///
    /// # Errors
    ///
    /// Never for a record that [`rules::apply`](crate::rules::apply) made.
    pub fn to_json(&self) -> Result<String, StateError> {
        serde_json::to_string_pretty(self).map_err(|error| {
            StateError::new(StateErrorKind::Invalid, "the record cannot be written as JSON")
                .with_source(error)
        })
    }

    /// Checks constraints beyond the types. Call it on a record not read by [`Record::from_json`].
    ///
    /// # Errors
    ///
    /// [`NewerVersion`](StateErrorKind::NewerVersion) or [`Foreign`](StateErrorKind::Foreign),
    /// naming the field.
    pub fn check(&self) -> Result<(), StateError> {
        let foreign = |what: String| {
            let text = format!("this is not the record of an interval queue: {what}");
            Err(StateError::new(StateErrorKind::Foreign, text))
        };
        if self.version > Self::VERSION {
            return Err(newer_version(u64::from(self.version)));
        }
        if self.version != Self::VERSION {
            return foreign(format!("version is {}, not {}", self.version, Self::VERSION));
        }
        if let Err(error) = self.meters.rates().check() {
            return foreign(format!("meters: {error}"));
        }
        if self.max_running == Some(0) {
            return foreign("max_running is 0".into());
        }
        if self.current > self.ticket {
            return foreign(format!("current {} is above ticket {}", self.current, self.ticket));
        }
        if self.longest_lead > MAX_LEAD {
            return foreign(format!("longest_lead is {} µs", self.longest_lead.get()));
        }
        for (id, presence) in &self.shards {
            if presence.head.is_some_and(|head| head > self.ticket) {
                return foreign(format!("the head of shard {id} is above ticket {}", self.ticket));
            }
            if presence.last_take.is_some_and(|take| !take.is_within(self.ticket)) {
                return foreign(format!("the last take of shard {id} is none"));
            }
            if presence.granted.iter().any(|grant| grant.ticket > self.current) {
                return foreign(format!("shard {id} was granted a ticket above current {}", self.current));
            }
        }
        Ok(())
    }
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_one(weight: &u32) -> bool {
    *weight == 1
}

fn of_json(text: &str, error: serde_json::Error) -> StateError {
    #[derive(Deserialize)]
    struct Version {
        version: u64,
    }
    if !matches!(error.classify(), serde_json::error::Category::Data) {
        return StateError::new(StateErrorKind::Damaged, "the record is not JSON").with_source(error);
    }
    match serde_json::from_str(text) {
        Ok(Version { version }) if version > u64::from(Record::VERSION) => newer_version(version),
        // A syntax error after the first wrong field.
        Err(worse) if !worse.is_data() => {
            StateError::new(StateErrorKind::Damaged, "the record is not JSON").with_source(worse)
        }
        _ => StateError::new(StateErrorKind::Foreign, "this is not the record of an interval queue")
            .with_source(error),
    }
}

/// A shard listed twice is rejected: either entry may be wrong.
fn each_once<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<ShardId, Presence>, D::Error> {
    struct EachOnce;
    impl<'de> Visitor<'de> for EachOnce {
        type Value = BTreeMap<ShardId, Presence>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of shards")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut shards = BTreeMap::new();
            while let Some(id) = map.next_key::<ShardId>()? {
                if shards.contains_key(&id) {
                    return Err(A::Error::custom(format_args!("shard {id} comes twice")));
                }
                shards.insert(id, map.next_value()?);
            }
            Ok(shards)
        }
    }
    from.deserialize_map(EachOnce)
}

fn newer_version(version: u64) -> StateError {
    let known = Record::VERSION;
    let text = format!("the record has version {version}, this program reads up to {known}: upgrade it");
    StateError::new(StateErrorKind::NewerVersion, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rates;

    fn record() -> Record {
        let rates = Rates::every(Micros::new(1000));
        let mut record = Record::new(Settings { rates, max_running: None });
        (record.ticket, record.current) = (Ticket::new(7), Ticket::new(3));
        record
    }

    #[test]
    fn a_record_survives_its_json() {
        let json = record().to_json().unwrap();
        assert_eq!(Record::from_json(&json).unwrap(), record());
        assert!(json.lines().count() > 10, "pretty-printed: {json}");
    }

    #[test]
    fn nothing_in_a_record_comes_twice() {
        let mut record = record();
        let presence = r#""a": {"running": 0, "expires_at": 0, "sequence": 1, "label": ""}"#;
        record.shards = serde_json::from_str(&format!("{{{presence}}}")).unwrap();
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(Record::from_json(&json).unwrap(), record);
        for (once, twice, says) in [
            ("{\"a\":", format!("{{{presence}, \"a\":"), "shard a comes twice"),
            ("\"paused\":", "\"paused\":true,\"paused\":".into(), "duplicate field `paused`"),
            ("\"running\":", "\"running\":1,\"running\":".into(), "duplicate field `running`"),
        ] {
            let json = json.replace(once, &twice);
            let error = Record::from_json(&json).unwrap_err();
            assert_eq!(error.kind(), StateErrorKind::Foreign, "{json}");
            assert!(format!("{error:?}").contains(says), "{error:?}");
        }
    }

    #[test]
    fn invalid_records_are_rejected_by_kind() {
        let with = |field: &str, value: serde_json::Value| {
            let mut json = serde_json::to_value(record()).unwrap();
            json[field] = value;
            Record::from_json(&json.to_string()).map(|_| ()).map_err(|error| error.kind())
        };
        assert_eq!(Record::from_json("{\"version\": 2").unwrap_err().kind(), StateErrorKind::Damaged);
        assert_eq!(Record::from_json("[]").unwrap_err().kind(), StateErrorKind::Foreign);
        assert_eq!(Record::from_json("{\"version\": 3}").unwrap_err().kind(), StateErrorKind::NewerVersion);
        let zeros = ["version", "meters", "max_running"].map(|field| (field, 0));
        let others = [("current", 8), ("longest_lead", 1_000_001), ("ticket", -1), ("colour", 1)];
        for (field, value) in zeros.into_iter().chain(others) {
            assert_eq!(with(field, value.into()), Err(StateErrorKind::Foreign), "{field}");
        }
        let taken = |first: u64, count: u64| {
            let take = serde_json::json!({"request": 1, "first": first, "count": count});
            let rest = serde_json::json!({"running": 0, "expires_at": 0, "sequence": 1, "label": "", "last_take": take});
            with("shards", serde_json::json!({ "a": rest }))
        };
        let granted = |ticket: u64| {
            let grant = serde_json::json!({"ticket": ticket, "slot": 5});
            let rest = serde_json::json!({"running": 0, "expires_at": 0, "sequence": 1, "label": "", "granted": [grant]});
            with("shards", serde_json::json!({ "a": rest }))
        };
        assert_eq!([granted(3), granted(4)], [Ok(()), Err(StateErrorKind::Foreign)]);
        assert_eq!([taken(1, 7), taken(7, 1)], [Ok(()); 2]);
        for (first, count) in [(0, 1), (1, 0), (1, 8), (7, 2), (8, 1), (1, u64::from(MAX_TAKE) + 1)] {
            assert_eq!(taken(first, count), Err(StateErrorKind::Foreign), "{count} from {first}");
        }
    }
}
