//! The state that the parts of a worker share.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use interval_queue::{Host, contract::outage::Outages};
use interval_queue_task_contract::{ABOVE_ALL, Kind};
use interval_queue_worker::{RunId, Worker as Machine};
use tokio::sync::{Notify, watch};

use super::{
    connection::WorkerConnection,
    failure::ErrorHook,
    handler::Handler,
    load::Load,
    outage::StoreOutages,
    permits::{Membership, Permits},
    run::Live,
};
use crate::{TaskQueue, totals::Totals};

pub(super) const MAX_GRACE: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Core {
    pub(super) queue: TaskQueue,
    pub(super) handlers: BTreeMap<Kind, Handler>,
    pub(super) load: Option<Load>,
    pub(super) on_error: Option<ErrorHook>,
    machine: Mutex<Machine>,
    runs: Mutex<HashMap<RunId, Live>>,
    totals: Mutex<Totals>,
    outages: Mutex<StoreOutages>,
    pub(super) connection: watch::Sender<WorkerConnection>,
    unpaced: Mutex<Outages>,
    /// Until when the worker leases no tasks.
    rests: Mutex<Option<Instant>>,
    /// The driver has not taken it. `None`: no request.
    stop: Mutex<Option<Duration>>,
    pub(super) wake: Arc<Notify>,
    /// `None`: permits are not shared.
    pub(super) membership: Option<Membership>,
    /// With shared permits the machine has fewer.
    pub(super) jobs: u32,
    pub(super) stopping: watch::Sender<bool>,
    /// When a step is answered or the worker stops.
    pub(super) answered: Notify,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    pub(super) fn new(
        queue: TaskQueue,
        handlers: BTreeMap<Kind, Handler>,
        machine: Machine,
        load: Option<Load>,
        on_error: Option<ErrorHook>,
        permits: Option<&Permits>,
    ) -> Self {
        let wake = Arc::new(Notify::new());
        let jobs = machine.identity.permits;
        let membership = permits.map(|permits| permits.join(wake.clone(), jobs));
        Self {
            queue,
            load,
            on_error,
            handlers,
            machine: Mutex::new(machine),
            runs: Mutex::default(),
            totals: Mutex::default(),
            outages: Mutex::default(),
            connection: watch::Sender::default(),
            unpaced: Mutex::default(),
            rests: Mutex::default(),
            stop: Mutex::default(),
            wake,
            membership,
            jobs,
            stopping: watch::Sender::new(false),
            answered: Notify::new(),
        }
    }

    pub(super) fn host(&self) -> &Arc<dyn Host> {
        &self.queue.shared.host
    }

    /// Returns when the worker will ask for tasks.
    pub(super) fn acquire_permits(&self, machine: &mut Machine) -> Option<Instant> {
        self.membership.as_ref()?.acquire(machine, self.now(), self.host().random())
    }

    /// The worker holds nothing and the last step found no more tasks. With shared permits that
    /// step may be long past, so it is ignored.
    pub(super) fn is_idle(&self, machine: &Machine) -> bool {
        machine.held.is_empty() && (machine.connection.dry || self.membership.is_some())
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

    pub(super) fn outages(&self) -> MutexGuard<'_, StoreOutages> {
        locked(&self.outages)
    }

    pub(super) fn unpaced(&self) -> MutexGuard<'_, Outages> {
        locked(&self.unpaced)
    }

    pub(super) fn rest(&self, time: Duration) {
        *locked(&self.rests) = self.now().checked_add(time);
    }

    /// `None`: any.
    pub(super) fn at_least(&self) -> Option<i32> {
        let now = self.now();
        let rests = locked(&self.rests).is_some_and(|until| now < until);
        let under_load = self.load.as_ref().and_then(|load| load.at_least(now));
        rests.then_some(ABOVE_ALL).or(under_load)
    }

    /// The shortest requested grace applies.
    pub(super) fn stop_within(&self, grace: Duration) {
        let grace = grace.min(MAX_GRACE);
        let mut stop = locked(&self.stop);
        *stop = Some(stop.map_or(grace, |before| before.min(grace)));
        drop(stop);
        self.stopping.send_replace(true);
        self.wake.notify_one();
    }
}

impl Core {
    pub(super) fn take_stop_request(&self) -> Option<Duration> {
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
