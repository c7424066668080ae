//! The results of the items: counts, and the list of items that are not done.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    fs::File,
    io::{self, BufWriter, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use indicatif::HumanCount;
use interval_queue::Micros;
use tokio::time::Instant;

use super::{
    attempt::Why,
    each_progress::Counts,
    items::{Separator, input_is},
    overlong::Overlong,
};
use crate::{
    exit::{Failure, IOERR, NOPERM, USAGE},
    rate::rate,
};
use interval_queue_documents::words::about;

const MAX_LISTED_ITEMS: usize = 10;
const MEASURED_STARTS: usize = 30;
const MAX_ITEM_CHARS: usize = 80;

#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    begun: Instant,
    starts: u64,
    first_and_last_start: Option<(Instant, Instant)>,
    latest_starts: VecDeque<Instant>,
    /// The first failed items, with reasons.
    failed: Vec<String>,
    /// The first items that were not started or are left running. Printed if the file cannot be
    /// written.
    unstarted: Vec<String>,
    /// Items that were read and not started.
    left: u64,
    /// Items that ran when this process ended.
    cut_off: u64,
    undone: Option<Undone>,
}

#[derive(Debug)]
struct Undone {
    path: PathBuf,
    file: BufWriter<File>,
    separator: u8,
    failure: Option<Failure>,
}

impl Tally {
    pub(crate) fn new(path: Option<&Path>, separator: Separator, now: Instant) -> Result<Self, Failure> {
        let undone = path.map(|path| Undone::create(path, separator)).transpose()?;
        Ok(Self {
            counts: Counts::default(),
            begun: now,
            starts: 0,
            first_and_last_start: None,
            latest_starts: VecDeque::new(),
            failed: Vec::new(),
            unstarted: Vec::new(),
            left: 0,
            cut_off: 0,
            undone,
        })
    }

    pub(crate) fn started(&mut self, now: Instant) {
        self.starts += 1;
        self.first_and_last_start.get_or_insert((now, now)).1 = now;
        if self.latest_starts.len() == MEASURED_STARTS {
            self.latest_starts.pop_front();
        }
        self.latest_starts.push_back(now);
        let first = *self.latest_starts.front().unwrap_or(&now);
        let gaps = u32::try_from(self.latest_starts.len() - 1).unwrap_or(0);
        self.counts.gap = (now - first).checked_div(gaps);
    }

    pub(crate) fn failed(&mut self, item: &OsStr, why: &Why) {
        self.count_failed(item, why);
        self.write_down(item);
        self.flush();
    }

    pub(crate) fn overlong(&mut self, item: Overlong) {
        let why = Why::TooLong { bytes: item.length, hint: item.hint() };
        self.count_failed(OsStr::from_bytes(&item.beginning), &why);
        if let Some(undone) = &mut self.undone {
            let written = item.write_to(&mut undone.file);
            let written = written.and_then(|()| undone.file.write_all(&[undone.separator]));
            undone.take_in(written);
        }
        self.flush();
    }

    fn count_failed(&mut self, item: &OsStr, why: &Why) {
        self.counts.failed += 1;
        if self.failed.len() < MAX_LISTED_ITEMS {
            self.failed.push(format!("failed: {}: {why}", shown(item)));
        }
    }

    /// The command succeeded, but its output was not written completely.
    pub(crate) fn output_lost(&mut self, item: &OsStr, error: io::Error) {
        self.counts.done -= 1;
        self.failed(item, &Why::OutputLost(error));
    }

    pub(crate) fn left(&mut self, item: &OsStr) {
        self.left += 1;
        self.remember("not started", item);
        self.write_down(item);
    }

    /// Its command is left running.
    pub(crate) fn cut_off(&mut self, item: &OsStr) {
        self.cut_off += 1;
        self.remember("left running", item);
        self.write_down(item);
    }

    fn remember(&mut self, what: &str, item: &OsStr) {
        if self.unstarted.len() < MAX_LISTED_ITEMS {
            self.unstarted.push(format!("{what}: {}", shown(item)));
        }
    }

    pub(crate) fn has_file(&self) -> bool {
        self.undone.is_some()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.counts.failed + self.left + self.cut_off == 0
    }

    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        self.flush();
        self.undone.as_ref().and_then(|undone| undone.failure.clone()).map_or(Ok(()), Err)
    }

    pub(crate) fn lines(&self, now: Instant) -> Vec<String> {
        let Counts { done, failed, retried, .. } = self.counts;
        let items = done + failed + self.left + self.cut_off;
        let mut counted = vec![format!("{} done", HumanCount(done))];
        for (count, what) in [
            (failed, "failed"),
            (self.cut_off, "left running"),
            (self.left, "not started"),
            (retried, "retried"),
        ] {
            if count > 0 {
                counted.push(format!("{} {what}", HumanCount(count)));
            }
        }
        let noun = if items == 1 { "item" } else { "items" };
        let mut times = about(now - self.begun);
        if let Some(gap) = self.mean_gap() {
            times = format!("{times}, {}", rate(gap));
        }
        let mut lines = vec![format!("{} {noun}: {}; {times}", HumanCount(items), counted.join(", "))];
        lines.extend(self.failed.iter().cloned());
        let unlisted = failed.saturating_sub(self.failed.len() as u64);
        if unlisted > 0 {
            lines.push(format!("and {} more", HumanCount(unlisted)));
        }
        match &self.undone {
            Some(undone) if undone.failure.is_some() => {
                let lost = failed + self.left + self.cut_off;
                lines.extend(self.unstarted.iter().cloned());
                let unlisted = (self.left + self.cut_off).saturating_sub(self.unstarted.len() as u64);
                if unlisted > 0 {
                    lines.push(format!("and {} more", HumanCount(unlisted)));
                }
                let path = undone.path.display();
                lines.push(format!(
                    "{} items are not done, and {path} does not have all of them",
                    HumanCount(lost)
                ));
            }
            Some(undone) if !self.is_complete() => {
                let running = if self.cut_off > 0 { ", also items left running," } else { "" };
                lines.push(format!("items not done{running} are in {}", undone.path.display()));
            }
            None if self.left + self.cut_off > 0 => {
                lines.push("to write the items not done to a file, give --failed FILE".into());
            }
            _ => {}
        }
        lines
    }

    /// Mean time between two starts.
    fn mean_gap(&self) -> Option<Micros> {
        let (first, last) = self.first_and_last_start?;
        let gaps = u32::try_from(self.starts.checked_sub(1)?).ok()?;
        (last - first).checked_div(gaps).map(Micros::from_duration)
    }

    fn write_down(&mut self, item: &OsStr) {
        if let Some(undone) = &mut self.undone {
            let written = undone.file.write_all(item.as_bytes());
            let written = written.and_then(|()| undone.file.write_all(&[undone.separator]));
            undone.take_in(written);
        }
    }

    pub(crate) fn flush(&mut self) {
        if let Some(undone) = &mut self.undone {
            let flushed = undone.file.flush();
            undone.take_in(flushed);
        }
    }
}

impl Undone {
    fn create(path: &Path, separator: Separator) -> Result<Self, Failure> {
        let shown = path.display();
        if input_is(path) {
            let why = format!("--failed {shown} is the input, which would be emptied: give another file");
            return Err(Failure::new(USAGE, why));
        }
        let file = File::create(path).map_err(|error| {
            let denied = error.kind() == io::ErrorKind::PermissionDenied;
            Failure::new(if denied { NOPERM } else { IOERR }, format!("cannot write {shown}: {error}"))
        })?;
        let (file, separator) = (BufWriter::new(file), separator.byte());
        Ok(Self { path: path.to_owned(), file, separator, failure: None })
    }

    fn take_in(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            let why = format!("cannot write {}: {error}", self.path.display());
            self.failure.get_or_insert(Failure::new(IOERR, why));
        }
    }
}

fn shown(item: &OsStr) -> String {
    let text = format!("{item:?}");
    match text.char_indices().nth(MAX_ITEM_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{child::End, clock::now};

    #[test]
    fn all_is_told_and_the_list_ends() {
        let begun = now();
        let mut tally = Tally::new(None, Separator::Newline, begun).unwrap();
        tally.started(begun);
        assert_eq!(tally.lines(begun + Duration::from_millis(1500)), ["0 items: 0 done; 1.5s"]);
        tally.started(begun + Duration::from_secs(2));
        tally.counts.done = 1200;
        tally.counts.retried = 3;
        for n in 0..14 {
            tally.failed(OsStr::from_bytes(&[b'\x1b', b'\xff', b'0' + n]), &Why::Ended(End::Code(3)));
        }
        tally.left(OsStr::new("x"));
        let lines = tally.lines(begun + Duration::from_millis(1_204_400));
        assert_eq!(
            lines[0],
            "1,215 items: 1,200 done, 14 failed, 1 not started, 3 retried; 20m 4s, 30 per minute"
        );
        assert_eq!(lines[1], "failed: \"\\u{1b}\\xFF0\": exit code 3");
        assert_eq!(lines[MAX_LISTED_ITEMS + 1], "and 4 more");
        assert_eq!(lines.len(), MAX_LISTED_ITEMS + 3);
        assert!(shown(OsStr::new(&"x".repeat(1000))).chars().count() <= MAX_ITEM_CHARS + 1);
    }
}
