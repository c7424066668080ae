//! Transactions of an application, on each driver that lends them.

use interval_queue_postgres::{PostgresTasks, deadpool_postgres};
use interval_queue_task_contract::{Add, Added, Completed, Completion, WorkerId};
use sqlx::Connection;

use crate::common::*;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Driver {
    TokioPostgres,
    DeadpoolPostgres,
    Sqlx,
}

/// A connection of an application.
pub(crate) enum Application {
    TokioPostgres(tokio_postgres::Client),
    DeadpoolPostgres(deadpool_postgres::Object),
    Sqlx(sqlx::PgConnection),
}

pub(crate) enum Transaction<'c> {
    TokioPostgres(tokio_postgres::Transaction<'c>),
    DeadpoolPostgres(deadpool_postgres::Transaction<'c>),
    Sqlx(sqlx::Transaction<'c, sqlx::Postgres>),
}

impl Driver {
    pub(crate) const ALL: [Self; 3] = [Self::TokioPostgres, Self::DeadpoolPostgres, Self::Sqlx];

    pub(crate) async fn connect(self, url: &str) -> Application {
        match self {
            Self::TokioPostgres => Application::TokioPostgres(session(url).await),
            Self::DeadpoolPostgres => Application::DeadpoolPostgres(pool(url, 1).get().await.unwrap()),
            Self::Sqlx => Application::Sqlx(sqlx::PgConnection::connect(url).await.unwrap()),
        }
    }
}

impl Application {
    pub(crate) async fn begin(&mut self) -> Transaction<'_> {
        match self {
            Self::TokioPostgres(client) => Transaction::TokioPostgres(client.transaction().await.unwrap()),
            Self::DeadpoolPostgres(client) => {
                Transaction::DeadpoolPostgres(client.transaction().await.unwrap())
            }
            Self::Sqlx(connection) => Transaction::Sqlx(connection.begin().await.unwrap()),
        }
    }
}

impl Transaction<'_> {
    pub(crate) async fn execute(&mut self, sql: &str) {
        match self {
            Self::TokioPostgres(transaction) => transaction.batch_execute(sql).await.unwrap(),
            Self::DeadpoolPostgres(transaction) => transaction.batch_execute(sql).await.unwrap(),
            Self::Sqlx(transaction) => {
                sqlx::QueryBuilder::new(sql).build().execute(&mut **transaction).await.unwrap();
            }
        }
    }

    pub(crate) async fn add(&mut self, tasks: &PostgresTasks, add: Add) -> Result<Vec<Added>, StateError> {
        match self {
            Self::TokioPostgres(transaction) => tasks.add_within(&*transaction, &mail(), add).await,
            Self::DeadpoolPostgres(transaction) => tasks.add_within(&*transaction, &mail(), add).await,
            Self::Sqlx(transaction) => tasks.add_within(&mut **transaction, &mail(), add).await,
        }
    }

    pub(crate) async fn complete(
        &mut self,
        tasks: &PostgresTasks,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, StateError> {
        match self {
            Self::TokioPostgres(transaction) => {
                tasks.complete_within(&*transaction, &mail(), worker, completion).await
            }
            Self::DeadpoolPostgres(transaction) => {
                tasks.complete_within(&*transaction, &mail(), worker, completion).await
            }
            Self::Sqlx(transaction) => {
                tasks.complete_within(&mut **transaction, &mail(), worker, completion).await
            }
        }
    }

    pub(crate) async fn commit(self) {
        match self {
            Self::TokioPostgres(transaction) => transaction.commit().await.unwrap(),
            Self::DeadpoolPostgres(transaction) => transaction.commit().await.unwrap(),
            Self::Sqlx(transaction) => transaction.commit().await.unwrap(),
        }
    }

    pub(crate) async fn rollback(self) {
        match self {
            Self::TokioPostgres(transaction) => transaction.rollback().await.unwrap(),
            Self::DeadpoolPostgres(transaction) => transaction.rollback().await.unwrap(),
            Self::Sqlx(transaction) => transaction.rollback().await.unwrap(),
        }
    }
}
