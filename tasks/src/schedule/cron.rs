//! Cron lines: five fields, in a time zone.

use cronexpr::{Crontab, MakeTimestamp, ParseOptions, parse_crontab_with};
use interval_queue::{InvalidInput, Micros};
use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone},
};

const FIELDS: &str = "minute, hour, day of the month, month, day of the week";
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Of other dialects, with equivalent lines for the errors.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

#[derive(Debug)]
pub(super) struct Cron {
    line: Crontab,
    zone: TimeZone,
    /// The line names every hour, and so follows elapsed time.
    hourly: bool,
}

impl Cron {
    pub(super) fn new(line: &str, zone: &str) -> Result<Self, InvalidInput> {
        let mut fields = fields(line)?;
        let hourly = is_every_hour(fields[1]);
        if hourly {
            fields[1] = "*";
        }
        let text = fields.join(" ");
        let zone = time_zone(zone)?;
        // A time of day is found in UTC, then mapped to the zone's clock.
        let place = if hourly { zone.iana_name().unwrap_or("UTC") } else { "UTC" };
        match parse_crontab_with(&format!("{text} {place}"), ParseOptions::default()) {
            Ok(line) => Ok(Self { line, zone, hourly }),
            Err(error) => Err(wrong(line, why(&error.to_string()))),
        }
    }

    /// `None`: none within four years.
    pub(super) fn next(&self, after: Micros) -> Option<Micros> {
        let after = Timestamp::from_microsecond(i64::try_from(after.get()).ok()?).ok()?;
        let next = if self.hourly { self.find(after)? } else { self.next_by_the_clock(after)? };
        u64::try_from(next.as_microsecond()).ok().map(Micros::new)
    }

    fn find(&self, after: Timestamp) -> Option<Timestamp> {
        self.line.find_next(MakeTimestamp(after)).ok().map(|found| found.timestamp())
    }

    fn next_by_the_clock(&self, after: Timestamp) -> Option<Timestamp> {
        let mut time = self.zone.to_datetime(after);
        loop {
            let found = self.find(TimeZone::UTC.to_timestamp(time).ok()?)?;
            time = TimeZone::UTC.to_datetime(found);
            // A repeated hour has run the first time.
            let next = self.instant(time)?;
            if next > after {
                return Some(next);
            }
        }
    }

    /// Or the end of a jump of the zone's clock over `time`.
    fn instant(&self, time: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(time);
        let is_gap = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
        let earlier = ambiguous.earlier().ok()?;
        if is_gap { self.zone.following(earlier).next().map(|jump| jump.timestamp()) } else { Some(earlier) }
    }
}

/// `*`, `*/1`, `0-23` or a list of all hours.
fn is_every_hour(hours: &str) -> bool {
    let line = format!("0 {hours} * * * UTC");
    let Ok(line) = parse_crontab_with(&line, ParseOptions::default()) else { return false };
    let found = |at: Timestamp| line.find_next(MakeTimestamp(at)).ok().map(|found| found.timestamp());
    let mut instants = std::iter::successors(found(Timestamp::UNIX_EPOCH), |at| found(*at)).zip(1..=24);
    instants.all(|(at, hour)| at.as_second() == hour * 3_600)
}

fn time_zone(name: &str) -> Result<TimeZone, InvalidInput> {
    match TimeZone::get(name) {
        Ok(zone) if !zone.is_unknown() => Ok(zone),
        _ => {
            let text = format!(
                "there is no time zone {name:?}: name one of the IANA time zones, such as Europe/Berlin, or UTC"
            );
            Err(InvalidInput::new(text))
        }
    }
}

fn wrong(line: &str, why: impl std::fmt::Display) -> InvalidInput {
    InvalidInput::new(format!("cron line {line:?}: {why}"))
}

/// Rejects other dialects of cron.
fn fields(line: &str) -> Result<Vec<&str>, InvalidInput> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let first = fields.first().copied().unwrap_or_default();
    if first.starts_with('@') {
        let known = NICKNAMES.iter().find(|(name, _)| first.eq_ignore_ascii_case(name));
        let hint = known.map_or("five fields are needed".into(), |(_, line)| format!("write {line}"));
        return Err(wrong(line, format!("{first} is a name of other dialects: {hint}")));
    }
    if first.contains('=') {
        return Err(wrong(line, "it sets a variable: give the time zone by itself"));
    }
    if let [_, _, _, _, _, zone] = fields[..]
        && time_zone(zone).is_ok()
    {
        return Err(wrong(line, format!("{zone} is a time zone: give it by itself")));
    }
    if fields.len() != 5 {
        let hint = if fields.len() > 5 { "; seconds and years are not supported" } else { "" };
        let text = format!("it has {} fields: give five, {FIELDS}{hint}", fields.len());
        return Err(wrong(line, text));
    }
    for (at, field) in fields.iter().enumerate() {
        let names: &[&str] = match at {
            3 => &MONTHS,
            4 => &DAYS,
            _ => &[],
        };
        for word in field.split([',', '-', '/']) {
            check_word(word, names).map_err(|why| wrong(line, format!("{field}: {why}")))?;
        }
    }
    Ok(fields)
}

fn check_word(word: &str, names: &[&str]) -> Result<(), String> {
    let lower = word.to_ascii_lowercase();
    if word == "*" || names.contains(&&*lower) || !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
    {
        return Ok(());
    }
    if word.is_empty() {
        return Err("something is missing beside a comma, a hyphen or a slash".into());
    }
    if word == "?" {
        return Err("? is of another dialect: write *".into());
    }
    if let Some(name) = names.iter().find(|name| lower.starts_with(**name)) {
        return Err(format!("{word} is no name here: write {name}"));
    }
    if word.bytes().any(|b| b.is_ascii_digit()) || ["L", "W", "LW", "H"].contains(&word) {
        let text =
            format!("{word} is of another dialect: here are numbers, names of months and days, and * , - /");
        return Err(text);
    }
    let example =
        if names.is_empty() { "numbers".into() } else { format!("numbers, and names as {}", names[0]) };
    Err(format!("{word} is unknown here: there are {example}"))
}

/// The parser's error in one line.
fn why(error: &str) -> String {
    let last = error.lines().last().unwrap_or_default();
    let why = last.trim_start().trim_start_matches('^').trim();
    match why.contains("ascending") {
        true => format!("{why}; write it as two, such as 22-23,0-4"),
        false => why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Micros {
        let at: Timestamp = text.parse().unwrap();
        Micros::new(u64::try_from(at.as_microsecond()).unwrap())
    }

    fn next(line: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let cron = Cron::new(line, zone).unwrap();
        let zone = TimeZone::get(zone).unwrap();
        let all = std::iter::successors(cron.next(at(after)), |at| cron.next(*at));
        let shown = all.take(count).map(|at| {
            let at = Timestamp::from_microsecond(at.get().cast_signed()).unwrap();
            at.to_zoned(zone.clone()).strftime("%m-%d %H:%M %:z").to_string()
        });
        shown.collect()
    }

    #[test]
    fn a_line_goes_by_the_clock_of_its_zone() {
        assert_eq!(
            next("30 2 * * *", "Europe/Berlin", "2026-06-01T00:30:00Z", 2),
            ["06-02 02:30 +02:00", "06-03 02:30 +02:00"]
        );
        assert_eq!(
            next("0 9-17/4 * jan,jul Mon-Fri", "America/New_York", "2026-01-02T18:59:59.5Z", 4),
            ["01-02 17:00 -05:00", "01-05 09:00 -05:00", "01-05 13:00 -05:00", "01-05 17:00 -05:00"]
        );
        // A match of either day is enough.
        assert_eq!(
            next("0 0 13 * 5", "UTC", "2026-03-01T00:00:00Z", 3),
            ["03-06 00:00 +00:00", "03-13 00:00 +00:00", "03-20 00:00 +00:00"]
        );
        assert_eq!(next("0 0 31 12 0,7", "UTC", "2026-12-26T00:00:00Z", 2).len(), 2);
        assert_eq!(next("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 1), ["02-29 00:00 +00:00"]);
    }

    #[test]
    fn a_skipped_local_time_runs_once_after_the_jump() {
        // The clock jumps from 02:00 to 03:00.
        let after = "2026-03-28T12:00:00Z";
        assert_eq!(
            next("30 2 * * *", "Europe/Berlin", after, 2),
            ["03-29 03:00 +02:00", "03-30 02:30 +02:00"]
        );
        assert_eq!(
            next("0,30 1-3 * * *", "Europe/Berlin", after, 5),
            [
                "03-29 01:00 +01:00",
                "03-29 01:30 +01:00",
                "03-29 03:00 +02:00",
                "03-29 03:30 +02:00",
                "03-30 01:00 +02:00"
            ]
        );
        // A jump of half an hour, and a jump at midnight.
        assert_eq!(
            next("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", 2),
            ["10-04 02:30 +11:00", "10-05 02:15 +11:00"]
        );
        assert_eq!(
            next("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", 2),
            ["04-24 01:00 +03:00", "04-25 00:00 +03:00"]
        );
        // A jump of a day.
        assert_eq!(
            next("0 3 * * *", "Pacific/Apia", "2011-12-29T14:00:00Z", 2),
            ["12-31 00:00 +14:00", "12-31 03:00 +14:00"]
        );
    }

    #[test]
    fn a_repeated_local_time_runs_once_the_first_time() {
        // The clock goes back from 03:00 to 02:00.
        assert_eq!(
            next("0,30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 3),
            ["10-25 02:00 +02:00", "10-25 02:30 +02:00", "10-26 02:00 +01:00"]
        );
        assert_eq!(
            next("0 */2 * * *", "America/New_York", "2026-11-01T03:00:00Z", 3),
            ["11-01 00:00 -04:00", "11-01 02:00 -05:00", "11-01 04:00 -05:00"]
        );
        // A line without one of the hours follows the clock.
        assert_eq!(
            next("0 1-23 * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 2),
            ["10-25 03:00 +01:00", "10-25 04:00 +01:00"]
        );
        // A search from within the repeated hour.
        assert_eq!(next("45 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1), ["10-26 02:45 +01:00"]);
    }

    #[test]
    fn a_line_for_every_hour_goes_by_the_time_that_passes() {
        for (after, zone, count) in [
            ("2026-10-24T22:00:00Z", "Europe/Berlin", 100),
            ("2026-03-28T23:00:00Z", "Europe/Berlin", 92),
            ("2026-06-01T22:00:00Z", "Europe/Berlin", 96),
        ] {
            let cron = Cron::new("*/15 * * * *", zone).unwrap();
            let begin = at(after);
            let first = |cron: &Cron| -> Vec<_> {
                std::iter::successors(cron.next(begin), |at| cron.next(*at)).take(count).collect()
            };
            let all = first(&cron);
            assert!(
                all.iter()
                    .enumerate()
                    .all(|(n, at)| *at == begin + Micros::from_millis(900_000 * (n as u64 + 1)))
            );
            for hours in ["*/1", "0-23", "0-23/1", "0-11,12-23", "*/2,1-23/2", "1-22,0,23"] {
                let same = Cron::new(&format!("*/15 {hours} * * *"), zone).unwrap();
                assert_eq!(first(&same), all, "{hours} is every hour");
            }
            let day = |at: &Micros| {
                let at = Timestamp::from_microsecond(at.get().cast_signed()).unwrap();
                at.to_zoned(TimeZone::get(zone).unwrap()).day()
            };
            assert_ne!(day(&all[count - 1]), day(&all[count - 2]), "the last one is midnight");
        }
    }

    #[test]
    fn an_invalid_line_is_rejected_with_a_hint() {
        for (line, says) in [
            ("", "it has 0 fields: give five, minute, hour,"),
            ("0 3 * *", "it has 4 fields"),
            (
                "0 0 3 * * *",
                "it has 6 fields: give five, minute, hour, day of the month, month, day of the week; seconds",
            ),
            ("0 0 3 * * ? 2026", "it has 7 fields"),
            ("0 3 * * * Europe/Berlin", "Europe/Berlin is a time zone: give it by itself"),
            ("TZ=UTC 0 3 * * *", "give the time zone by itself"),
            ("@daily", "@daily is a name of other dialects: write 0 0 * * *"),
            ("@Hourly", "write 0 * * * *"),
            ("@reboot", "five fields are needed"),
            ("0 3 ? * *", "?: ? is of another dialect: write *"),
            ("0 3 L * *", "L is of another dialect"),
            ("0 3 15W * *", "15W is of another dialect"),
            ("0 3 * * 5#2", "5#2 is of another dialect"),
            ("H 3 * * *", "H is of another dialect"),
            ("0 3 * * monday", "monday is no name here: write mon"),
            ("0 3 * January *", "January is no name here: write jan"),
            ("0 3 * montag *", "montag is unknown here: there are numbers, and names as jan"),
            ("noon 3 * * *", "noon is unknown here: there are numbers"),
            ("0 24 * * *", "range 0..=23; found 24"),
            ("60 3 * * *", "range 0..=59; found 60"),
            ("0 3 0 * *", "range 1..=31; found 0"),
            ("0 22-2 * * *", "found 22-2; write it as two, such as 22-23,0-4"),
            ("0 3, * * *", "3,: something is missing"),
            ("0 -3 * * *", "-3: something is missing"),
            ("*/0 3 * * *", "*/0"),
        ] {
            let error = Cron::new(line, "UTC").unwrap_err().to_string();
            assert!(error.contains(&format!("cron line {line:?}")), "{error}");
            assert!(error.contains(says) && !error.contains('\n'), "{line}: {error}");
        }
        for zone in ["Europe/Atlantis", "", "+02:00", "Etc/Unknown", "MEZ"] {
            let error = Cron::new("0 3 * * *", zone).unwrap_err().to_string();
            assert!(error.contains(&format!("no time zone {zone:?}: name one")), "{error}");
        }
    }

    #[test]
    fn a_day_that_never_comes_has_no_instant() {
        for line in ["0 0 30 2 *", "0 0 31 4,6,9,11 *"] {
            assert_eq!(Cron::new(line, "UTC").unwrap().next(at("2026-01-01T00:00:00Z")), None, "{line}");
        }
    }
}
