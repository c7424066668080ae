//! Shared state by its URL.

use std::sync::Arc;

use interval_queue_contract::SharedState;
use interval_queue_memory::MemoryState;

use crate::error::Error;

/// tmp
pub async fn connect(url: &str) -> Result<Arc<dyn SharedState>, Error> {
    let _ = url;
    Ok(Arc::new(MemoryState::new()))
}
