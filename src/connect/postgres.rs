//! A PostgreSQL.

use std::time::Duration;

use interval_queue_contract::InvalidInput;
use interval_queue_postgres::{Builder, Durability, PostgresState};
use interval_queue_store::Url;

/// Parameters that belong to the address: those of libpq that the client of the server knows.
const OF_ADDRESS: [&str; 20] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

pub(super) fn parse(url: Url) -> Result<Builder, InvalidInput> {
    let Named { url, schema, connections, timeout, durability } = Named::parse(url)?;
    let mut builder = PostgresState::builder(url);
    if let Some(schema) = schema {
        builder = builder.schema(schema);
    }
    if let Some(connections) = connections {
        builder = builder.connections(connections);
    }
    if let Some(timeout) = timeout {
        builder = builder.timeout(timeout);
    }
    if let Some(durability) = durability {
        builder = builder.durability(durability);
    }
    Ok(builder)
}

/// What a URL says: what is ours, and the rest for the server's client.
struct Named {
    url: String,
    schema: Option<String>,
    connections: Option<usize>,
    timeout: Option<Duration>,
    durability: Option<Durability>,
}

impl Named {
    fn parse(mut parameters: Url) -> Result<Self, InvalidInput> {
        let (scheme, place) = (parameters.scheme().to_owned(), parameters.place().to_owned());
        if !place.starts_with("//") {
            let text = format!("{scheme}: without //: use {scheme}://HOST/DATABASE");
            return Err(InvalidInput::new(text));
        }
        // Clients end the credentials at the first @, and would show the rest of a password as a host.
        if place.matches('@').count() > 1 {
            let text = "the postgres address has more than one @: write %40 for an @ in a user or password";
            return Err(InvalidInput::new(text));
        }
        let durabilities = [("full", Durability::Full), ("relaxed", Durability::Relaxed)];
        let schema = parameters.text("schema")?;
        let connections = parameters.count("connections")?;
        let timeout = parameters.duration("timeout")?;
        let durability = parameters.choice("durability", &durabilities)?;
        let mut of_address = Vec::new();
        for name in OF_ADDRESS {
            of_address.extend(parameters.raw(name)?.map(|value| format!("{name}={value}")));
        }
        let question = if of_address.is_empty() { "" } else { "?" };
        let url = format!("{scheme}:{place}{question}{}", of_address.join("&"));
        parameters.finish()?;
        Ok(Self { url, schema, connections, timeout, durability })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(url: &str) -> Named {
        Named::parse(Url::parse(url, "").unwrap()).unwrap()
    }

    #[test]
    fn what_belongs_to_the_address_is_handed_on_as_it_stands() {
        for (rest, url) in [
            ("//h", "postgres://h"),
            ("//h/jobs?schema=pace&timeout=3s", "postgres://h/jobs"),
            ("//u:p%40ss@h/jobs?timeout=3s&sslmode=require", "postgres://u:p%40ss@h/jobs?sslmode=require"),
            (
                "///jobs?host=%2Frun&connections=2&user=u&password=a%26b&durability=relaxed&options=-c%20x=y",
                "postgres:///jobs?host=%2Frun&options=-c%20x=y&password=a%26b&user=u",
            ),
            (
                "//a:5432,b:5433/jobs?target_session_attrs=read-write",
                "postgres://a:5432,b:5433/jobs?target_session_attrs=read-write",
            ),
        ] {
            assert_eq!(named(&format!("postgres:{rest}")).url, url);
        }
        assert_eq!(named("postgresql://h").url, "postgresql://h");
        for name in OF_ADDRESS {
            let url = format!("postgres://h?{name}=a%20b");
            assert_eq!(named(&url).url, url);
        }
    }

    #[test]
    fn what_is_ours_is_taken() {
        let rest = "//h?schema=a%20b&connections=2&timeout=250ms&durability=relaxed&connect_timeout=7";
        let is = named(&format!("postgres:{rest}"));
        assert_eq!(is.schema.as_deref(), Some("a b"));
        assert_eq!(is.connections, Some(2));
        assert_eq!(is.timeout, Some(Duration::from_millis(250)));
        assert_eq!(is.durability, Some(Durability::Relaxed));
        assert_eq!(is.url, "postgres://h?connect_timeout=7");
        let is = named("postgres://h?durability=full");
        assert_eq!((is.schema, is.connections, is.timeout), (None, None, None));
        assert_eq!(is.durability, Some(Durability::Full));
    }
}
