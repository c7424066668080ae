//! What the stores of the state backends share. It knows nothing of what is kept on a store.
//!
//! Of the contract it uses the errors alone.
#![forbid(unsafe_code)]

mod migration;
mod url;

pub use self::{
    migration::{Component, Found},
    url::{Url, decoded},
};
