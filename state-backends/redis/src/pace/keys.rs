//! The keys of a queue. The part in braces determines the hash slot, so both keys are on one node
//! of a cluster.

use std::borrow::Cow;

use interval_queue_contract::QueueName;
use percent_encoding::{AsciiSet, percent_decode_str, utf8_percent_encode};

/// Characters that would end the braces early, or open others.
const IN_PREFIX: &AsciiSet = &AsciiSet::EMPTY.add(b'%').add(b'{').add(b'}');
/// The last colon separates prefix and name.
const IN_NAME: &AsciiSet = &IN_PREFIX.add(b':');

/// Names the keys of queues under one prefix.
#[derive(Clone, Debug)]
pub struct Keys {
    prefix: String,
}

impl Keys {
    /// The keys with this prefix, which is escaped.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: utf8_percent_encode(prefix, IN_PREFIX).to_string() }
    }

    /// The queue and the index of its shards: the `KEYS` of the script.
    pub fn of(&self, queue: &QueueName) -> [String; 2] {
        let mut key = String::with_capacity(self.prefix.len() + queue.as_str().len() + 3);
        key.push('{');
        key.push_str(&self.prefix);
        key.push(':');
        key.extend(utf8_percent_encode(queue.as_str(), IN_NAME));
        key.push('}');
        let index = [&key, ":index"].concat();
        [key, index]
    }

    /// The channel for notifications of changes of the queue.
    pub fn channel(&self, queue: &QueueName) -> String {
        let [key, _] = self.of(queue);
        key + ":changes"
    }

    /// A pattern for `SCAN` that matches every queue.
    pub fn pattern(&self) -> String {
        let mut pattern = String::from("{");
        for c in self.prefix.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '^' | '-' | '\\') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern + ":*}"
    }

    /// The queue of this key. `None`: a key of another prefix.
    pub fn queue(&self, key: &str) -> Option<QueueName> {
        let inner = key.strip_prefix('{')?.strip_suffix('}')?;
        let name = inner.strip_prefix(&self.prefix)?.strip_prefix(':')?;
        let name: Cow<'_, str> = percent_decode_str(name).decode_utf8().ok()?;
        let queue = QueueName::new(name).ok()?;
        (self.of(&queue)[0] == key).then_some(queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> QueueName {
        QueueName::new(text).unwrap()
    }

    #[test]
    fn names_come_back_from_keys_with_one_pair_of_braces() {
        for prefix in ["interval-queue", "my:app", "{x}%", "*[a]?\\", ""] {
            let keys = Keys::new(prefix);
            for text in ["mail", "a:b", "{a}:b", "}{:x", "100%", "日本語", "*?"] {
                let of_queue = keys.of(&name(text));
                assert_eq!(keys.queue(&of_queue[0]), Some(name(text)), "{of_queue:?}");
                for key in &of_queue {
                    assert!(key.starts_with(&of_queue[0]), "{key}");
                    assert_eq!(key.matches(['{', '}']).count(), 2, "{key}");
                }
            }
        }
        assert_eq!(Keys::new("{p}").of(&name("}{:x"))[0], "{%7Bp%7D:%7D%7B%3Ax}");
    }

    #[test]
    fn prefixes_do_not_reach_into_each_other() {
        assert_ne!(Keys::new("a").of(&name("b:c")), Keys::new("a:b").of(&name("c")));
        let foreign = &Keys::new("a:b").of(&name("c"))[0];
        assert_eq!(Keys::new("a").queue(foreign), None);
        assert_eq!(Keys::new("a").queue("{a:mail}:index"), None);
        assert_eq!(Keys::new("a*[b]").pattern(), "{a\\*\\[b\\]:*}", "signs of a pattern are escaped");
    }
}
