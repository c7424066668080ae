//! Stores in files: where a file really is, whether its mount will do, how one waits for it, and what is said
//! when the operating system fails.

mod blocking;
pub mod clock;
mod error;
mod identity;
mod mount;
mod path;
mod patience;

pub use self::{
    blocking::blocking,
    error::cannot,
    identity::{FileId, names},
    mount::{check_mount, kind_of_remote},
    path::{beside, directory, resolve},
    patience::{Patience, jittered},
};
