//! The items: the standard input, cut into lines or at NULs, read a little ahead.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::File,
    io::{self, ErrorKind, Read},
    os::{
        fd::AsFd,
        unix::{ffi::OsStringExt, fs::MetadataExt},
    },
    path::Path,
    thread,
    time::Duration,
};

use tokio::task::JoinHandle;

use crate::exit::{DATAERR, Failure, IOERR};

/// As much is read at once.
const CHUNK: usize = 64 * 1024;
/// Nothing is read while as much waits.
const READ_AHEAD: usize = 256 * 1024;
/// No system takes a longer argument.
const LONGEST: usize = 1024 * 1024;
/// How soon an input that does not wait is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// What ends an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// A newline, also one with a carriage return before it. Empty lines are no items.
    Newline,
    Nul,
}

impl Separator {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Separator::Newline => b'\n',
            Separator::Nul => 0,
        }
    }

    /// The item in what was between two separators; none if there is none.
    fn item(self, mut bytes: Vec<u8>) -> Option<OsString> {
        if self == Separator::Newline {
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
            if bytes.is_empty() {
                return None;
            }
        }
        Some(OsString::from_vec(bytes))
    }
}

/// The input.
#[derive(Debug)]
pub(crate) struct Items {
    separator: Separator,
    source: Source,
    /// An item that has not ended yet.
    begun: Vec<u8>,
    ready: VecDeque<OsString>,
    /// About the memory that `ready` takes.
    size: usize,
    failure: Option<Failure>,
}

#[derive(Debug)]
enum Source {
    Idle(File),
    /// Another thread waits for the input, and gives the source back with what it read.
    Reading(JoinHandle<(File, io::Result<Vec<u8>>)>),
    Ended,
}

impl Items {
    /// Those of the standard input.
    pub(crate) fn of_stdin(separator: Separator) -> Result<Self, Failure> {
        let stdin = io::stdin().as_fd().try_clone_to_owned();
        let stdin = stdin.map_err(|error| Failure::os("cannot read the standard input", &error))?;
        Ok(Self::of(stdin.into(), separator))
    }

    fn of(source: File, separator: Separator) -> Self {
        Self {
            separator,
            source: Source::Idle(source),
            begun: Vec::new(),
            ready: VecDeque::new(),
            size: 0,
            failure: None,
        }
    }

    /// The next one, if it has been read.
    pub(crate) fn take(&mut self) -> Option<OsString> {
        let item = self.ready.pop_front()?;
        self.size -= size(&item);
        Some(item)
    }

    /// How many have been read and not taken.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Whether all of the input has been read.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.source, Source::Ended)
    }

    /// Whether more should be read now.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_read() && self.size < READ_AHEAD
    }

    /// Why the input ended before its end.
    pub(crate) fn failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// Reads on; returns when something has come. Cancel safe.
    pub(crate) async fn read(&mut self) {
        if let Source::Idle(_) = self.source
            && let Source::Idle(file) = std::mem::replace(&mut self.source, Source::Ended)
        {
            self.source = Source::Reading(tokio::task::spawn_blocking(move || read(file)));
        }
        let Source::Reading(reading) = &mut self.source else { return };
        let (file, read) = match reading.await {
            Ok(read) => read,
            Err(error) => return self.fail(Failure::new(IOERR, format!("cannot read the items: {error}"))),
        };
        match read {
            Ok(bytes) if bytes.is_empty() => {
                self.source = Source::Ended;
                let rest = std::mem::take(&mut self.begun);
                if !rest.is_empty() {
                    self.add(rest);
                }
            }
            Ok(bytes) => {
                self.source = Source::Idle(file);
                self.cut(&bytes);
            }
            Err(error) => self.fail(Failure::new(IOERR, format!("cannot read the items: {error}"))),
        }
    }

    fn cut(&mut self, bytes: &[u8]) {
        let separator = self.separator.byte();
        let mut pieces = bytes.split(|byte| *byte == separator).peekable();
        while let Some(piece) = pieces.next() {
            self.begun.extend_from_slice(piece);
            if pieces.peek().is_some() {
                let item = std::mem::take(&mut self.begun);
                self.add(item);
            }
        }
        if self.begun.len() > LONGEST {
            self.begun = Vec::new();
            let hint = match self.separator {
                Separator::Newline => "if a NUL ends each, give --null",
                Separator::Nul => "if a newline ends each, leave out --null",
            };
            self.fail(Failure::new(DATAERR, format!("an item has more than {LONGEST} bytes: {hint}")));
        }
    }

    fn add(&mut self, bytes: Vec<u8>) {
        if let Some(item) = self.separator.item(bytes) {
            self.size += size(&item);
            self.ready.push_back(item);
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.source = Source::Ended;
        self.failure = Some(failure);
    }

    /// Whether the rest of the input can be read without waiting for anybody.
    pub(crate) fn is_file() -> bool {
        metadata().is_some_and(|metadata| metadata.is_file())
    }
}

/// Whether the standard input is that file.
pub(crate) fn input_is(path: &Path) -> bool {
    let id = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let regular = |metadata: &std::fs::Metadata| metadata.is_file();
    let other = path.metadata().ok().filter(regular).map(id);
    other.is_some() && metadata().filter(regular).map(id) == other
}

fn metadata() -> Option<std::fs::Metadata> {
    io::stdin().as_fd().try_clone_to_owned().ok().and_then(|stdin| File::from(stdin).metadata().ok())
}

fn size(item: &OsString) -> usize {
    item.len() + size_of::<OsString>()
}

fn read(mut file: File) -> (File, io::Result<Vec<u8>>) {
    let mut bytes = vec![0; CHUNK];
    loop {
        match file.read(&mut bytes) {
            Ok(count) => {
                bytes.truncate(count);
                return (file, Ok(bytes));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Somebody else who has the same terminal or pipe made it so.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(ASK_AGAIN),
            Err(error) => return (file, Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Seek, Write},
        os::unix::ffi::OsStrExt,
    };

    use super::*;

    async fn all(input: &[u8], separator: Separator) -> (Vec<Vec<u8>>, Option<Failure>) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(input).unwrap();
        file.rewind().unwrap();
        let mut items = Items::of(file, separator);
        let mut taken = Vec::new();
        while !items.is_read() {
            items.read().await;
            assert!(items.size <= READ_AHEAD + 32 * CHUNK);
            while let Some(item) = items.take() {
                taken.push(item.as_bytes().to_vec());
            }
        }
        assert_eq!(items.size, 0);
        (taken, items.failure())
    }

    #[tokio::test]
    async fn lines_are_items() {
        let input = b"one\n\n two  \nthr\xffee\r\n\r\n-four";
        let (items, failure) = all(input, Separator::Newline).await;
        assert_eq!(items, [&b"one"[..], b" two  ", b"thr\xffee", b"-four"]);
        assert!(failure.is_none());
        assert_eq!(all(b"", Separator::Newline).await.0.len(), 0);
        assert_eq!(all(b"\n", Separator::Newline).await.0.len(), 0);
    }

    #[tokio::test]
    async fn between_nuls_nothing_is_touched() {
        let (items, _) = all(b"a\nb\r\n\0\0c\0", Separator::Nul).await;
        assert_eq!(items, [&b"a\nb\r\n"[..], b"", b"c"]);
        let (items, _) = all(b"a\0b", Separator::Nul).await;
        assert_eq!(items, [b"a", b"b"]);
    }

    #[tokio::test]
    async fn items_go_on_from_one_chunk_to_the_next() {
        let long = vec![b'x'; CHUNK * 3 + 7];
        let input = [&b"a\n"[..], &long, b"\nb"].concat();
        assert_eq!(all(&input, Separator::Newline).await.0, [&b"a"[..], &long, b"b"]);
    }

    #[tokio::test]
    async fn what_is_too_long_for_any_command_is_refused_before_it_fills_the_memory() {
        let (items, failure) =
            all(&[b"a\n".as_slice(), &vec![0; LONGEST * 2]].concat(), Separator::Newline).await;
        assert_eq!(items, [b"a"]);
        let failure = failure.unwrap();
        assert_eq!(failure.code, DATAERR);
        assert!(failure.message.contains("--null"), "{}", failure.message);
    }
}
