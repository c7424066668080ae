//! The URL of a store without its secrets.

pub(crate) fn without_secrets(url: &str) -> String {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    if ["file:", "dir:", "sqlite:", "redis+unix:"].iter().any(|scheme| place.starts_with(scheme)) {
        return place.to_owned();
    }
    match place.split_once("://") {
        // With an unescaped `?` in the password, its end is ambiguous.
        Some((scheme, _)) if query.contains('@') => format!("{scheme}://…"),
        Some((scheme, rest)) => {
            let hosts = rest.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{hosts}")
        }
        // It may be in another format with a password: host=… password=…
        None => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_on_the_screen() {
        for (url, shown) in [
            ("redis://user:p%40ss@cache:6379/2?prefix=x", "redis://cache:6379/2"),
            ("rediss://:secret@cache", "rediss://cache"),
            ("redis://user:p@ss@cache/0", "redis://cache/0"),
            ("redis+unix:///run/redis.sock?pass=secret", "redis+unix:///run/redis.sock"),
            ("redis+sentinel://u:p@a:1,b:2/main/0", "redis+sentinel://a:1,b:2/main/0"),
            ("redis://user:se/cret@cache/0", "redis://cache/0"),
            ("redis://user:se?cret@cache/0", "redis://…"),
            ("file:/var/lib/jobs/queues.json?fsync=always", "file:/var/lib/jobs/queues.json"),
            ("file:///home/me@work/queues.json", "file:///home/me@work/queues.json"),
            ("dir:/srv/jobs?fsync=always", "dir:/srv/jobs"),
            ("sqlite:///home/me@work/queues.db?durability=full", "sqlite:///home/me@work/queues.db"),
            ("postgres://user:p%40ss@db:5432/jobs?sslmode=require", "postgres://db:5432/jobs"),
            ("postgresql://user:p@ss@a:1,b:2/jobs", "postgresql://a:1,b:2/jobs"),
            ("postgres://user:se/cret@db/jobs", "postgres://db/jobs"),
            ("postgres://user:se?cret@db/jobs", "postgres://…"),
            ("postgres://db/jobs?user=me&password=secret", "postgres://db/jobs"),
            ("postgres://db/jobs?user=me&password=sec@ret", "postgres://…"),
            ("postgres:///jobs?host=/run/postgresql&password=secret", "postgres:///jobs"),
            ("host=db password=secret", "…"),
            ("host=db password=secret options=a:b", "…"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
