//! A PostgreSQL.

use std::time::Duration;

use interval_queue_contract::InvalidInput;
use interval_queue_postgres::{Builder, Durability, PostgresState};

use super::parameters::{Parameters, values::no_at_in_query};

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

pub(super) fn parse(scheme: &str, rest: &str) -> Result<Builder, InvalidInput> {
    let Named { url, schema, connections, timeout, durability } = Named::parse(scheme, rest)?;
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
    fn parse(scheme: &str, rest: &str) -> Result<Self, InvalidInput> {
        no_at_in_query("postgres", rest)?;
        let (place, mut parameters) = Parameters::split(rest)?;
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
        let of_address: Vec<_> = OF_ADDRESS
            .into_iter()
            .filter_map(|name| parameters.raw(name).map(|value| format!("{name}={value}")))
            .collect();
        let question = if of_address.is_empty() { "" } else { "?" };
        let url = format!("{scheme}:{place}{question}{}", of_address.join("&"));
        let ours = ["schema", "connections", "timeout", "durability"];
        parameters.finish("postgres:", &ours.into_iter().chain(OF_ADDRESS).collect::<Vec<_>>())?;
        Ok(Self { url, schema, connections, timeout, durability })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(Named::parse("postgres", rest).unwrap().url, url);
        }
        assert_eq!(Named::parse("postgresql", "//h").unwrap().url, "postgresql://h");
        for name in OF_ADDRESS {
            let rest = format!("//h?{name}=a%20b");
            assert_eq!(Named::parse("postgres", &rest).unwrap().url, format!("postgres:{rest}"));
        }
    }

    #[test]
    fn what_is_ours_is_taken() {
        let rest = "//h?schema=a%20b&connections=2&timeout=250ms&durability=relaxed&connect_timeout=7";
        let named = Named::parse("postgres", rest).unwrap();
        assert_eq!(named.schema.as_deref(), Some("a b"));
        assert_eq!(named.connections, Some(2));
        assert_eq!(named.timeout, Some(Duration::from_millis(250)));
        assert_eq!(named.durability, Some(Durability::Relaxed));
        assert_eq!(named.url, "postgres://h?connect_timeout=7");
        let named = Named::parse("postgres", "//h?durability=full").unwrap();
        assert_eq!((named.schema, named.connections, named.timeout), (None, None, None));
        assert_eq!(named.durability, Some(Durability::Full));
    }
}
