//! An item that is too long for any command. Its text is kept on disk if it is to be written to a
//! file.

use std::{
    fs::File,
    io::{self, Seek, Write},
};

use super::items::Separator;

/// Kept to be printed.
const BEGINNING_BYTES: usize = 256;

/// Maximum bytes of an argument.
#[cfg(target_os = "linux")]
pub(crate) fn longest_argument() -> usize {
    // `MAX_ARG_STRLEN`, which counts the NUL at the end.
    32 * rustix::param::page_size() - 1
}

/// A shorter argument may still be rejected when its command starts.
#[cfg(not(target_os = "linux"))]
pub(crate) fn longest_argument() -> usize {
    1024 * 1024
}

/// The text of overlong items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    Whole,
    Beginning,
}

#[derive(Debug)]
pub(crate) struct Overlong {
    pub(crate) beginning: Vec<u8>,
    pub(crate) length: u64,
    separator: Separator,
    /// Whether the item contains the other separator.
    seems_wrongly_cut: bool,
    kept: Option<io::Result<File>>,
}

impl Overlong {
    pub(crate) fn new(separator: Separator, keeping: Keeping) -> Self {
        let kept = (keeping == Keeping::Whole).then(tempfile::tempfile);
        Self { beginning: Vec::new(), length: 0, separator, seems_wrongly_cut: false, kept }
    }

    /// Blocks on the disk.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let room = (BEGINNING_BYTES - self.beginning.len()).min(bytes.len());
        self.beginning.extend_from_slice(&bytes[..room]);
        self.length += bytes.len() as u64;
        self.seems_wrongly_cut |= bytes.contains(&self.separator.other().byte());
        if let Some(Ok(file)) = &mut self.kept
            && let Err(error) = file.write_all(bytes)
        {
            self.kept = Some(Err(error));
        }
    }

    pub(crate) fn hint(&self) -> &'static str {
        match self.separator {
            _ if !self.seems_wrongly_cut => "",
            Separator::Newline => "; if a NUL ends each, give --null",
            Separator::Nul => "; if a newline ends each, leave out --null",
        }
    }

    pub(crate) fn write_to(self, target: &mut impl Write) -> io::Result<()> {
        match self.kept {
            Some(kept) => {
                let mut file = kept?;
                file.rewind()?;
                io::copy(&mut file, target).map(drop)
            }
            None => Err(io::Error::other("an item was too long to be kept")),
        }
    }
}
