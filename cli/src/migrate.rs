//! `migrate`: the tables of an SQL store.

use clap::Args;

use crate::{
    args::StoreArgs,
    exit::{Failure, print_as_it_is, report},
    place::without_secrets,
};

/// Create the tables of an SQLite or PostgreSQL store, or print the SQL that creates them.
///
/// The first command that stores something creates them, too. Use `migrate` to create them as a
/// role that may create tables, for roles that may not. It creates only what is missing: the tables
/// of rates in one transaction, the tables of tasks in another.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  interval-queue migrate --store postgres://owner@db.internal/jobs
  interval-queue migrate --store postgres://app@db.internal/jobs --print")]
pub(crate) struct Migrate {
    #[command(flatten)]
    store: StoreArgs,
    /// Print the SQL that creates the missing tables, and change nothing
    #[arg(long)]
    print: bool,
}

pub(crate) async fn run(migrate: Migrate) -> Result<(), Failure> {
    let place = without_secrets(&migrate.store.url);
    let store = migrate.store.store().await?;
    match store.missing_tables().await? {
        None => report(&format!("nothing to do: {place} has no SQL tables")),
        Some(missing) if missing.is_empty() => {
            report(&format!("nothing to do: the tables in {place} are up to date"))
        }
        Some(missing) if migrate.print => return print_as_it_is(missing.as_bytes()),
        Some(_) => match store.make_tables().await? {
            true => report(&format!("created the tables in {place}")),
            false => report(&format!("nothing to do: another process has created the tables in {place}")),
        },
    }
    Ok(())
}
