//! One command: lock, read, apply, replace, unlock.

use interval_queue_contract::{Command, QueueName, Reply, StateError, rules};

use crate::{
    Builder, Clock, Fsync, Replacement,
    document::Document,
    file::{Flush, StateFile, Way},
    lock::{Held, LockFile, Patience},
    place::Place,
    probe::probe,
    swiftness::Swiftness,
};

/// The files, kept open, of which a process uses one handle at a time.
#[derive(Debug)]
pub(crate) struct Store {
    lock: LockFile,
    stored: Stored,
    swiftness: Swiftness,
}

/// What the lock protects.
#[derive(Debug)]
struct Stored {
    file: StateFile,
    clock: Clock,
    /// The text that was read last, and the one that was written. Kept for their memory.
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Store {
    /// Creates the lock file and probes that it excludes.
    pub(crate) fn open(place: &Place, options: &Builder) -> Result<Self, StateError> {
        let way = match (options.fsync, options.clock, options.replacement) {
            (Fsync::Always, _, _) => Way::Rename(Flush::ContentsAndName),
            // A network client reports a full disk only then, and an incomplete file must not take the place.
            (Fsync::Never, Clock::FileServer, _) => Way::Rename(Flush::Contents),
            (Fsync::Never, Clock::Host, Replacement::Rename) => Way::Rename(Flush::Nothing),
            (Fsync::Never, Clock::Host, Replacement::InPlace) => Way::InPlace,
        };
        let file = StateFile::new(place.path().to_owned(), way);
        let mut lock = place.lock();
        probe(&mut lock, place.patience())?;
        let stored = Stored { file, clock: options.clock, before: Vec::new(), after: Vec::new() };
        Ok(Self { lock, stored, swiftness: Swiftness::default() })
    }

    /// Carries a command out if that is a matter of microseconds, as far as one can know: nobody has the
    /// lock, nothing is flushed, and the last commands were quick.
    pub(crate) fn carry_out_at_once(
        &mut self,
        queue: &QueueName,
        command: &Command,
    ) -> Option<Result<Reply, StateError>> {
        if self.stored.file.is_flushed() || !self.swiftness.is_proven() {
            return None;
        }
        let held = self.lock.acquire_at_once()?;
        Some(self.swiftness.watch(|| self.stored.carry_out(&held, queue, command)))
    }

    /// Carries a command out on a thread that may wait.
    pub(crate) fn carry_out(
        &mut self,
        patience: Patience,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Reply, StateError> {
        let held = self.lock.acquire(patience)?;
        self.swiftness.watch(|| self.stored.carry_out(&held, queue, command))
    }
}

impl Stored {
    /// Replaces of the file only what the command changes of one queue.
    fn carry_out(
        &mut self,
        held: &Held<'_>,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Reply, StateError> {
        let before = self.file.read(&mut self.before)?;
        let path = self.file.path();
        let mut document = match before {
            Some(bytes) => Document::parse(path, bytes, Some(queue))?,
            None => Document::empty(),
        };
        let mut record = document.take(path, queue)?;
        let reading = self.clock.read(held)?;
        let reply = rules::apply(&mut record, &reading, command)?;
        if let (Some(record), false) = (record, matches!(command, Command::Read)) {
            document.put(queue.clone(), record);
            document.write_to(&mut self.after)?;
            self.file.replace(before.map_or(0, <[u8]>::len), &mut self.after)?;
        }
        Ok(reply)
    }
}
