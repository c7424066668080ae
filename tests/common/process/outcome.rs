//! What came of a chaos: counted, held to the promises, and written down as evidence.

use std::{env, fs, ops::Range, path::Path, time::Duration};

use interval_queue::MAX_LEAD;
use serde_json::json;

use super::{
    Scene, Start,
    chaos::Injection,
    findings::{Grant, Jobs, Use},
    micros,
};

/// Names the directory for what was measured.
const EVIDENCE: &str = "INTERVAL_QUEUE_EVIDENCE";
/// What a machine that others use may add to any length of time.
const BUSY: Duration = Duration::from_secs(5);
/// So many starts in a row tell the pace.
const ROW: usize = 10;

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    pub injections: Vec<Injection>,
    interval: Duration,
    starts: Vec<Start>,
    jobs: Jobs,
    close: usize,
    without_grant: usize,
    stale: Vec<(Start, Grant)>,
    tickets_twice: usize,
    refused: usize,
    /// From the end of each injection to the next start, and when that was.
    recoveries: Vec<(u64, u64)>,
    /// From the end of each injection to the first of ten starts in a row that kept the pace, as far as there
    /// were any.
    full_pace: Vec<u64>,
    /// The longest pause between two starts from each injection on, and when it ended.
    longest_pauses: Vec<(u64, u64)>,
    /// The starts when no more harm was done.
    calm: Vec<Start>,
    /// What else was counted, in words.
    notes: Vec<String>,
}

impl Outcome {
    pub fn new(
        scene: &Scene,
        interval: Duration,
        injections: Vec<Injection>,
        is_clock_stepped: bool,
        calm: Range<u64>,
    ) -> Self {
        let log = &scene.log;
        let starts = log.starts();
        let Use { without_grant, stale } = log.use_of_slots(is_clock_stepped);
        let mut outcome = Self {
            interval,
            jobs: log.jobs(),
            close: log.too_close(interval).len(),
            without_grant: without_grant.len(),
            stale,
            tickets_twice: log.tickets_taken_twice().len(),
            refused: log.count_of_refused(),
            recoveries: Vec::new(),
            full_pace: Vec::new(),
            longest_pauses: Vec::new(),
            calm: starts.iter().copied().filter(|start| calm.contains(&start.at)).collect(),
            starts,
            notes: Vec::new(),
            injections,
        };
        outcome.measure(calm.end);
        // No promise depends on it, but nothing may be left behind.
        let record = scene.place.record();
        assert!(record.shards.is_empty(), "nobody is left who waits: {record:?}");
        let highest = log.tickets().into_values().max().unwrap();
        assert!(
            record.ticket.get() >= highest && record.current.get() >= highest,
            "G9: ticket and current never go back: {record:?} after ticket {highest}"
        );
        outcome
    }

    /// Measures from each injection to the next, and from the last to the instant from which on nothing was
    /// added.
    fn measure(&mut self, last: u64) {
        let ends = self.injections.iter().skip(1).map(|next| next.begun).chain([last]);
        for (injection, next) in self.injections.iter().zip(ends) {
            let of_others = |start: &&Start| Some(start.worker) != injection.victim;
            let after = self.starts.partition_point(|start| start.at < injection.over);
            if let Some(first) = self.starts[after..].iter().find(of_others) {
                self.recoveries.push((first.at - injection.over, first.at));
            }
            let until = self.starts.partition_point(|start| start.at < next);
            let most = micros(self.interval) * ROW as u64 * 5 / 4;
            let mut rows = self.starts[after..until.max(after)].windows(ROW + 1);
            if let Some(row) = rows.find(|row| row[ROW].at - row[0].at <= most) {
                self.full_pace.push(row[0].at - injection.over);
            }
            let begun = self.starts.partition_point(|start| start.at < injection.begun);
            let concerned = &self.starts[begun.saturating_sub(1)..(until + 1).min(self.starts.len())];
            self.longest_pauses
                .extend(concerned.windows(2).map(|pair| (pair[1].at - pair[0].at, pair[1].at)).max());
        }
    }

    /// Adds what a test counted itself.
    pub fn note(mut self, note: String) -> Self {
        self.notes.push(note);
        self
    }

    /// Adds how many jobs were refused.
    pub fn noting_refused(self) -> Self {
        let refused = counted(self.refused);
        self.note(format!("{refused} adds were refused meanwhile, and never started"))
    }

    /// Writes down what was promised and what happened.
    pub fn tell(&self, scene: &Scene, fault: &str, promised: &str) {
        let mut happened = format!(
            "{} of {} jobs of the living lost, {} started twice, {} without a grant, {} slots too close; longest pause \
             between two starts {} ms",
            counted(self.jobs.lost.len()),
            counted(self.jobs.of_the_living),
            counted(self.jobs.twice.len()),
            counted(self.without_grant),
            counted(self.close),
            millis(longest(&self.longest_pauses)),
        );
        if !self.full_pace.is_empty() {
            happened += &format!("; full pace again after {} ms (median)", millis(median(&self.full_pace)));
        }
        let took = self.calm[self.calm.len() - 1].at - self.calm[0].at;
        let share = micros(self.interval) as f64 * (self.calm.len() - 1) as f64 / took as f64;
        happened += &format!("; in the end {:.0} % of the nominal rate", share * 100.0);
        for note in &self.notes {
            happened += &format!("; {note}");
        }
        let row = json!({
            "kind": "chaos",
            "where": scene.place.kind(),
            "fault": fault,
            "injected": self.injections.len(),
            "promised": promised,
            "happened": happened,
            "starts": self.starts.len(),
            "recovery_ms": {
                "median": tenths(median(&self.recoveries.iter().map(|(length, _)| *length).collect::<Vec<_>>())),
                "longest": tenths(longest(&self.recoveries)),
            },
        });
        println!("{row:#}");
        if let Some(directory) = env::var_os(EVIDENCE) {
            let name = scene.name.replace("::", "-").replace('_', "-");
            let text = format!("{:#}\n", json!([row]));
            fs::create_dir_all(&directory).unwrap();
            fs::write(Path::new(&directory).join(format!("chaos-{name}.json")), text).unwrap();
        }
    }

    /// Asserts what holds whatever happens, and that of all slots at most so many came early.
    pub fn assert_sound(&self, scene: &Scene, early: usize) {
        let Jobs { lost, twice, refused_but_started, .. } = &self.jobs;
        assert!(lost.is_empty(), "G4: jobs of living shards never started: {lost:?}");
        assert!(twice.is_empty(), "G5: jobs started twice: {twice:?}");
        assert!(refused_but_started.is_empty(), "G10: refused and started: {refused_but_started:?}");
        assert_eq!(self.without_grant, 0, "G5: jobs started without a grant");
        // With what is given up no burst of stale starts is left, as slots keep their distance.
        assert!(self.stale.is_empty(), "G5: started long after their slots: {:?}", self.stale);
        assert!(self.close <= early, "G1: {} slots closer than the interval, {early} may be", self.close);
        assert_eq!(self.recoveries.len(), self.injections.len(), "G4: work went on each time");
        // G6: nothing of the harm is left.
        scene.log.assert_kept_pace(self.calm.iter().map(|start| start.at), self.interval);
    }

    /// Asserts that tickets were taken once, which holds as long as the record forgets nothing.
    pub fn assert_tickets_unique(&self) {
        assert_eq!(self.tickets_twice, 0, "G2: tickets taken twice");
    }

    /// Asserts that in no injection the starts paused for longer than was promised.
    pub fn assert_no_pause_beyond(&self, scene: &Scene, promised: Duration) {
        let beyond = beyond(scene, &self.longest_pauses, promised);
        assert!(beyond.is_empty(), "G4: no start for so many microseconds: {beyond:?}");
    }

    /// Asserts that the first start after each injection came as soon as was promised.
    pub fn assert_recovery_within(&self, scene: &Scene, promised: Duration) {
        let beyond = beyond(scene, &self.recoveries, promised);
        assert!(beyond.is_empty(), "G10: work went on only after so many microseconds: {beyond:?}");
    }

    /// Asserts that no slots were granted while the state could not be reached, but for those that had been
    /// before.
    pub fn assert_quiet_meanwhile(&self, scene: &Scene) {
        let lead = micros(MAX_LEAD.to_duration());
        for Injection { begun, lasted, .. } in &self.injections {
            let early = scene.log.slots_between(begun + lead, *lasted);
            assert!(early.is_empty(), "G10: granted while the state was unreachable: {early:?}");
        }
    }
}

/// Those of the lengths of time that took longer than promised, each with the instant at which it ended, as
/// far as the host does not explain it.
fn beyond(scene: &Scene, lengths: &[(u64, u64)], promised: Duration) -> Vec<u64> {
    let most = |length, end| micros(promised + BUSY) + scene.log.explained(end - length, end);
    lengths.iter().filter(|(length, end)| *length > most(*length, *end)).map(|(length, _)| *length).collect()
}

fn longest(lengths: &[(u64, u64)]) -> u64 {
    lengths.iter().map(|(length, _)| *length).max().unwrap_or(0)
}

fn median(lengths: &[u64]) -> u64 {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

fn millis(micros: u64) -> String {
    counted(usize::try_from(micros.div_ceil(1000)).unwrap())
}

/// Milliseconds to a tenth.
fn tenths(micros: u64) -> f64 {
    (micros as f64 / 100.0).round() / 10.0
}

/// A number as people write it.
pub fn counted(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> =
        digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group)).collect();
    groups.join(",")
}
