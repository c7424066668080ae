//! All that runs, in turns, and what it brought.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    Failure,
    arguments::Arguments,
    contender::{Contender, StateKind},
    idle::{self, Samples},
    machine,
    masses::Masses,
    report::{Pace, Report},
    run,
    scenario::{Plan, table},
    selection::Selection,
    state, store,
};

/// How long a run takes besides what is paced: servers and processes start and end.
const OVERHEAD: Duration = Duration::from_millis(700);
/// How many samples of an idle queue are taken in a turn, and about how long that takes.
const IDLE_SAMPLES: u64 = 60;
const IDLE_TAKES: Duration = Duration::from_secs(7);

/// What was asked for, with what was found so far.
pub(crate) struct Session<'a> {
    contenders: &'a [Box<dyn Contender>],
    repeats: u32,
    quick: bool,
    paces: Vec<Entry<'a>>,
    /// What cannot run, with the reason.
    left_out: Vec<Pace>,
    idles: Vec<Samples>,
    masses: Masses,
}

/// A contender in a plan.
struct Entry<'a> {
    contender: &'a dyn Contender,
    plan: Plan,
    found: Pace,
}

impl<'a> Session<'a> {
    /// What the arguments ask for, as far as its state can be had.
    pub(crate) fn new(arguments: &Arguments, contenders: &'a [Box<dyn Contender>]) -> Result<Self, Failure> {
        let mut paces = Vec::new();
        for plan in table(arguments.quick) {
            for contender in contenders {
                if contender.states().contains(&plan.state) && contender.takes_part(&plan) {
                    let found = plan.pace(contender.name());
                    paces.push(Entry { contender: &**contender, plan: plan.clone(), found });
                }
            }
        }
        let mut idles: Vec<_> = idle::STATES.into_iter().map(Samples::new).collect();
        let mut masses = Masses::new(arguments.quick);

        let mut selection = Selection::new(arguments);
        let names: Vec<(String, StateKind)> = paces
            .iter()
            .map(|entry| (entry.plan.name(), entry.plan.state))
            .chain(idles.iter().map(|idle| (idle.name(), idle.kind)))
            .chain(masses.names())
            .collect();
        selection.check(names.iter().map(|(name, kind)| (&**name, *kind)))?;
        paces.retain(|entry| selection.takes(&entry.plan.name(), entry.plan.state));
        idles.retain(|idle| selection.takes(&idle.name(), idle.kind));
        masses.retain(|name, kind| selection.takes(name, kind));
        let repeats = arguments.repeats.unwrap_or(if arguments.quick { 1 } else { 5 });
        let (quick, left_out) = (arguments.quick, Vec::new());
        Ok(Self { contenders, repeats, quick, paces, left_out, idles, masses })
    }

    /// Says what would run.
    pub(crate) fn list(&self) {
        for entry in &self.paces {
            println!("{}: {}", entry.plan.name(), entry.contender.name());
        }
        self.idles.iter().for_each(|idle| println!("{}", idle.name()));
        if !(self.paces.is_empty() && self.idles.is_empty()) {
            println!("\n{} times, {}", self.repeats, minutes(self.turn_takes() * self.repeats));
        }
        let mut masses = self.masses.names().peekable();
        if masses.peek().is_some() {
            println!();
            masses.for_each(|(name, _)| println!("{name}"));
            println!("\nonce, {}", minutes(self.masses.takes()));
        }
    }

    /// Brings what the contenders need. Those that cannot be had are left out.
    pub(crate) fn prepare(&mut self) {
        for contender in self.contenders {
            let name = contender.name();
            if !self.paces.iter().any(|entry| entry.contender.name() == name) {
                continue;
            }
            if let Err(reason) = contender.prepare() {
                eprintln!("{name} is left out: {reason}");
                let theirs = self.paces.extract_if(.., |entry| entry.contender.name() == name);
                let failure = Some(format!("left out: {reason}"));
                self.left_out.extend(theirs.map(|entry| Pace { failure: failure.clone(), ..entry.found }));
            }
        }
    }

    /// Runs everything, and everything once before anything again: a change of the machine's mood hits all
    /// alike.
    pub(crate) fn run(&mut self) {
        let of = self.paces.len() + self.idles.len();
        let mut left = self.turn_takes() * self.repeats;
        for repeat in 1..=self.repeats {
            let mut number = 0;
            let mut progress = |what: &str, takes: Duration| {
                number += 1;
                eprintln!("[{repeat}/{}: {number}/{of}, {} left] {what}", self.repeats, minutes(left));
                left = left.saturating_sub(takes);
            };
            for entry in &mut self.paces {
                progress(&format!("{} {}", entry.contender.name(), entry.plan.name()), entry.takes());
                entry.run(u64::from(repeat));
            }
            for idle in &mut self.idles {
                progress(&idle.name(), IDLE_TAKES);
                let samples = if self.quick { IDLE_SAMPLES / 10 } else { IDLE_SAMPLES };
                if let Err(failure) = idle.take(samples, repeat == 1) {
                    eprintln!("    {failure}");
                }
            }
        }
        self.masses.run(|name, takes| eprintln!("[once, {}] {name}", minutes(takes)));
    }

    /// What was found.
    pub(crate) fn report(self) -> Report {
        let mut versions: BTreeMap<_, _> =
            self.contenders.iter().flat_map(|contender| contender.versions()).collect();
        let redis = state::redis_program();
        versions.extend(machine::version(&redis, "--version").map(|version| (redis, version)));
        Report {
            day: store::today(),
            command: store::command(),
            machine: machine::this(),
            versions,
            paces: self.paces.into_iter().map(|entry| entry.found).chain(self.left_out).collect(),
            idle: self.idles.iter().filter_map(Samples::found).collect(),
            crowds: self.masses.crowds,
            lines: self.masses.lines,
            tasks: BTreeMap::new(),
        }
    }

    fn turn_takes(&self) -> Duration {
        let paces: Duration = self.paces.iter().map(Entry::takes).sum();
        paces + IDLE_TAKES * u32::try_from(self.idles.len()).unwrap_or(u32::MAX)
    }
}

impl Entry<'_> {
    fn takes(&self) -> Duration {
        self.plan.takes() + OVERHEAD
    }

    fn run(&mut self, seed: u64) {
        match run::once(self.contender, &self.plan, seed) {
            Ok(outcome) => {
                self.found.runs.push(outcome.run);
                if self.found.sample.is_empty() {
                    self.found.sample = outcome.sample;
                }
            }
            Err(failure) => {
                eprintln!("    {failure}");
                self.found.failure = Some(failure.to_string());
            }
        }
    }
}

fn minutes(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds < 90 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
