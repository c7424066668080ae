//! The items: stdin, split into lines or at NULs, read ahead.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::File,
    io::{self, ErrorKind, Read},
    os::{
        fd::AsFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::MetadataExt,
        },
    },
    path::Path,
    thread,
    time::Duration,
};

use tokio::task::JoinHandle;

use super::overlong::{Keeping, Overlong, longest_argument};
use crate::exit::{Failure, IOERR};

const CHUNK_BYTES: usize = 64 * 1024;
/// With as many bytes buffered, no input is read.
const READ_AHEAD_BYTES: usize = 256 * 1024;
/// Delay before a non-blocking input is read again.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// A newline, optionally after a carriage return. Empty lines are skipped.
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

    pub(crate) fn other(self) -> Self {
        match self {
            Separator::Newline => Separator::Nul,
            Separator::Nul => Separator::Newline,
        }
    }

    /// Makes an item of the bytes between two separators. Returns `None` for an empty line.
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

#[derive(Debug)]
pub(crate) enum Next {
    Item(OsString),
    Overlong(Overlong),
}

impl Next {
    /// Approximate memory in bytes. An item in a file counts as well, to bound the number of files.
    fn size(&self) -> usize {
        match self {
            Next::Item(item) => item.len() + size_of::<Self>(),
            Next::Overlong(_) => READ_AHEAD_BYTES / 4,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Items {
    separator: Separator,
    keeping: Keeping,
    source: Source,
    /// The beginning of an item.
    begun: Vec<u8>,
    /// The beginning of an item that is too long. `begun` is empty then.
    overlong: Option<Overlong>,
    ready: VecDeque<Next>,
    /// Approximate memory of `ready` in bytes.
    size: usize,
    failure: Option<Failure>,
}

#[derive(Debug)]
enum Source {
    Idle(File),
    /// A thread reads, and returns the source with the bytes.
    Reading(JoinHandle<(File, io::Result<Vec<u8>>)>),
    Ended,
}

impl Items {
    pub(crate) fn of_stdin(separator: Separator, keeping: Keeping) -> Result<Self, Failure> {
        let stdin = io::stdin().as_fd().try_clone_to_owned();
        let stdin = stdin.map_err(|error| Failure::os("cannot read the standard input", &error))?;
        Ok(Self::of(stdin.into(), separator, keeping))
    }

    fn of(source: File, separator: Separator, keeping: Keeping) -> Self {
        Self {
            separator,
            keeping,
            source: Source::Idle(source),
            begun: Vec::new(),
            overlong: None,
            ready: VecDeque::new(),
            size: 0,
            failure: None,
        }
    }

    /// `None`: no item has been read yet.
    pub(crate) fn take(&mut self) -> Option<Next> {
        let item = self.ready.pop_front()?;
        self.size -= item.size();
        Some(item)
    }

    /// Read and not taken.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn is_read(&self) -> bool {
        matches!(self.source, Source::Ended)
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.is_read() && self.size < READ_AHEAD_BYTES
    }

    pub(crate) fn failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// Reads until an item may be ready.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no input is lost.
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
                if !self.begun.is_empty() || self.overlong.is_some() {
                    self.end_item();
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
            match &mut self.overlong {
                Some(overlong) => overlong.extend(piece),
                None => self.begun.extend_from_slice(piece),
            }
            if pieces.peek().is_some() {
                self.end_item();
            }
        }
        // A carriage return at the end does not count.
        if self.begun.len() > longest_argument() + 1 {
            let begun = std::mem::take(&mut self.begun);
            self.overlong = Some(self.too_long(&begun));
        }
    }

    fn end_item(&mut self) {
        let bytes = std::mem::take(&mut self.begun);
        let next = match self.overlong.take() {
            Some(overlong) => Next::Overlong(overlong),
            None => match self.separator.item(bytes) {
                Some(item) if item.len() > longest_argument() => {
                    Next::Overlong(self.too_long(item.as_bytes()))
                }
                Some(item) => Next::Item(item),
                None => return,
            },
        };
        self.size += next.size();
        self.ready.push_back(next);
    }

    fn too_long(&self, bytes: &[u8]) -> Overlong {
        let mut overlong = Overlong::new(self.separator, self.keeping);
        overlong.extend(bytes);
        overlong
    }

    fn fail(&mut self, failure: Failure) {
        self.source = Source::Ended;
        self.failure = Some(failure);
    }

    /// A file can be read without waiting.
    pub(crate) fn is_file() -> bool {
        metadata().is_some_and(|metadata| metadata.is_file())
    }
}

pub(crate) fn input_is(path: &Path) -> bool {
    let id = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let regular = |metadata: &std::fs::Metadata| metadata.is_file();
    let other = path.metadata().ok().filter(regular).map(id);
    other.is_some() && metadata().filter(regular).map(id) == other
}

fn metadata() -> Option<std::fs::Metadata> {
    io::stdin().as_fd().try_clone_to_owned().ok().and_then(|stdin| File::from(stdin).metadata().ok())
}

fn read(mut file: File) -> (File, io::Result<Vec<u8>>) {
    let mut bytes = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut bytes) {
            Ok(count) => {
                bytes.truncate(count);
                return (file, Ok(bytes));
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Another process that shares the terminal or pipe made it non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY_INTERVAL),
            Err(error) => return (file, Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    async fn all(input: &[u8], separator: Separator) -> (Vec<Vec<u8>>, Option<Failure>) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(input).unwrap();
        file.rewind().unwrap();
        let mut items = Items::of(file, separator, Keeping::Whole);
        let mut taken = Vec::new();
        while !items.is_read() {
            items.read().await;
            assert!(items.size <= READ_AHEAD_BYTES + 32 * CHUNK_BYTES);
            assert!(items.begun.len() <= longest_argument() + 1);
            while let Some(next) = items.take() {
                match next {
                    Next::Item(item) => taken.push(item.into_vec()),
                    Next::Overlong(overlong) => {
                        let (length, hint) = (overlong.length, overlong.hint());
                        let mut whole = Vec::new();
                        overlong.write_to(&mut whole).unwrap();
                        assert_eq!(whole.len() as u64, length);
                        taken.push(format!("{length}{hint}").into_bytes());
                    }
                }
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
        let long = vec![b'x'; longest_argument()];
        let input = [&b"a\n"[..], &long, b"\r\nb"].concat();
        assert_eq!(all(&input, Separator::Newline).await.0, [&b"a"[..], &long, b"b"]);
    }

    #[tokio::test]
    async fn overlong_items_take_little_memory() {
        for length in [longest_argument() + 1, longest_argument() * 9] {
            let input = [b"a\n".as_slice(), &vec![b'x'; length], b"\nb\n"].concat();
            let (items, failure) = all(&input, Separator::Newline).await;
            assert_eq!(items, [&b"a"[..], length.to_string().as_bytes(), b"b"]);
            assert!(failure.is_none());
            let (items, _) = all(&[b"a\n".as_slice(), &vec![0; length]].concat(), Separator::Newline).await;
            assert_eq!(items[1], format!("{length}; if a NUL ends each, give --null").as_bytes());
        }
    }
}
