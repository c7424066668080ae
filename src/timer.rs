//! Timers of a tokio runtime. On Linux a kernel timer wakes the runtime through its reactor,
//! without a thread or spinning: tokio's own timers have a resolution of one millisecond.

use std::{sync::Arc, time::Instant};

use tokio::time::sleep_until;

use crate::clock::now;

#[derive(Debug, Default)]
pub(crate) struct Timers {
    #[cfg(target_os = "linux")]
    kernel: kernel::Kernel,
}

impl Timers {
    /// By tokio's clock, also when a test has paused it.
    pub(crate) async fn sleep_until(self: Arc<Self>, deadline: Instant) {
        #[cfg(target_os = "linux")]
        self.kernel.sleep_until(deadline).await;
        if now() < deadline {
            sleep_until(deadline.into()).await;
        }
    }

    /// Panics in a runtime without a reactor; a later sleep could not report that.
    pub(crate) fn check(&self) {
        #[cfg(target_os = "linux")]
        self.kernel.check();
    }

    pub(crate) fn rest(&self) {
        #[cfg(target_os = "linux")]
        self.kernel.rest();
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::{
        io,
        os::fd::OwnedFd,
        sync::{
            Mutex, PoisonError,
            atomic::{AtomicUsize, Ordering},
        },
        time::{Duration, Instant},
    };

    use rustix::{
        io::{Errno, read},
        time::{
            Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
            timerfd_settime,
        },
    };
    use tokio::{
        io::{Interest, unix::AsyncFd},
        runtime::{Handle, Id},
        time::sleep_until,
    };

    use crate::clock::{is_paused, now};

    /// Per process, each a descriptor. Further sleeps use tokio's timers.
    const MAX_KERNEL_TIMERS: usize = 64;
    /// Longer sleeps begin with tokio's timer, so that a descriptor is held only shortly before a
    /// slot.
    const KERNEL_TIMER_RANGE: Duration = Duration::from_millis(100);
    /// When a longer sleep changes to a kernel timer: before its deadline by more than tokio's
    /// timers are late.
    const TOKIO_TIMER_MARGIN: Duration = Duration::from_millis(3);

    static TIMERS: AtomicUsize = AtomicUsize::new(0);

    /// Keeps one unused timer until the shard is idle: a shard sleeps twice per job.
    #[derive(Debug, Default)]
    pub(super) struct Kernel {
        spare: Mutex<Option<Timer>>,
    }

    impl Kernel {
        /// Earlier if no kernel timer is available.
        pub(super) async fn sleep_until(&self, deadline: Instant) {
            if deadline.saturating_duration_since(now()) > KERNEL_TIMER_RANGE {
                sleep_until((deadline - TOKIO_TIMER_MARGIN).into()).await;
            }
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() || is_paused() {
                return;
            }
            let spare = self.spare().take().filter(Timer::is_here);
            if let Some(timer) = spare.or_else(|| Timer::new().ok()) {
                let mut lent = Lent { timer: Some(timer), home: self };
                lent.after(left).await;
            }
        }

        pub(super) fn check(&self) {
            drop(Timer::new());
        }

        pub(super) fn rest(&self) {
            let spare = self.spare().take();
            drop(spare);
        }

        #[cfg(test)]
        pub(super) fn has_spare(&self) -> bool {
            self.spare().is_some()
        }

        fn spare(&self) -> std::sync::MutexGuard<'_, Option<Timer>> {
            self.spare.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// `Drop` returns it to `home`.
    struct Lent<'a> {
        timer: Option<Timer>,
        home: &'a Kernel,
    }

    impl Lent<'_> {
        async fn after(&mut self, delay: Duration) {
            if let Some(timer) = &self.timer
                && timer.after(delay).await.is_err()
            {
                // Tokio's timer ends the sleep; the failed timer is not kept.
                self.timer = None;
            }
        }
    }

    impl Drop for Lent<'_> {
        fn drop(&mut self) {
            if let Some(timer) = self.timer.take() {
                *self.home.spare() = Some(timer);
            }
        }
    }

    /// Registered with the reactor of the runtime that created it.
    #[derive(Debug)]
    struct Timer {
        fd: AsyncFd<OwnedFd>,
        runtime: Id,
    }

    impl Timer {
        #[allow(
            deprecated,
            reason = "what took its place is unsafe, for descriptors that change; an owned one cannot"
        )]
        fn new() -> io::Result<Self> {
            if TIMERS.fetch_add(1, Ordering::Relaxed) >= MAX_KERNEL_TIMERS {
                TIMERS.fetch_sub(1, Ordering::Relaxed);
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            let made =
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)
                    .map_err(io::Error::from)
                    .and_then(|fd| AsyncFd::with_interest(fd, Interest::READABLE));
            let runtime = Handle::current().id();
            made.map(|fd| Self { fd, runtime }).inspect_err(|_| {
                TIMERS.fetch_sub(1, Ordering::Relaxed);
            })
        }

        /// The timer belongs to the current runtime's reactor.
        fn is_here(&self) -> bool {
            self.runtime == Handle::current().id()
        }

        async fn after(&self, delay: Duration) -> io::Result<()> {
            // Zero would disarm the timer.
            let it_value =
                Timespec::try_from(delay.max(Duration::from_nanos(1))).map_err(io::Error::other)?;
            let once = Itimerspec { it_interval: Timespec::default(), it_value };
            timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            loop {
                let mut ready = self.fd.readable().await?;
                // The reactor's readiness may be of an earlier use; arming a timer clears its
                // expiration.
                let expired = read(self.fd.get_ref(), &mut [0; 8]);
                ready.clear_ready();
                match expired {
                    Ok(_) => return Ok(()),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    impl Drop for Timer {
        fn drop(&mut self) {
            TIMERS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::time::Duration;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn a_sleep_ends_never_early_and_is_the_kernels() {
        let timers = Arc::new(Timers::default());
        for n in 0.. {
            // Any part of a millisecond.
            let deadline = now() + MS * 3 + Duration::from_micros(37 * (n % 30));
            timers.clone().sleep_until(deadline).await;
            assert!(now() >= deadline);
            // Another test may hold all kernel timers for a while.
            if n >= 30 && timers.kernel.has_spare() {
                break;
            }
            assert!(n < 3_000, "tokio's timers are used");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn virtual_time_is_followed() {
        let timers = Arc::new(Timers::default());
        let began = now();
        for (left, at_most) in [(MS, 2), (MS * 50, 60), (MS * 3_600_000, 3_600_100)] {
            let deadline = now() + left;
            timers.clone().sleep_until(deadline).await;
            assert!(now() >= deadline && now() - deadline <= MS, "{:?}", now() - deadline);
            assert!(now() - began < MS * at_most);
        }
    }

    #[tokio::test]
    async fn many_sleepers_hold_few_descriptors_and_an_idle_shard_none() {
        let timers = Arc::new(Timers::default());
        let deadline = now() + MS * 60;
        let sleepers: Vec<_> = (0..500).map(|_| tokio::spawn(timers.clone().sleep_until(deadline))).collect();
        tokio::time::sleep(MS * 20).await;
        let held = descriptors();
        assert!((1..=64).contains(&held), "{held}");
        for sleeper in sleepers {
            sleeper.await.unwrap();
            assert!(now() >= deadline);
        }
        timers.rest();
        // Another test may hold one for a moment.
        for _ in 0..200 {
            if descriptors() == 0 {
                return;
            }
            tokio::time::sleep(MS * 20).await;
        }
        panic!("{} are left", descriptors());
    }

    fn descriptors() -> usize {
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        let links = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
        links.filter(|link| link.to_string_lossy().contains("timerfd")).count()
    }
}
