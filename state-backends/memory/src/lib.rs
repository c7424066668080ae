//! Both stores in the memory of one process: for tests, examples and single-process programs.
//!
//! ```
//! use interval_queue_contract::{Change, Command, MaxRunning, Memory, Micros, OnExisting, QueueName, Rates, SharedState};
//! use interval_queue_memory::MemoryState;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let state = MemoryState::new();
//! let queue = QueueName::new("mail")?;
//! let open = Change::Open {
//!     rates: Some(Rates::every(Micros::from_millis(250))),
//!     max_running: MaxRunning::Keep,
//!     on_existing: OnExisting::Replace,
//! };
//! state.apply(&queue, Command::Change(open, Memory::default())).await?;
//! assert_eq!(state.clone().queues().await?, [queue]);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
//! ```

mod clock;
mod state;
mod tasks;
mod watchers;

pub use state::MemoryState;
pub use tasks::{MemoryCopy, MemoryTasks};
#[doc(hidden)]
pub use tasks::{Tables, Written};
