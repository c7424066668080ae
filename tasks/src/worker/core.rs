//! What the parts of a worker share.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use interval_queue::{Host, contract::outage::Outages};
use interval_queue_task_contract::{ABOVE_ALL, Kind};
use interval_queue_worker::{RunId, Worker as Machine};
use tokio::sync::Notify;

use super::{
    handler::Handler,
    load::Load,
    outage::StoreOutages,
    places::{Places, Seat},
    run::Live,
};
use crate::{TaskQueue, totals::Totals};

/// The longest that a worker which stops waits for its runs.
pub(super) const MAX_GRACE: Duration = Duration::from_secs(24 * 3600);

/// A worker: the machine that decides, what it decides about, and who is told of what.
pub(super) struct Core {
    pub(super) queue: TaskQueue,
    pub(super) handlers: BTreeMap<Kind, Handler>,
    pub(super) load: Option<Load>,
    machine: Mutex<Machine>,
    runs: Mutex<HashMap<RunId, Live>>,
    totals: Mutex<Totals>,
    outages: Mutex<StoreOutages>,
    /// Those of the pace.
    unpaced: Mutex<Outages>,
    /// Until when it takes no tasks.
    rests: Mutex<Option<Instant>>,
    /// Within what time it is to have ended; none: it is not to end.
    stop: Mutex<Option<Duration>>,
    /// Something has happened that the driver should know of.
    pub(super) wake: Arc<Notify>,
    /// Its part in the places that it shares with workers of other queues.
    pub(super) seat: Option<Seat>,
    /// A step was answered, or the worker ends.
    pub(super) answered: Notify,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    pub(super) fn new(
        queue: TaskQueue,
        handlers: BTreeMap<Kind, Handler>,
        machine: Machine,
        load: Option<Load>,
        places: Option<&Places>,
    ) -> Self {
        let wake = Arc::new(Notify::new());
        let jobs = machine.identity.places;
        let seat = places.map(|places| places.seat(wake.clone(), jobs));
        Self {
            queue,
            load,
            handlers,
            machine: Mutex::new(machine),
            runs: Mutex::default(),
            totals: Mutex::default(),
            outages: Mutex::default(),
            unpaced: Mutex::default(),
            rests: Mutex::default(),
            stop: Mutex::default(),
            wake,
            seat,
            answered: Notify::new(),
        }
    }

    pub(super) fn host(&self) -> &Arc<dyn Host> {
        &self.queue.shared.host
    }

    /// Gives it the places that it has a right to, if it shares them. When it would ask for more.
    pub(super) fn sit(&self, machine: &mut Machine) -> Option<Instant> {
        self.seat.as_ref()?.sit(machine, self.now(), self.host().random())
    }

    /// Whether it holds nothing and, as far as it knows, nothing is there for it. One that shares its places may not
    /// have asked for long.
    pub(super) fn is_idle(&self, machine: &Machine) -> bool {
        machine.held.is_empty() && (machine.contact.dry || self.seat.is_some())
    }

    pub(super) fn now(&self) -> Instant {
        self.host().now()
    }

    pub(super) fn machine(&self) -> MutexGuard<'_, Machine> {
        locked(&self.machine)
    }

    pub(super) fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Live>> {
        locked(&self.runs)
    }

    pub(super) fn totals(&self) -> MutexGuard<'_, Totals> {
        locked(&self.totals)
    }

    /// The outages of the store, as its steps see them.
    pub(super) fn outages(&self) -> MutexGuard<'_, StoreOutages> {
        locked(&self.outages)
    }

    /// The outages of the pace.
    pub(super) fn unpaced(&self) -> MutexGuard<'_, Outages> {
        locked(&self.unpaced)
    }

    /// Has the worker take no tasks for this time.
    pub(super) fn rest(&self, time: Duration) {
        *locked(&self.rests) = self.now().checked_add(time);
    }

    /// The least priority that it takes now; none: any.
    pub(super) fn at_least(&self) -> Option<i32> {
        let now = self.now();
        let rests = locked(&self.rests).is_some_and(|until| now < until);
        let under_load = self.load.as_ref().and_then(|load| load.at_least(now));
        rests.then_some(ABOVE_ALL).or(under_load)
    }

    /// Has the worker end within this time; said again, the shorter one holds.
    pub(super) fn stop_within(&self, grace: Duration) {
        let grace = grace.min(MAX_GRACE);
        let mut stop = locked(&self.stop);
        *stop = Some(stop.map_or(grace, |before| before.min(grace)));
        drop(stop);
        self.wake.notify_one();
    }
}

impl Core {
    /// Within what time the worker is to end, if that was said since it was asked.
    pub(super) fn asked_to_stop(&self) -> Option<Duration> {
        locked(&self.stop).take()
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.handlers.keys();
        f.debug_struct("Worker")
            .field("queue", &self.queue.name())
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}
