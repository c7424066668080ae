//! Guide pages, without code.
//!
//! | page | subject |
//! |---|---|
//! | [`coming_from`] | python-task-queue (`ptq`, FileQueue), Celery, River: equivalents here |
//! | [`together`] | tasks and runs in a transaction of the application |
//!
//! Terms and guarantees of tasks: `docs/tasks.md` in the repository.

#[doc = include_str!("coming_from.md")]
pub mod coming_from {}

#[doc = include_str!("together.md")]
pub mod together {}
