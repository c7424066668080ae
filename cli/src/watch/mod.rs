//! `watch`: shows queues live on a terminal. `live_view` is the loop: `reader` reads the store when
//! `rounds` requires it, and sends `messages` to the `model`, on which `keys` act. `draw` depends
//! on nothing but the model.

mod draw;
mod history;
mod keys;
mod live_view;
mod messages;
mod model;
mod options;
mod plain;
mod queue_state;
mod reader;
mod rounds;
mod screen;
#[cfg(test)]
mod tests;
mod watch_clock;

pub(crate) use self::{
    live_view::run,
    options::{CHOSEN_VARIABLE, Watch},
};
