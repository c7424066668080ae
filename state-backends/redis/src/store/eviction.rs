//! Warns about a server that evicts keys when its memory is full, which would remove parts of
//! queues.

use redis::{Value, cmd};

use super::link::Link;

/// `None`: the server does not evict, or this user may not ask.
pub(super) async fn warning(link: &Link) -> Option<String> {
    let mut info = String::new();
    collect(&link.request(cmd("INFO").arg("memory"), None).await.ok()?, &mut info);
    let policy = evicting(&info)?;
    let address = &link.dialer.address;
    Some(format!(
        "redis at {address} evicts keys when its memory is full (maxmemory-policy {policy}), and queues with them: set \
         maxmemory-policy noeviction"
    ))
}

/// A cluster answers with the texts of all nodes.
fn collect(value: &Value, into: &mut String) {
    match value {
        Value::BulkString(text) => into.push_str(&String::from_utf8_lossy(text)),
        Value::VerbatimString { text, .. } | Value::SimpleString(text) => into.push_str(text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, into)),
        Value::Map(pairs) => pairs.iter().for_each(|(_, value)| collect(value, into)),
        _ => {}
    }
    into.push('\n');
}

/// `None` also without a memory limit.
fn evicting(info: &str) -> Option<&str> {
    let mut limit = "0";
    for line in info.lines() {
        match line.trim().split_once(':') {
            Some(("maxmemory", bytes)) => limit = bytes,
            Some(("maxmemory_policy", policy)) if limit != "0" && policy != "noeviction" => {
                return Some(policy);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_evicts_only_with_a_limit_and_a_policy() {
        let info = |limit, policy| format!("# Memory\r\nmaxmemory:{limit}\r\nmaxmemory_policy:{policy}\r\n");
        assert_eq!(evicting(&info("100", "allkeys-lru")), Some("allkeys-lru"));
        assert_eq!(evicting(&info("0", "allkeys-lru")), None);
        assert_eq!(evicting(&info("100", "noeviction")), None);
        let nodes = info("100", "noeviction") + &info("100", "volatile-ttl");
        assert_eq!(evicting(&nodes), Some("volatile-ttl"));
    }
}
