//! Child processes: the commands that `run`, `each` and `work` start. `running` is a direct child,
//! `guarded` one under a `guard`, which outlives a killed worker, and `kept` one that runs many
//! tasks.

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
