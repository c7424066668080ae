//! Stores in files: paths, mounts, locks, waits and errors of the operating system.

mod blocking;
pub mod clock;
mod create;
mod error;
mod identity;
pub mod lock;
mod lock_timeout;
mod mount;
mod path;

pub use self::{
    blocking::blocking,
    create::create,
    error::cannot,
    identity::{FileId, names},
    lock_timeout::{LockTimeout, jittered},
    mount::{check_mount, kind_of_remote},
    path::{beside, directory, resolve},
};
