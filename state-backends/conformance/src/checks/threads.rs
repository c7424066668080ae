//! The async runtime: a state never holds it up.

use std::{thread, time::Duration};

use tokio::{runtime::Builder, sync::oneshot};

use crate::client::{Client, Handles, opened, together};

/// Many commands through both handles, all under way at once on a runtime of a single thread, come to an end:
/// none holds up the thread while it waits for another.
pub async fn one_thread_may_have_many_commands_under_way(handles: Handles) {
    const COMMANDS: u64 = 100;
    let (one, other) = opened(handles, Duration::from_secs(1)).await;
    let (done, ended) = oneshot::channel();
    let clients = [one.clone(), other];
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let take = |client: Client, n| async move {
                vec![client.shard(&format!("one of many {n}")).take(1, 1).await]
            };
            together(clients.each_ref(), COMMANDS, take).await;
        });
        // Connections that were made here end with the runtime, and not while the next command uses them.
        drop(runtime);
        // Nobody listens any more if it took too long.
        let _ = done.send(());
    });
    let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
    assert_eq!(ended.ok(), Some(Ok(())), "{COMMANDS} commands at once did not end on one thread");
    assert_eq!(one.record().await.ticket.get(), COMMANDS);
}
