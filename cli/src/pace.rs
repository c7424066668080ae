//! The rate of a queue on the command line: `--every`, or `--rate` with `--burst`.

use std::time::Duration;

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, error::ErrorKind, value_parser,
};
use interval_queue::{RateLimit, Rates};
use interval_queue_documents::duration::{interval, positive};

use crate::exit::{Failure, report};

/// The rates in the order of the options. `--burst` applies to the rate before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PaceArgs(Option<RateLimit>);

impl PaceArgs {
    pub(crate) fn pace(&self) -> Option<RateLimit> {
        self.0.clone()
    }

    /// As the queue stores them. Prints a warning for each rate that has no effect.
    pub(crate) fn rates(&self) -> Result<Option<Rates>, Failure> {
        let Some(pace) = &self.0 else { return Ok(None) };
        for (rate, by) in pace.without_effect().map_err(interval_queue::Error::from)? {
            report(&format!("the rate of one {rate} has no effect: one {by} is stricter"));
        }
        Ok(Some(pace.rates().map_err(interval_queue::Error::from)?))
    }
}

/// `count` starts per `per`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RateArg {
    count: u64,
    per: Duration,
}

/// Parses `5/s`, `10000/day` or `1/250ms`.
fn rate(text: &str) -> Result<RateArg, String> {
    let shown = text.escape_debug();
    let example = "write for example 5/s, 300/min or 10000/day";
    let (count, unit) = text.split_once('/').ok_or_else(|| format!("{shown} is no rate: {example}"))?;
    let count: u64 =
        count.trim().parse().map_err(|_| format!("{shown} has no number before the /: {example}"))?;
    if count == 0 {
        return Err(format!("{shown} is no start at all: give at least 1, or pause the queue"));
    }
    let unit = unit.trim();
    let with_number =
        if unit.starts_with(|c: char| c.is_ascii_digit()) { unit.into() } else { format!("1{unit}") };
    let per = positive(&with_number).map_err(|error| match unit {
        "" => format!("{shown} has no time after the /: {example}"),
        _ => format!("{shown}: {error}"),
    })?;
    Ok(RateArg { count, per })
}

impl Args for PaceArgs {
    fn augment_args(command: Command) -> Command {
        let pace = |name: &'static str| Arg::new(name).long(name).allow_hyphen_values(true);
        command
            .arg(
                pace("every")
                    .value_name("DURATION")
                    .value_parser(interval)
                    .conflicts_with("rate")
                    .help("Time between two starts, 1us to 366days: 250ms, 1.5s, 2min. Default: the stored rate"),
            )
            .arg(
                pace("rate")
                    .value_name("N/UNIT")
                    .value_parser(rate)
                    .action(ArgAction::Append)
                    .help("Starts per time: 5/s, 10000/day; several hold together. Default: the stored rate")
                    .long_help(
                        "Starts per time: 5/s, 300/min, 10000/day, 1/250ms. May be given up to eight times; all of \
                         them hold. Default: the stored rate.\n\nStarts of the fastest rate are evenly spaced, unless \
                         --burst follows it. A slower rate is a quota: never more than N starts in any window of its \
                         length, and up to a tenth of them at once.",
                    ),
            )
            .arg(
                pace("burst")
                    .value_name("N")
                    .value_parser(value_parser!(u32))
                    .action(ArgAction::Append)
                    .help("Starts at once after a time without, for the --rate or --every before it. Default: 1"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PaceArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        enum RateOption {
            Every(Duration),
            Rate(RateArg),
            Burst(u32),
        }
        let mut options: Vec<(usize, RateOption)> = Vec::new();
        let places = |name: &str| matches.indices_of(name).into_iter().flatten().collect::<Vec<_>>();
        if let Some(every) = matches.get_one("every") {
            options.extend(places("every").into_iter().map(|place| (place, RateOption::Every(*every))));
        }
        let rates = matches.get_many("rate").into_iter().flatten().map(|rate| RateOption::Rate(*rate));
        options.extend(places("rate").into_iter().zip(rates));
        let bursts = matches.get_many("burst").into_iter().flatten().map(|burst| RateOption::Burst(*burst));
        options.extend(places("burst").into_iter().zip(bursts));
        options.sort_by_key(|(place, _)| *place);
        let mut last_is_rate = false;
        for (_, option) in options {
            let pace = self.0.take();
            let is_rate = !matches!(option, RateOption::Burst(_));
            let pace = match (option, pace) {
                (RateOption::Every(every), _) => RateLimit::every(every),
                (RateOption::Rate(RateArg { count, per }), None) => RateLimit::rate(count).per(per),
                (RateOption::Rate(RateArg { count, per }), Some(pace)) => pace.and(count).per(per),
                (RateOption::Burst(burst), Some(pace)) if last_is_rate => pace.burst(burst),
                (RateOption::Burst(burst), _) => {
                    let text = format!(
                        "--burst {burst} needs a --rate or --every before it: write for example --rate 5/s --burst {burst}"
                    );
                    return Err(Error::raw(ErrorKind::ArgumentConflict, text));
                }
            };
            (self.0, last_is_rate) = (Some(pace), is_rate);
        }
        match self.0.as_ref().map(RateLimit::check) {
            Some(Err(error)) => Err(Error::raw(ErrorKind::ValueValidation, error.to_string())),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use interval_queue::{DAY, SECOND};

    use super::*;

    fn parse(words: &str) -> Result<Option<RateLimit>, String> {
        let words = ["test"].into_iter().chain(words.split_whitespace());
        let matches = PaceArgs::augment_args(Command::new("test")).try_get_matches_from(words);
        let args = matches.and_then(|matches| PaceArgs::from_arg_matches(&matches));
        args.map(|args| args.pace()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_burst_belongs_to_the_rate_before_it() {
        assert_eq!(parse(""), Ok(None));
        assert_eq!(parse("--every 200ms"), Ok(Some(RateLimit::every(Duration::from_millis(200)))));
        let published = RateLimit::rate(5).per(SECOND).burst(20).and(10_000).per(DAY);
        assert_eq!(parse("--rate 5/s --burst 20 --rate 10000/day"), Ok(Some(published)));
        let other = RateLimit::rate(5).per(SECOND).and(10_000).per(DAY).burst(20);
        assert_eq!(parse("--rate 5/s --rate 10000/day --burst 20"), Ok(Some(other)));
        assert_eq!(parse("--rate 1/250ms"), Ok(Some(RateLimit::rate(1).per(Duration::from_millis(250)))));
    }

    #[test]
    fn invalid_rates_are_reported() {
        for (words, says) in [
            ("--rate 5", "write for example 5/s"),
            ("--rate x/s", "no number before the /"),
            ("--rate 5/", "no time after the /"),
            ("--rate 5/parsec", "5/parsec: "),
            ("--rate 5/M", "5/M: 1M: M is no unit here: write months, or min for minutes"),
            ("--rate 0/s", "give at least 1"),
            ("--rate 1000000000/s", "at most one per microsecond"),
            ("--rate 5/s --burst 0", "burst 0"),
            ("--burst 20", "--rate 5/s --burst 20"),
            ("--rate 5/s --burst 2 --burst 3", "needs a --rate or --every before it"),
            ("--every 1s --rate 5/s", "cannot be used with"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(says), "{words}: {error}");
        }
    }
}
