//! A terminal with the program on it: what it draws, keys for it, and how it leaves the terminal.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use rustix::{
    fs::OFlags,
    process::Signal,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use crate::process::{Process, wait_until};

/// The two ends of a new terminal of that size: ours and theirs.
pub(crate) fn open(columns: u16, rows: u16) -> (OwnedFd, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let mut options = OpenOptions::new();
    // The terminal must not become that of the tests, who would be hung up with it.
    let options = options.read(true).write(true).custom_flags(OFlags::NOCTTY.bits().cast_signed());
    let theirs = options.open(name.to_str().unwrap()).unwrap();
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&theirs, size).unwrap();
    (ours, theirs)
}

/// A program whose input and output are a terminal.
pub(crate) struct Terminal {
    ours: File,
    /// Kept open, so that its settings can still be read when the program has ended.
    theirs: File,
    drawn: Arc<Mutex<Vec<u8>>>,
    process: Process,
}

impl Terminal {
    pub(crate) fn start(columns: u16, rows: u16, command: &mut Command) -> Self {
        let (ours, theirs) = open(columns, rows);
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let process = Process::adopt(command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap());
        let drawn = Arc::default();
        let terminal = Self { ours: File::from(ours), theirs, drawn: Arc::clone(&drawn), process };
        let mut reader = terminal.ours.try_clone().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                drawn.lock().unwrap().extend(&bytes[..count]);
            }
        });
        terminal
    }

    /// All that it wrote, control sequences included.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.drawn.lock().unwrap()).into_owned()
    }

    /// What it wrote, without control sequences. Cells that did not change are not in it.
    pub(crate) fn text(&self) -> String {
        let raw = self.raw();
        let mut text = String::new();
        let mut rest = raw.chars();
        while let Some(c) = rest.next() {
            match c {
                // To the letter that ends the sequence; what moves the cursor parts words.
                '\u{1b}' => match rest.by_ref().skip(1).find(char::is_ascii_alphabetic) {
                    Some('m') => {}
                    _ => text.push('\n'),
                },
                c => text.push(c),
            }
        }
        text
    }

    /// Waits until it shows this; white space does not count. Only what changes is drawn, so it is made to
    /// draw all.
    pub(crate) fn shows(&self, what: &str) {
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        let mut polls = 0_u32;
        wait_until(&format!("it shows {what:?}"), || {
            polls += 1;
            if polls.is_multiple_of(50) {
                self.signal(Signal::CONT);
            }
            bare(&self.text()).contains(&bare(what))
        });
    }

    /// Forgets what it has written so far.
    pub(crate) fn forget(&self) {
        self.drawn.lock().unwrap().clear();
    }

    pub(crate) fn key(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses ^C or ^Z until that has had its effect. A program that continues gives the terminal back for a
    /// moment; then a terminal without a session swallows such a key.
    pub(crate) fn control_key(&mut self, key: &str, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let mut polls = 0_u32;
        wait_until(what, || {
            if polls.is_multiple_of(100) {
                self.key(key);
            }
            polls += 1;
            is_so(self)
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.theirs, size).unwrap();
        // It is not the terminal of a session, so nobody else tells the program.
        self.signal(Signal::WINCH);
    }

    /// Whether lines are put together and signs repeated, as a shell wants it.
    pub(crate) fn is_as_it_was(&self) -> bool {
        let modes = tcgetattr(self.theirs.as_fd()).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.ended().is_some()
    }

    /// How the program ended.
    pub(crate) fn end(&mut self) -> ExitStatus {
        wait_until("it ends", || self.has_ended());
        self.process.ended().unwrap()
    }
}
