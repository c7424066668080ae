//! Rows.
use std::{cell::RefCell, collections::BTreeSet};

thread_local! {
    static SEEN: RefCell<BTreeSet<String>> = RefCell::default();
}

pub(super) fn note(sql: &str) {
    SEEN.with_borrow_mut(|seen| _ = seen.insert(sql.to_owned()));
}
