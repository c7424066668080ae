//! How accurate and how cheap the pace is: real processes on real states, other libraries beside them.
//!
//!     cargo bench --bench pace -- --help

mod analysis;
mod arguments;
mod assignment;
mod call;
mod choice;
mod clock;
mod contender;
mod crew;
mod crowd;
mod document;
mod figures;
mod idle;
mod install;
mod local;
mod long_line;
mod machine;
mod masses;
mod member;
mod notes;
mod order;
mod peers;
mod pictures;
mod print;
mod render;
#[allow(unreachable_pub, reason = "the form of a file that others read, too")]
mod report;
mod run;
mod scenario;
mod selection;
mod session;
mod state;
mod store;
mod trace;
mod watched;
mod worker;

use std::{env, error::Error, fs, path::Path, process::ExitCode};

use crate::{
    arguments::{Arguments, Role},
    contender::{Contender, Ours},
    session::Session,
};

/// Whatever went wrong.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments = Arguments::read();
    let ended = match arguments.role {
        Some(Role::Worker(arguments)) => worker::run(arguments),
        Some(Role::Idle(arguments)) => idle::run(arguments),
        Some(Role::Local(arguments)) => local::run(arguments),
        Some(Role::Member(arguments)) => member::run(arguments),
        Some(Role::Line(arguments)) => long_line::run(arguments),
        None => benchmark(&arguments),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn benchmark(arguments: &Arguments) -> Result<(), Failure> {
    // Cargo begins in the folder of the package; whoever names a file does so from that of the repository.
    env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))?;
    if let Some(file) = &arguments.render {
        let mut report = store::read(file)?;
        if let Some(part) = &arguments.tasks {
            let wrong = |error| format!("cannot read {}: {error}", part.display());
            let text = fs::read_to_string(part).map_err(wrong)?;
            let sections = render::sections(&text);
            if sections.is_empty() {
                return Err(format!(
                    "{} has no section of a store, which begins with \"### \"",
                    part.display()
                )
                .into());
            }
            report.tasks.extend(sections);
        }
        return Ok(render::render(&report, Path::new("docs"))?);
    }
    let mut contenders: Vec<Box<dyn Contender>> = vec![Box::new(Ours { threads: arguments.threads })];
    if arguments.peers {
        contenders.extend(peers::all());
    }
    let mut session = Session::new(arguments, &contenders)?;
    if arguments.list {
        session.list();
        return Ok(());
    }
    session.prepare();
    session.run();
    let report = session.report();
    print::report(&report);
    store::write(&report, &arguments.json)
}
