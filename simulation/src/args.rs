//! The command line.

use std::{ops::Range, time::Duration};

use clap::{Args as Options, CommandFactory, Parser, Subcommand, error::ErrorKind};
use interval_queue_contract::{Micros, Rate, Rates};
use interval_queue_sim::{Fault, Shape, tasks};

use crate::subject::Subject;

/// Simulates shards of an interval queue in virtual time, with all that can go wrong, and checks every
/// promise after every event. Each seed gives another plan, and always the same one.
///
/// Exit status: 0 no violation, 1 a promise was broken, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "interval-queue-sim", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Run the plans of many seeds; stop at the first that breaks a promise, and show the shortest plan that
    /// does.
    ///
    /// Example: interval-queue-sim run --seeds 0..1000 --faults crash,stop,lose-reply
    Run(RunOptions),
    /// Run the plan of one seed and print all that happens.
    Replay(ReplayOptions),
    /// List the faults, and the rules that are wrong on purpose.
    Faults,
}

#[derive(Debug, Options)]
pub(crate) struct World {
    /// How many shards there are at any time.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    shards: u64,
    /// How many jobs they get.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    jobs: u64,
    /// Simulate stored tasks instead of jobs, so many of them; what is called a shard is a worker then.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["jobs", "rate"], value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tasks: Option<u64>,
    /// What goes wrong: all, none, or names with commas between; `interval-queue-sim faults` lists them.
    #[arg(long, default_value = "all", value_parser = faults)]
    faults: Faults,
    /// How many faults there are for ten jobs or tasks.
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(0..=1_000))]
    faults_per_ten_jobs: u64,
    /// The interval of the queue, such as 10ms. Default: a few between 5 and 250 ms, by the seed, for some seeds
    /// with bursts and quotas.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "rate")]
    interval: Option<Duration>,
    /// The rates of the queue, each an interval and a burst, such as 10ms:20,60ms:100.
    #[arg(long, value_name = "TIME:BURST,…", value_parser = rates)]
    rate: Option<Rates>,
    /// The lease of the shards, such as 5s. Default: a few between 0.5 and 5 s, by the seed.
    #[arg(long, value_name = "TIME", value_parser = time)]
    lease: Option<Duration>,
    /// Break a rule on purpose, to see that it is found.
    #[arg(long, value_name = "RULE")]
    sabotage: Option<String>,
}

#[derive(Debug, Options)]
pub(crate) struct RunOptions {
    /// The seeds, the last one excluded. Default: a thousand that nobody has tried before.
    #[arg(long, value_name = "FROM..TO", value_parser = seeds)]
    pub(crate) seeds: Option<Range<u64>>,
    #[command(flatten)]
    pub(crate) world: World,
    /// How many simulations run at once. Default: one for each core.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub(crate) threads: Option<u64>,
    /// Print the result as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Options)]
pub(crate) struct ReplayOptions {
    /// The seed.
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) world: World,
}

#[derive(Clone, Debug)]
pub(crate) struct Faults(Vec<Fault>);

impl World {
    /// Ends the program if there is no such thing.
    pub(crate) fn subject(&self) -> Subject {
        let sabotage = self.sabotage.as_deref();
        let subject = match self.tasks {
            None => Subject::jobs(self.shape(), sabotage),
            Some(number) => {
                let shape = tasks::Shape {
                    workers: count(self.shards),
                    tasks: count(number),
                    faults: self.faults.0.clone(),
                    faults_per_ten_tasks: count(self.faults_per_ten_jobs),
                    interval: self.interval,
                    lease: self.lease,
                };
                Subject::tasks(shape, sabotage)
            }
        };
        subject.unwrap_or_else(|text| Args::command().error(ErrorKind::InvalidValue, text).exit())
    }

    fn shape(&self) -> Shape {
        let steady = self.interval.map(|interval| Rates::every(Micros::from_duration(interval)));
        Shape {
            shards: count(self.shards),
            jobs: count(self.jobs),
            faults: self.faults.0.clone(),
            faults_per_ten_jobs: count(self.faults_per_ten_jobs),
            rates: self.rate.or(steady),
            lease: self.lease,
        }
    }

    pub(crate) fn words(&self) -> String {
        let names: Vec<_> = self.faults.0.iter().map(|fault| fault.name()).collect();
        let faults = match names.len() {
            0 => "none".to_owned(),
            count if count == Fault::ALL.len() => "all".to_owned(),
            _ => names.join(","),
        };
        let sabotage = self.sabotage.as_ref().map_or(String::new(), |name| format!(" --sabotage {name}"));
        let fixed =
            [("interval", self.interval), ("lease", self.lease)].into_iter().filter_map(|(name, time)| {
                time.map(|time| format!(" --{name} {}", humantime::format_duration(time)).replace("s ", "s"))
            });
        let rate = |rate: &Rate| {
            let interval = humantime::format_duration(rate.interval.to_duration()).to_string();
            format!("{}:{}", interval.replace(' ', ""), rate.burst)
        };
        let rates = self.rate.map(|rates| rates.iter().map(rate).collect::<Vec<_>>().join(","));
        let rates = rates.map(|rates| format!(" --rate {rates}"));
        format!(
            "--shards {} {} --faults {faults} --faults-per-ten-jobs {}{}{sabotage}",
            self.shards,
            self.tasks.map_or_else(|| format!("--jobs {}", self.jobs), |tasks| format!("--tasks {tasks}")),
            self.faults_per_ten_jobs,
            fixed.chain(rates).collect::<String>()
        )
    }
}

fn faults(text: &str) -> Result<Faults, String> {
    match text {
        "all" => Ok(Faults(Fault::ALL.to_vec())),
        "none" => Ok(Faults(Vec::new())),
        _ => text.split(',').map(|name| name.trim().parse()).collect::<Result<_, _>>().map(Faults),
    }
}

/// At least a millisecond, the grain of simulated time; at most an hour.
fn time(text: &str) -> Result<Duration, String> {
    let time =
        humantime::parse_duration(text).map_err(|_| format!("{text:?} is not a time such as 10ms or 5s"))?;
    let bounds = Duration::from_millis(1)..=Duration::from_secs(3_600);
    if bounds.contains(&time) { Ok(time) } else { Err(format!("{text}: use 1ms to 1h")) }
}

/// Intervals, each with its burst behind a colon.
fn rates(text: &str) -> Result<Rates, String> {
    let rate = |text: &str| {
        let (interval, burst) = text.split_once(':').unwrap_or((text, "1"));
        let burst = burst.parse().map_err(|_| format!("{burst:?} is not a burst such as 20"))?;
        Ok(Rate { interval: Micros::from_duration(time(interval)?), burst })
    };
    let rates: Vec<_> = text.split(',').map(rate).collect::<Result<_, String>>()?;
    Rates::of(rates).map_err(|error| error.to_string())
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("{text:?} is not a range of seeds: write 0..1000 for the thousand from 0 to 999");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let range = from.trim().parse().map_err(|_| wrong())?..to.trim().parse().map_err(|_| wrong())?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}
