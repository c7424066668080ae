//! What a copy of the test program is to do: the parts that processes have in a scene.

use std::{env, io, thread};

use tokio::runtime::{Builder, Runtime};

use crate::{command, log::Pen, producer, worker};

/// Tells a copy its part.
pub(crate) const ROLE: &str = "INTERVAL_QUEUE_TEST_ROLE";
/// What of its choices are random.
pub(crate) const SEED: &str = "INTERVAL_QUEUE_TEST_SEED";
/// Where the program and all copies find the store and the queue.
pub(crate) const STATE: &str = "INTERVAL_QUEUE_STORE";
pub(crate) const NAME: &str = "INTERVAL_QUEUE_NAME";

/// Plays the part that the environment says.
pub(crate) fn obey() {
    let pen = Pen::open();
    std::panic::set_hook(Box::new(|info| {
        Pen::open().write(format_args!("panic {}", info.to_string().replace('\n', " ")));
        std::process::exit(101);
    }));
    match env::var(ROLE).unwrap().as_str() {
        "worker" => runtime().block_on(worker::work(pen)),
        "producer" => runtime().block_on(producer::produce(pen)),
        "command" => command::run(&pen),
        other => panic!("there is no part {other:?}"),
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// The store and the queue.
pub(crate) fn place() -> (String, String) {
    (env::var(STATE).unwrap(), env::var(NAME).unwrap())
}

/// Ends with the test, which closes the input. Each line that comes before is handed on.
pub(crate) fn end_with_the_test(mut told: impl FnMut(&str) + Send + 'static) {
    thread::spawn(move || {
        io::stdin().lines().map_while(Result::ok).for_each(|line| told(&line));
        std::process::exit(1);
    });
}
