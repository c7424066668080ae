//! Documentation alone.
//!
//! | page | what for |
//! |---|---|
//! | [`coming_from`] | python-task-queue (`ptq`, FileQueue), Celery, River: what maps to what |
//! | [`together`] | tasks and runs as part of a transaction of the application |
//!
//! What tasks are and what is promised of them: `docs/tasks.md` of the repository.

#[doc = include_str!("coming_from.md")]
pub mod coming_from {}

#[doc = include_str!("together.md")]
pub mod together {}
