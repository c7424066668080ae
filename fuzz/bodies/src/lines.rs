//! The input formats of tasks: lines of payloads, names, and tasks as JSON.

use std::{fmt::Debug, str::FromStr};

use interval_queue::{
    contract::InvalidInput,
    task_contract::{
        Json, Key, Kind, MAX_KEY, MAX_KIND, MAX_TAG, NewTask, OnFailure, Policy, PolicyOverride, Selector,
        Settings, SettingsChange, State, Tag, TaskId, Verb, WorkerId,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    of_the_program,
    promise::{Verdict, is_clear, refuses},
};

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    let verdict = input(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        named(bytes, Kind::new(text).as_ref().map(Kind::as_str), MAX_KIND);
        named(bytes, Key::new(text).as_ref().map(Key::as_str), MAX_KEY);
        named(bytes, Tag::new(text).as_ref().map(Tag::as_str), MAX_TAG);
        shown::<TaskId>(text);
        shown::<WorkerId>(text);
        shown::<State>(text);
        if let Err(error) = text.parse::<OnFailure>() {
            let _ = refuses(&error, bytes);
        }
        again::<Json>(text);
        again::<Settings>(text);
        again::<SettingsChange>(text);
        again::<Policy>(text);
        again::<PolicyOverride>(text);
        again::<Selector>(text);
        again::<Verb>(text);
        if let Some(task) = again::<NewTask>(text)
            && let Err(error) = task.check()
        {
            let _ = refuses(&error, bytes);
        }
    }
    verdict
}

/// Each line is a payload, until one is invalid: it is reported with its number.
fn input(bytes: &[u8]) -> Verdict {
    let (payloads, failure) = of_the_program::lines(bytes);
    let mut read = payloads.iter();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let text = std::str::from_utf8(line).map(str::trim);
        if text == Ok("") {
            continue;
        }
        let value = text.ok().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let Some(value) = value else {
            assert!(read.next().is_none(), "what is behind line {number} was read, and it is no JSON");
            let failure = failure.unwrap();
            is_clear(&failure.message, bytes);
            assert!(failure.message.starts_with(&format!("line {number}: ")), "{}", failure.message);
            return Verdict::Refused;
        };
        let (at, payload) = read.next().unwrap_or_else(|| panic!("line {number} is left out: {failure:?}"));
        assert_eq!((*at, payload.as_str()), (number, text.unwrap()));
        stays(payload, &value);
    }
    assert!(read.next().is_none() && failure.is_none(), "{failure:?}");
    Verdict::Read
}

/// A payload is the same value for a handler and in a printed list.
pub(crate) fn stays(json: &Json, value: &Value) {
    assert_eq!(serde_json::from_str::<Value>(json.as_str()).unwrap(), *value);
    assert_eq!(serde_json::to_string(json).unwrap(), json.as_str().trim());
}

fn named(bytes: &[u8], name: Result<&str, &InvalidInput>, longest: usize) {
    match name {
        Ok(name) => {
            assert_eq!(name.as_bytes(), bytes);
            assert!(!name.is_empty() && name.len() <= longest && name.trim() == name);
            assert!(!name.chars().any(char::is_control), "{name:?}");
        }
        Err(error) => _ = refuses(error, bytes),
    }
}

fn shown<T: FromStr<Err = InvalidInput> + ToString + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(it) => assert_eq!(it.to_string().parse::<T>().as_ref(), Ok(&it)),
        Err(error) => _ = refuses(&error, text.as_bytes()),
    }
}

fn again<T: Serialize + DeserializeOwned + Debug + PartialEq>(text: &str) -> Option<T> {
    let it: T = serde_json::from_str(text).ok()?;
    let written = serde_json::to_string(&it).unwrap();
    let read: T = serde_json::from_str(&written).unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!(serde_json::to_string(&read).unwrap(), written, "{it:?}");
    Some(it)
}
