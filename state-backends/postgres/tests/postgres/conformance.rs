//! The suite that every state backend passes: over connections of its own, and over a pool of the
//! application.

use std::sync::Arc;

use interval_queue_conformance::{Handles, Keeping};
use interval_queue_postgres::Durability;

use crate::common::{self, *};

async fn pair(server: Shared, open: impl Fn() -> Builder) -> Handles {
    let schema = someplace();
    let connect = async || {
        let state = on(open().schema(&schema)).await.unwrap();
        Arc::new(Keeping::new(state, server.clone()))
    };
    (connect().await, connect().await)
}

mod by_address {
    use super::*;

    async fn make() -> Handles {
        let server = server();
        pair(server.clone(), || PostgresStore::builder(server.url())).await
    }

    interval_queue_conformance::suite!(
        #[ignore = "needs postgresql: scripts/test runs it"]
        make
    );
}

/// One connection for both handles, which the commands pass on to each other.
mod over_a_pool {
    use super::*;

    async fn make() -> Handles {
        let server = server();
        let pool = common::pool(server.url(), 1);
        pair(server, || PostgresStore::over(pool.clone()).durability(Durability::Relaxed)).await
    }

    interval_queue_conformance::suite!(
        #[ignore = "needs postgresql: scripts/test runs it"]
        make
    );
}
