//! The tables are made once, however many come first.

use futures::future::join_all;
use interval_queue_postgres::PostgresState;
use interval_queue_test_support::PostgresServer;

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn who_connects_together_to_an_empty_database_finds_the_tables_of_the_first() {
    let server = PostgresServer::start();
    for round in 0..10 {
        let connect = || PostgresState::builder(server.url()).schema(format!("round {round}")).connect();
        for state in join_all((0..12).map(|_| connect())).await {
            assert!(state.is_ok(), "round {round}: {state:?}");
        }
    }
}
