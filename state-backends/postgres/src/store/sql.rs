//! SQL common to all transactions. Nothing is prepared here, since transaction poolers mix prepared
//! statements up; `prepared.rs` checks when preparing is safe.

use std::{borrow::Cow, time::Duration};

use tokio_postgres::types::{ToSql, Type};

use super::{Durability, prepared::SESSION_QUERY};

/// Text values for `$1`, `$2` and so on.
pub(crate) struct Statement<'a> {
    pub(super) sql: &'a str,
    texts: Vec<Cow<'a, str>>,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: &'a str) -> Self {
        Self { sql, texts: Vec::new() }
    }

    pub(crate) fn with(mut self, text: impl Into<Cow<'a, str>>) -> Self {
        self.texts.push(text.into());
        self
    }

    /// Types spare the client a query for them.
    pub(super) fn parameters(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.texts.iter().map(|text| (text as &(dyn ToSql + Sync), Type::TEXT)).collect()
    }
}

/// Sets `lock_timeout` for locks and for a silent client. The search path starts with `pg_catalog`:
/// names keep the server's meaning, even if an application defines `clock_timestamp` or `json` in a
/// schema that its users search first.
pub(super) fn begin(lock_timeout: Duration, durability: Durability) -> String {
    let millis = lock_timeout.as_millis();
    let commit = match durability {
        Durability::Full => "",
        Durability::Relaxed => "; SET LOCAL synchronous_commit = off",
    };
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = pg_catalog, pg_temp; \
         SET LOCAL lock_timeout = {millis}; SET LOCAL idle_in_transaction_session_timeout = {millis}{commit}"
    )
}

/// Also selects the server process and the [mark](super::prepared) of its session.
pub(crate) fn begin_at(isolation: &str) -> String {
    format!("BEGIN ISOLATION LEVEL {isolation}; {SESSION_QUERY}")
}

/// The settings of [`begin`] for an open transaction; `more` may set another search path. One
/// statement that can be prepared, since parsing and planning takes longer than running it.
pub(super) fn settings(lock_timeout: Duration, durability: Durability, more: &[(&str, &str)]) -> String {
    let millis = lock_timeout.as_millis().to_string();
    let mut settings = vec![("lock_timeout", &*millis), ("idle_in_transaction_session_timeout", &*millis)];
    if durability == Durability::Relaxed {
        settings.push(("synchronous_commit", "off"));
    }
    settings.extend(more);
    let set =
        |(name, value): &(&str, &str)| format!("pg_catalog.set_config('{name}', {}, true)", literal(value));
    let settings: Vec<String> = settings.iter().map(set).collect();
    format!("SELECT {}", settings.join(", "))
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Valid whatever the server's setting for backslashes.
pub(crate) fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A statement with values of any type.
pub(crate) struct Query {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) values: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Query {
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>) -> Self {
        Self { sql: sql.into(), values: Vec::new() }
    }

    pub(crate) fn with(self, value: impl ToSql + Sync + Send + 'static, kind: Type) -> Self {
        self.with_boxed(Box::new(value), kind)
    }

    pub(crate) fn with_boxed(mut self, value: Box<dyn ToSql + Sync + Send>, kind: Type) -> Self {
        self.values.push((value, kind));
        self
    }

    /// Requires that all have the same first value.
    pub(crate) fn fused(
        queries: impl IntoIterator<Item = Self>,
        fuse: impl FnOnce(Vec<String>) -> String,
    ) -> Self {
        let (mut texts, mut values) = (Vec::new(), Vec::new());
        for query in queries {
            match values.len() {
                0 => texts.push(query.sql.into_owned()),
                others => texts.push(renumbered(&query.sql, others - 1)),
            }
            let own = usize::from(!values.is_empty());
            values.extend(query.values.into_iter().skip(own));
        }
        Self { sql: fuse(texts).into(), values }
    }

    /// Types spare the client a query for them.
    pub(crate) fn parameters(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.values.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
    }

    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|(value, _)| &**value as &(dyn ToSql + Sync)).collect()
    }

    pub(super) fn kinds(&self) -> Vec<Type> {
        self.values.iter().map(|(_, kind)| kind.clone()).collect()
    }
}

/// Leaves `$1` unchanged.
fn renumbered(sql: &str, by: usize) -> String {
    let mut parts = sql.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(digits);
        text.push('$');
        match number.parse::<usize>() {
            Ok(number) if number > 1 => text.push_str(&(number + by).to_string()),
            _ => text.push_str(number),
        }
        text.push_str(rest);
    }
    text
}
