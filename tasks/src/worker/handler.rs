//! Handlers with their types erased.

use std::{any::Any, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use interval_queue_task_contract::{Completed, Json};
use serde::{Serialize, de::DeserializeOwned};

use super::{context::Run, task_error::TaskError};
use crate::{Context, queries::parse};

pub(super) type Handler =
    Arc<dyn Fn(Arc<Run>) -> BoxFuture<'static, Result<Output, TaskError>> + Send + Sync>;

/// The value that a successful handler returned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(not(feature = "tower"), allow(unreachable_pub, reason = "the feature tower exports it"))]
pub enum Output {
    /// The result.
    Result(Json),
    /// The handler completed its run within its own transaction.
    Completed(Completed),
}

pub(super) fn typed<S, P, R, E, F, Fut>(state: &Arc<S>, f: F) -> Handler
where
    S: Send + Sync + 'static,
    P: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
    E: Into<TaskError> + Send + 'static,
    F: Fn(Context<S>, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
{
    let (state, f) = (state.clone(), Arc::new(f));
    Arc::new(move |run| {
        let (state, f) = (state.clone(), f.clone());
        async move {
            let payload = payload(&run)?;
            let result = f(Context::new(state, run), payload).await.map_err(Into::into)?;
            output(&result)
        }
        .boxed()
    })
}

pub(super) fn payload<P: DeserializeOwned>(run: &Run) -> Result<P, TaskError> {
    parse(run.payload()).map_err(|error| {
        let kind = &run.leased.task.kind;
        TaskError::permanent(format!("the payload is not one of kind {:?}: {error}", kind.as_str()))
    })
}

pub(super) fn output<R: Serialize + 'static>(result: &R) -> Result<Output, TaskError> {
    if let Some(completed) = (result as &dyn Any).downcast_ref() {
        return Ok(Output::Completed(*completed));
    }
    Json::of(result)
        .map(Output::Result)
        .map_err(|error| TaskError::failed(format!("its result cannot be stored: {error}")))
}

pub(super) fn raw<S, E, F, Fut>(state: &Arc<S>, f: F) -> Handler
where
    S: Send + Sync + 'static,
    E: Into<TaskError> + Send + 'static,
    F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Json, E>> + Send + 'static,
{
    let (state, f) = (state.clone(), Arc::new(f));
    Arc::new(move |run| {
        let (state, f) = (state.clone(), f.clone());
        async move { f(Context::new(state, run)).await.map(Output::Result).map_err(Into::into) }.boxed()
    })
}
