//! What the page says of each half beside its figures.

use crate::Layer;

pub(crate) struct Words {
    pub(crate) title: &'static str,
    pub(crate) lead: &'static str,
    pub(crate) simulation: &'static str,
    /// What the simulation counts, and what it is called.
    pub(crate) counts: &'static [(&'static str, &'static str)],
    pub(crate) below_figures: &'static str,
    /// The members of a model.
    pub(crate) model: &'static str,
    pub(crate) flaws: &'static str,
    pub(crate) chaos: &'static str,
    pub(crate) starts: &'static str,
    pub(crate) recovery: &'static str,
}

pub(crate) fn words(layer: Layer) -> &'static Words {
    match layer {
        Layer::Pace => &PACE,
        Layer::Tasks => &TASKS,
    }
}

static PACE: Words = Words {
    title: "The pace",
    lead: "G1 to G10, see [guarantees.md](guarantees.md).",
    simulation: "Shards, as applications use them, run in virtual time against a state, a network and clocks that fail at random, and \
        every promise is checked after every event. Each schedule is another mixture of the faults below, and a seed \
        repeats it exactly. A schedule goes on until all is healed; then every job of the living must have started and \
        nothing may be left behind.",
    counts: &[
        ("jobs", "jobs added"),
        ("started", "jobs started"),
        ("slots", "slots granted"),
        ("early", "early starts, as promised"),
    ],
    below_figures: "Jobs that were cancelled or whose shard was killed never start. An early start is one that G9 allows after a loss of the \
        record, or that follows a step of the clock.",
    model: "The real rules and the real line of a shard, explored in every state that a few shards can reach",
    flaws: "Wrong variants of the rules and of the shards must be refuted. Each was, in this shortest way; A and B are shards, and \
        instants are counted in ticks of the model.",
    chaos: "Real processes share a real state while processes, servers, network, disk and clock are killed, stopped, cut off, filled \
        up and set wrong",
    starts: "jobs started",
    recovery: "Recovery is the time from the end of the fault to the next start of another process, in milliseconds; it includes the wait \
        for that start's slot.",
};

static TASKS: Words = Words {
    title: "Stored tasks",
    lead: "T1 to T12, see [tasks.md](tasks.md), and how each was attacked:",
    simulation: "Producers and the workers of the shipped crate run in virtual time against the shipped rules, a store, a network and clocks \
        that fail at random. After every command all that is stored before and after it is held against the promises. Each \
        schedule is another mixture of the faults below, and a seed repeats it exactly. A schedule goes on until all is \
        healed; then every task must have ended. What is called a shard below is a worker here, and a job is a task.",
    counts: &[("tasks", "tasks stored"), ("runs", "runs begun"), ("steps", "steps of workers")],
    below_figures: "A task may have several runs: after a crash, a failure, or a retry that was asked for.",
    model: "The real rules and the real worker, explored in every state that a few workers with a few tasks can reach",
    flaws: "Wrong variants of the rules and of the workers must be refuted. Each was, in this shortest way.",
    chaos: "Real processes add and run tasks of a real store while processes, files and locks are killed, stopped, deleted, put back and \
        held. Each start and end of a run is in a log beside the store, which is judged afterwards",
    starts: "runs begun",
    recovery: "Recovery is the time from the fault, or from its end if it hits all processes, until a run of a task that it hit is done, in \
        milliseconds; after a crash that includes the wait for the lease, and the run itself.",
};
