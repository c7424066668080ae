//! The URL of a state: to the façade, and the address in it to the backend of a server.

use interval_queue::fuzzing::{Place, place};
use interval_queue_redis::fuzzing::Parsed;

use crate::promise::{SECRET, Verdict, refuses};

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    let Ok(url) = std::str::from_utf8(bytes) else {
        return Verdict::Refused;
    };
    let secret = has_its_secret_in_place(url);
    let hides = |shown: &str| assert!(!secret || !shown.contains(SECRET), "{url} is shown as {shown}");
    let builder = match place(url) {
        Ok(Place::Redis(builder)) => builder,
        Ok(Place::Postgres(builder)) => {
            hides(&format!("{builder:?}"));
            return Verdict::Read;
        }
        Ok(Place::Local) => return Verdict::Read,
        Err(error) => {
            hides(&format!("{error} {error:?}"));
            return refuses(&error, bytes);
        }
    };
    hides(&format!("{builder:?}"));
    match Parsed::of(&builder) {
        Ok(address) => {
            hides(&address.shown());
            let canonical = address.canonical();
            assert_eq!(Parsed::new(&canonical).as_ref(), Ok(&address), "{canonical}");
            let Ok(Place::Redis(again)) = place(&canonical) else {
                panic!("{canonical} is refused, {url} is not");
            };
            assert_eq!(Parsed::of(&again).as_ref(), Ok(&address), "{canonical}");
            Verdict::Read
        }
        Err(error) => {
            hides(&format!("{error} {error:?}"));
            refuses(&error, bytes)
        }
    }
}

const SCHEMES: [&str; 9] = [
    "redis",
    "rediss",
    "redis+unix",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
    "postgres",
    "postgresql",
];

/// Whether the password stands only where an address has one: before the last `@`, or in a parameter for it.
fn has_its_secret_in_place(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    if !SCHEMES.contains(&scheme) {
        return false;
    }
    let rest = match rest.rsplit_once('@') {
        Some((_, rest)) if scheme != "redis+unix" => rest,
        _ => rest,
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let in_place = |parameter: &str| {
        !parameter.contains(SECRET)
            || ["pass=", "sentinel-password=", "password="].iter().any(|name| parameter.starts_with(name))
    };
    url.contains(SECRET) && !place.contains(SECRET) && query.split('&').all(in_place)
}
