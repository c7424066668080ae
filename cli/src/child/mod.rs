//! Child processes: the commands that `run`, `each` and `work` start.
//!
//! `running` starts a command, forwards signals to it and ends it after its timeout. `guarded` does
//! so for a command under a `guard`, which outlives a killed worker, and `kept` for one that runs
//! many tasks. `end` is the result of all.
//! `pipe` reads output, which `output_tail` keeps in part and `captured` in full; `stderr_writer`
//! also prints it.

mod captured;
mod end;
pub(crate) mod guard;
mod guarded;
mod keep;
mod kept;
mod output_tail;
mod pipe;
mod running;
mod stderr_writer;

pub(crate) use self::{
    captured::{Captured, Section},
    end::{End, Finished},
    guarded::{RunRequest, run as run_guarded},
    kept::{IdleState, KeptCommand, Line},
    output_tail::OutputTail,
    running::{Running, expect_children},
    stderr_writer::{StderrHandle, StderrWriter},
};

#[cfg(test)]
pub(crate) use self::keep::Keep;
