//! Code that the stores share. Of the contract it uses only errors.
#![forbid(unsafe_code)]
// docs.rs shows the feature of each item.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "files")]
pub mod files;
mod migration;
mod url;

pub use self::{
    migration::{Component, Found},
    url::{Url, decoded},
};
