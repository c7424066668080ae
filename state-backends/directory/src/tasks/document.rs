//! The JSON of a task's file, which people read and edit. Names and units are those of
//! `interval-queue tasks --json`. Unknown fields are kept.

use std::fmt;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Attempt, AttemptEnd, Edge, Json, Key, Kind, LogLine, NewEdge, NewTask, Nominal, OnConflict, OnFailure,
    PolicyOverride, State, Tag, Task, TaskId, Token, Unique, Until, When, WorkerId,
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A text for people.
pub(super) type Wrong = String;

/// Read under another name or only from a drop box, and not written back.
const ALIASES: [&str; 5] = ["not_before", "deadline", "max_attempts", "on_conflict", "state"];

/// In the order of the file, each with the text of its value.
#[derive(Clone, Debug, Default)]
pub(super) struct Document(Vec<(String, Box<str>)>);

/// Values are slices of the parsed text.
struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a payload")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields: Vec<(String, &'de RawValue)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if fields.iter().any(|(known, _)| *known == name) {
                        return Err(serde::de::Error::custom(format!("{name:?} is there twice")));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl Document {
    pub(super) fn parse(text: &[u8]) -> Result<Self, Wrong> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Err("it is empty: give at least {\"payload\": …}".into());
        }
        let text = std::str::from_utf8(text).map_err(|_| "it is no text in UTF-8")?;
        let fields: Fields<'_> =
            serde_json::from_str(text).map_err(|error| format!("it is no JSON of a task: {error}"))?;
        Ok(Self(fields.0.into_iter().map(|(name, value)| (name, value.get().into())).collect()))
    }

    fn raw(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
        value.filter(|value| name == "payload" || *value != "null")
    }

    fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Wrong> {
        let parse = |value: &str| serde_json::from_str(value).map_err(|error| wrong(name, value, &error));
        self.raw(name).map(parse).transpose()
    }

    fn or_default<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, Wrong> {
        Ok(self.get(name)?.unwrap_or_default())
    }

    pub(super) fn id(&self) -> Result<Option<TaskId>, Wrong> {
        let text: Option<String> = self.get("id")?;
        text.map(|text| text.parse().map_err(|error| format!("\"id\": {error}"))).transpose()
    }

    /// Requires a file that a store wrote.
    pub(super) fn payload(&self) -> Option<Json> {
        self.raw("payload").map(Json::stored)
    }

    pub(super) fn result(&self) -> Option<Json> {
        self.raw("result").map(Json::stored)
    }

    /// Empty if a person has made it unreadable.
    pub(super) fn log(&self) -> Vec<LogLine> {
        self.or_default("log").unwrap_or_default()
    }

    pub(super) fn token(&self) -> Result<Token, Wrong> {
        let Some(text) = self.get::<String>("token")? else { return Ok(Token::default()) };
        let parts = text.split_once('.').and_then(|(one, other)| {
            let incarnation = one.parse::<u64>().ok().and_then(|micros| Micros::try_from(micros).ok())?;
            Some(Token { incarnation, attempt: other.parse().ok()? })
        });
        parts.ok_or_else(|| format!("\"token\": {text:?} is none: one looks like 1741684364000000.1"))
    }

    pub(super) fn new_task(&self, id: TaskId) -> Result<NewTask, Wrong> {
        let payload = self.raw("payload").ok_or("it has no \"payload\": give at least {\"payload\": …}")?;
        let until: Until = self.or_default("unique_until")?;
        let unique: Option<Key> = self.get("unique")?;
        let policy = self.or_default::<Rules>("policy")?.own(self.get("max_attempts")?);
        let new = NewTask {
            kind: self.or_default::<Option<Kind>>("kind")?.unwrap_or_default(),
            payload: Json::new(payload).map_err(|error| format!("\"payload\": {error}"))?,
            priority: self.or_default("priority")?,
            key: self.get("key")?,
            ordered: self.or_default("ordered")?,
            unique: unique.map(|name| Unique { name, until }),
            on_conflict: self.or_default::<OnConflict>("on_conflict")?,
            not_before: self.instant("not_before")?.map(When::At).unwrap_or_default(),
            deadline: self.instant("deadline")?.map(When::At),
            policy,
            weight: self.get("weight")?.unwrap_or(1),
            tags: self.or_default::<Vec<Tag>>("tags")?,
            trace: self.get("trace")?,
            edges: self.or_default::<Vec<Upstream>>("upstreams")?.into_iter().map(Upstream::edge).collect(),
            id,
        };
        new.check().map_err(|error| error.to_string())?;
        Ok(new)
    }

    /// `name_us` in microseconds, or `name` as RFC 3339.
    fn instant(&self, name: &str) -> Result<Option<Micros>, Wrong> {
        if let Some(micros) = self.get(&format!("{name}_us"))? {
            return Ok(Some(micros));
        }
        let Some(text) = self.get::<String>(name)? else { return Ok(None) };
        let at = humantime::parse_rfc3339_weak(&text).map_err(|error| {
            format!("{name:?}: {text:?} is no time ({error}): one looks like 2025-03-11T09:12:44Z")
        })?;
        Ok(Some(Micros::new(interval_queue_store::files::clock::micros(at))))
    }

    /// As far as the file has the fields.
    pub(super) fn task(&self, id: TaskId, state: State) -> Result<Task, Wrong> {
        let new = self.new_task(id)?;
        let at = |when: When| match when {
            When::At(at) => at,
            When::After(after) => after,
        };
        let history = self.or_default::<Vec<Run>>("attempts")?;
        let schedule = self.get::<Key>("schedule")?;
        let instant: Micros = self.or_default("scheduled_us")?;
        Ok(Task {
            id,
            kind: new.kind,
            priority: new.priority,
            key: new.key,
            ordered: new.ordered,
            unique: new.unique,
            holds_name: false,
            weight: new.weight,
            tags: new.tags,
            deadline: new.deadline.map(at),
            not_before: at(new.not_before),
            policy: new.policy,
            due: 0,
            added: self.or_default("added_us")?,
            position: self.or_default("position")?,
            has_edges: !new.edges.is_empty(),
            schedule: schedule.map(|schedule| Nominal { schedule, at: instant }),
            trace: new.trace,
            state,
            holds_key: false,
            unserved: false,
            token: self.token()?,
            failures: self.or_default("failures")?,
            retries: self.or_default("retries")?,
            returns: self.or_default("returns")?,
            generation: self.or_default("generation")?,
            worker: self.get("worker")?,
            admitted: None,
            leased: self.get("leased_us")?,
            prefetched: self.or_default("prefetched")?,
            stop: None,
            progress: None,
            ended: self.get("ended_us")?,
            ended_lease_clock: None,
            notified: false,
            retained: false,
            error: self.get("error")?,
            history: history.into_iter().map(Run::attempt).collect::<Result<_, _>>()?,
        })
    }

    /// Payload, result, log, upstreams and unknown fields come from `self` unless others are given.
    pub(super) fn of_task(
        &self,
        task: &Task,
        payload: Option<&Json>,
        result: Option<&Option<Json>>,
        log: Option<&[LogLine]>,
        upstreams: Option<&[Edge]>,
    ) -> Result<String, Wrong> {
        let mut text = Text::default();
        text.say("id", &task.id)?;
        text.say("kind", &task.kind)?;
        text.say_unless("priority", &task.priority, task.priority == 0)?;
        text.some("key", task.key.as_ref())?;
        text.say_unless("ordered", &task.ordered, !task.ordered)?;
        text.some("unique", task.unique.as_ref().map(|unique| &unique.name))?;
        let until = task.unique.as_ref().map(|unique| unique.until);
        text.some("unique_until", until.filter(|until| *until != Until::default()))?;
        text.say_unless("weight", &task.weight, task.weight == 1)?;
        text.say_unless("tags", &task.tags, task.tags.is_empty())?;
        text.say("added_us", &task.added)?;
        text.say_unless("position", &task.position, task.position == 0)?;
        text.say_unless("not_before_us", &task.not_before, task.not_before == Micros::ZERO)?;
        text.some("deadline_us", task.deadline)?;
        text.say_unless("policy", &Rules::of(task.policy), task.policy.is_empty())?;
        match upstreams {
            Some(edges) => {
                let upstreams: Vec<_> = edges.iter().map(Upstream::of).collect();
                text.say_unless("upstreams", &upstreams, edges.is_empty())?;
            }
            None => text.raw("upstreams", self.raw("upstreams"))?,
        }
        text.some("schedule", task.schedule.as_ref().map(|nominal| &nominal.schedule))?;
        text.some("scheduled_us", task.schedule.as_ref().map(|nominal| nominal.at))?;
        text.some("trace", task.trace.as_ref())?;
        text.some("leased_us", task.leased)?;
        text.say_unless("prefetched", &task.prefetched, !task.prefetched)?;
        text.some("ended_us", task.ended)?;
        text.some("token", task.leased.map(|_| task.token.to_string()))?;
        text.some("worker", task.worker)?;
        text.say_unless("failures", &task.failures, task.failures == 0)?;
        text.say_unless("retries", &task.retries, task.retries == 0)?;
        text.say_unless("returns", &task.returns, task.returns == 0)?;
        text.say_unless("generation", &task.generation, task.generation == 0)?;
        text.some("error", task.error.as_ref())?;
        text.raw("payload", payload.map(Json::as_str).or(self.raw("payload")).or(Some("null")))?;
        let kept = self.raw("result");
        text.raw("result", result.map_or(kept, |given| given.as_ref().map(Json::as_str)))?;
        match log {
            Some(log) => text.say_unless("log", &log, log.is_empty())?,
            None => text.raw("log", self.raw("log"))?,
        }
        if !task.history.is_empty() {
            text.say("attempts", &task.history.iter().map(Run::of).collect::<Vec<_>>())?;
        }
        let is_said = |name: &str| KNOWN.contains(&name) || ALIASES.contains(&name);
        for (name, value) in self.0.iter().filter(|(name, _)| !is_said(name)) {
            text.raw(name, Some(value))?;
        }
        text.finish()
    }
}

/// Names of a row and of a body.
const KNOWN: [&str; 33] = [
    "id",
    "kind",
    "priority",
    "key",
    "ordered",
    "unique",
    "unique_until",
    "weight",
    "tags",
    "added_us",
    "position",
    "not_before_us",
    "deadline_us",
    "policy",
    "upstreams",
    "schedule",
    "scheduled_us",
    "trace",
    "leased_us",
    "prefetched",
    "ended_us",
    "token",
    "worker",
    "failures",
    "retries",
    "returns",
    "generation",
    "error",
    "payload",
    "result",
    "log",
    "attempts",
    "retained",
];

fn wrong(name: &str, value: &str, error: &serde_json::Error) -> Wrong {
    let shown: String = value.chars().take(60).collect();
    format!("{name:?}: {shown} cannot be used: {error}")
}

/// One field per line.
#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    fn say<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Wrong> {
        self.name(name)?;
        serde_json::to_writer(&mut self.0, value).map_err(|error| error.to_string())
    }

    fn some<T: Serialize>(&mut self, name: &str, value: Option<T>) -> Result<(), Wrong> {
        value.map_or(Ok(()), |value| self.say(name, &value))
    }

    fn say_unless<T: Serialize>(&mut self, name: &str, value: &T, is_default: bool) -> Result<(), Wrong> {
        if is_default { Ok(()) } else { self.say(name, value) }
    }

    fn raw(&mut self, name: &str, value: Option<&str>) -> Result<(), Wrong> {
        let Some(value) = value else { return Ok(()) };
        self.name(name)?;
        self.0.extend_from_slice(value.as_bytes());
        Ok(())
    }

    fn name(&mut self, name: &str) -> Result<(), Wrong> {
        self.0.extend_from_slice(if self.0.is_empty() { b"{\n  " } else { b",\n  " });
        serde_json::to_writer(&mut self.0, name).map_err(|error| error.to_string())?;
        self.0.extend_from_slice(b": ");
        Ok(())
    }

    fn finish(mut self) -> Result<String, Wrong> {
        self.0.extend_from_slice(b"\n}\n");
        String::from_utf8(self.0).map_err(|error| error.to_string())
    }
}

/// The retry rules that the task sets itself.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Rules {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_us: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_backoff_us: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_us: Option<Micros>,
}

impl Rules {
    fn of(own: PolicyOverride) -> Self {
        Self {
            max_attempts: own.max_attempts,
            max_retries: own.max_retries,
            backoff_us: own.backoff,
            max_backoff_us: own.max_backoff,
            timeout_us: own.timeout,
        }
    }

    /// A `max_attempts` at the top level of the file takes precedence.
    fn own(self, max_attempts: Option<u32>) -> PolicyOverride {
        PolicyOverride {
            max_attempts: max_attempts.or(self.max_attempts),
            max_retries: self.max_retries,
            backoff: self.backoff_us,
            max_backoff: self.max_backoff_us,
            timeout: self.timeout_us,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Upstream {
    id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Key>,
    #[serde(default)]
    on_failure: OnFailure,
}

impl Upstream {
    fn of(edge: &Edge) -> Self {
        Self { id: edge.up, name: edge.name.clone(), on_failure: edge.on_failure }
    }

    fn edge(self) -> NewEdge {
        NewEdge { up: self.id, name: self.name, on_failure: self.on_failure }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leased_us: Option<Micros>,
    ended_us: Micros,
    end: AttemptEnd,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Run {
    fn of(attempt: &Attempt) -> Self {
        Self {
            token: attempt.token.to_string(),
            worker: attempt.worker,
            leased_us: attempt.leased,
            ended_us: attempt.ended,
            end: attempt.end,
            error: attempt.error.clone(),
        }
    }

    fn attempt(self) -> Result<Attempt, Wrong> {
        let token = Document::parse(format!("{{\"token\": {:?}}}", self.token).as_bytes())?.token()?;
        Ok(Attempt {
            token,
            worker: self.worker,
            leased: self.leased_us,
            ended: self.ended_us,
            end: self.end,
            error: self.error,
        })
    }
}
