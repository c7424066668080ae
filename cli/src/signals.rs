//! Signals to this process, until CMD has replaced it or while CMD is its child.

use std::{
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    flag,
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
};
use tokio::sync::mpsc;

use crate::exit::{BY_SIGNAL, Failure, is_init};

/// Signals that end a process, or that CMD may handle. Stop and continue keep their default action.
const HANDLED_SIGNALS: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub(crate) number: i32,
    /// Otherwise the terminal sent it to all foreground processes.
    pub(crate) sent: bool,
}

#[derive(Debug)]
pub(crate) struct Signals {
    queue: mpsc::UnboundedReceiver<Signal>,
    latest: Arc<AtomicUsize>,
}

impl Signals {
    /// Signals that this process was started to ignore, by `nohup` for example, stay ignored, also
    /// by CMD.
    pub(crate) fn listen() -> Result<Self, Failure> {
        Self::listen_also(&[]).map_err(|error| Failure::os("cannot listen to signals", &error))
    }

    pub(crate) fn listen_also(more: &[i32]) -> io::Result<Self> {
        let ignored = ignored();
        let all = HANDLED_SIGNALS.iter().chain(more).copied();
        let handled: Vec<i32> = all.filter(|signal| ignored & (1 << (signal - 1)) == 0).collect();
        let latest = Arc::new(AtomicUsize::new(0));
        for &signal in &handled {
            flag::register_usize(signal, latest.clone(), usize::try_from(signal).unwrap_or(0))?;
        }
        let mut signals = SignalsInfo::<WithOrigin>::new(&handled)?;
        let (sender, queue) = mpsc::unbounded_channel();
        thread::Builder::new().name("signals".into()).spawn(move || {
            for origin in signals.forever() {
                let signal = Signal { number: origin.signal, sent: origin.process.is_some() };
                if sender.send(signal).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { queue, latest })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        match self.queue.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }

    /// Set by the signal handler itself, so it is never late.
    pub(crate) fn latest(&self) -> Option<i32> {
        i32::try_from(self.latest.load(Ordering::SeqCst)).ok().filter(|signal| *signal != 0)
    }
}

/// Handlers, because children inherit ignored signals.
pub(crate) fn outlive() -> io::Result<()> {
    let ignored = ignored();
    for signal in HANDLED_SIGNALS.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0) {
        flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// The kernel drops signals that process 1 of a container does not handle: they end it with exit
/// code 128 + N. For commands that do not listen to signals.
pub(crate) fn end_if_init() -> io::Result<()> {
    if !is_init() {
        return Ok(());
    }
    let ignored = ignored();
    for signal in HANDLED_SIGNALS.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0) {
        let code = i32::from(BY_SIGNAL) + signal;
        flag::register_conditional_shutdown(signal, code, Arc::new(AtomicBool::new(true)))?;
    }
    Ok(())
}

/// As a mask. Linux only: other systems need C calls.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
