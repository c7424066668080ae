//! What the stores of the state backends share. It knows nothing of what is kept on a store, and of the
//! contract the errors alone.
#![forbid(unsafe_code)]
// docs.rs says which feature brings what.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "files")]
pub mod files;
mod migration;
mod url;

pub use self::{
    migration::{Component, Found},
    url::{Url, decoded},
};
