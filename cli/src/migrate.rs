//! `migrate`: the tables of an SQL store.

use clap::Args;

use crate::{
    args::StoreArgs,
    exit::{Failure, print_as_it_is, say},
    place::without_secrets,
};

/// Make the tables of an SQLite or PostgreSQL store, or print the SQL that makes them.
///
/// The first command that stores something makes them, too. `migrate` is for a role that may create tables, on behalf of
/// roles that may not. It makes only what is missing, all tables of a kind in one transaction.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue migrate --store postgres://owner@db.internal/jobs
  interval-queue migrate --print --store postgres://app@db.internal/jobs > tables.sql")]
pub(crate) struct Migrate {
    #[command(flatten)]
    store: StoreArgs,
    /// Print the SQL, and change nothing
    #[arg(long)]
    print: bool,
}

pub(crate) async fn migrate(migrate: Migrate) -> Result<(), Failure> {
    let place = without_secrets(&migrate.store.url);
    let store = migrate.store.store().await?;
    match store.missing_tables().await? {
        None => say(&format!("nothing to do: {place} has no SQL tables")),
        Some(missing) if missing.is_empty() => {
            say(&format!("nothing to do: the tables in {place} are up to date"))
        }
        Some(missing) if migrate.print => return print_as_it_is(missing.as_bytes()),
        Some(_) => match store.make_tables().await? {
            true => say(&format!("made the tables in {place}")),
            false => say(&format!("nothing to do: another process has made the tables in {place}")),
        },
    }
    Ok(())
}
