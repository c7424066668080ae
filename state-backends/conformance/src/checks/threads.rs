//! A store never blocks the async runtime.

use std::{thread, time::Duration};

use tokio::{runtime::Builder, sync::oneshot};

use crate::client::{Client, Handles, opened, together};

/// Many concurrent commands complete on one thread: none blocks it while waiting.
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
        // Connections made here must end before other commands can use them.
        drop(runtime);
        // The receiver is gone after a timeout.
        let _ = done.send(());
    });
    let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
    assert_eq!(ended.ok(), Some(Ok(())), "{COMMANDS} commands at once did not end on one thread");
    assert_eq!(one.record().await.ticket.get(), COMMANDS);
}
