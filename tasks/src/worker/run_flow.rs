//! The flow of a run's task.

use super::Context;
use crate::flow::FlowId;

impl<S> Context<S> {
    /// The task's flow, which [`Flow::named`](crate::Flow::named) extends. `None`: it has none.
    pub fn flow(&self) -> Option<FlowId> {
        FlowId::of(self.task())
    }
}
