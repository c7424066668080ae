//! The URL of a store: for the façade, and the address in it for a server's backend.

use interval_queue::fuzzing::{Target, target};
use interval_queue_redis::internals::{Address, Credentials, Endpoint as At, Host};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::promise::{SECRET, Verdict, refuses};

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    let Ok(url) = std::str::from_utf8(bytes) else {
        return Verdict::Refused;
    };
    let secret = has_its_secret_in_place(url);
    let hides = |shown: &str| assert!(!secret || !shown.contains(SECRET), "{url} is shown as {shown}");
    let builder = match target(url) {
        Ok(Target::Redis(builder)) => builder,
        Ok(Target::Postgres(builder)) => {
            hides(&format!("{builder:?}"));
            return Verdict::Read;
        }
        Ok(Target::Local) => return Verdict::Read,
        Err(error) => {
            hides(&format!("{error} {error:?}"));
            return refuses(&error, bytes);
        }
    };
    let address = builder.address();
    hides(&format!("{builder:?} {address}"));
    let canonical = canonical(address);
    let Ok(Target::Redis(again)) = target(&canonical) else {
        panic!("{canonical} is refused, {url} is not");
    };
    assert!(again.address() == address, "{canonical} is not {url}");
    Verdict::Read
}

/// Everything is escaped that can be.
fn canonical(Address { endpoint, credentials, database, tls, ca }: &Address) -> String {
    let base = if *tls { "rediss" } else { "redis" };
    let (login, no_login) = (login(credentials), Credentials::default());
    let mut names = ["user", "pass"];
    let (url, by_parameters) = match endpoint {
        At::Host(host) => (format!("{base}://{login}{}/{database}", hosts([host])), &no_login),
        At::Cluster(all) => (format!("{base}+cluster://{login}{}", hosts(all)), &no_login),
        At::Sentinels { hosts: all, master, credentials } => {
            names = ["sentinel-user", "sentinel-password"];
            let master = encoded(master);
            (format!("{base}+sentinel://{login}{}/{master}/{database}", hosts(all)), credentials)
        }
        At::Socket(path) => {
            (format!("{base}+unix://{}?db={database}", encoded(&path.to_string_lossy())), credentials)
        }
    };
    let ca = ca.as_ref().map(|ca| ca.to_string_lossy().into_owned());
    let values = [by_parameters.user.clone(), by_parameters.password.clone(), ca];
    let parameters = [names[0], names[1], "ca"].into_iter().zip(values);
    parameters.fold(url, |url, (name, value)| {
        let sign = if url.contains('?') { '&' } else { '?' };
        value.map_or(url.clone(), |value| format!("{url}{sign}{name}={}", encoded(&value)))
    })
}

fn login(Credentials { user, password }: &Credentials) -> String {
    let user = user.as_deref().map(encoded).unwrap_or_default();
    match password {
        Some(password) => format!("{user}:{}@", encoded(password)),
        None if user.is_empty() => String::new(),
        None => format!("{user}@"),
    }
}

fn hosts<'a>(hosts: impl IntoIterator<Item = &'a Host>) -> String {
    let text = hosts.into_iter().map(|(host, port)| {
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    });
    text.collect::<Vec<_>>().join(",")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
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

/// The password stands only where an address has one: before the last `@`, or in its parameter.
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
    let (endpoint, query) = rest.split_once('?').unwrap_or((rest, ""));
    let in_place = |parameter: &str| {
        !parameter.contains(SECRET)
            || ["pass=", "sentinel-password=", "password="].iter().any(|name| parameter.starts_with(name))
    };
    url.contains(SECRET) && !endpoint.contains(SECRET) && query.split('&').all(in_place)
}
