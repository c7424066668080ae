//! Flows: tasks that wait for each other, added as a whole.

mod below;
mod id;
mod instance;
mod order;
mod progress;

use std::collections::HashMap;

use interval_queue_task_contract::{Added, MAX_ADD, TaskId};
use uuid::Uuid;

pub(crate) use self::{below::MAX_LISTED_EDGES, id::name_of, instance::instance};
use self::{id::name_tag, order::in_order};
pub use self::{
    id::{FlowId, name_in_flow},
    progress::FlowProgress,
};
use crate::{Task, TaskQueue, error::Error};

/// A graph of up to 20,000 tasks, added by one command, all or none. Everything is checked when it
/// is [added](TaskQueue::add_flow).
///
/// A task names its [upstreams](Task::after): other tasks of the flow, or stored tasks by id. The
/// result of an upstream is an [input](Task::input), by default of the upstream's name.
/// [`OnFailure`](crate::OnFailure) sets the action if the upstream fails.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use interval_queue_tasks::{Context, Flow, OnFailure, Task, TaskError, TaskQueue, Worker};
///
/// async fn fetch(_: Context, words: String) -> Result<Vec<String>, TaskError> {
///     Ok(words.split(' ').map(str::to_owned).collect())
/// }
///
/// async fn count(context: Context, at: usize) -> Result<usize, TaskError> {
///     let words: Vec<String> = context.inputs().await?.get("fetch")?;
///     Ok(words[at].len())
/// }
///
/// async fn sum(context: Context, (): ()) -> Result<usize, TaskError> {
///     let inputs = context.inputs().await?;
///     (0..3).map(|at| Ok(inputs.get::<usize>(&format!("count {at}"))?)).sum()
/// }
/// # async fn tidy(_: Context, (): ()) -> Result<(), TaskError> { Ok(()) }
///
/// let queue = TaskQueue::builder("words").connect("memory:").await?;
/// let counts = |at| format!("count {at}");
/// let flow = Flow::new()
///     .task("fetch", Task::new("fetch", "an interval queue"))
///     .tasks((0..3).map(|at| (counts(at), Task::new("count", &at).after("fetch"))))
///     .task("sum", (0..3).map(counts).fold(Task::new("sum", &()), Task::after))
///     .task("tidy", Task::new("tidy", &()).after_or("sum", OnFailure::Run));
/// let added = queue.add_flow(flow).await?;
/// # let worker = Worker::builder(&queue).handler("fetch", fetch).handler("count", count).handler("sum", sum);
/// # worker.handler("tidy", tidy).build()?.run_until_empty().await?;
///
/// queue.wait_flow(added.flow(), |progress| println!("{progress}")).await?;
/// let sum: usize = queue.wait(added.get("sum").unwrap()).await?;
/// assert_eq!(sum, 15);
/// # Ok(())
/// # }
/// ```
///
/// # Storage
///
/// Only the tasks are stored, each with the tags `flow:` and the flow's id, `name:` and its own
/// name. [Selectors](FlowId::selector) find them, so commands on selected tasks work on flows. A
/// flow exists as long as its tasks.
///
/// # Growing
///
/// A handler can add tasks after its own, as another flow or as part of its own flow:
///
/// ```
/// # use interval_queue_tasks::{Context, Flow, Task, TaskError};
/// async fn list(context: Context, pages: u32) -> Result<(), TaskError> {
///     let flow = context.flow().map_or_else(Flow::new, Flow::named);
///     let page = |n| (format!("page {n}"), Task::new("page", &n).after(context.id()));
///     context.queue().add_flow(flow.tasks((0..pages).map(page))).await?;
///     Ok(())
/// }
/// ```
///
/// A repeated run adds nothing twice: a [named](Self::named) flow derives task ids from names.
#[derive(Clone, Debug)]
#[must_use = "nothing is added before it is given to a queue"]
pub struct Flow {
    id: FlowId,
    /// Task ids are derived from names.
    is_named: bool,
    tasks: Vec<(String, Task)>,
}

impl Flow {
    /// An empty flow with a new id. A clone is the same flow: adding both adds it once.
    #[allow(clippy::new_without_default, reason = "no two of them are the same")]
    #[allow(clippy::expect_used, clippy::missing_panics_doc, reason = "a UUID is a printable text")]
    pub fn new() -> Self {
        let id = FlowId::new(Uuid::now_v7().to_string()).expect("a UUID is printable");
        Self { id, is_named: false, tasks: Vec::new() }
    }

    /// The flow with this id. Task ids are derived from it and the tasks' names, so each task is
    /// added only once while it is stored, ended or not.
    pub fn named(id: FlowId) -> Self {
        Self { id, is_named: true, tasks: Vec::new() }
    }

    /// The flow's id.
    pub fn id(&self) -> &FlowId {
        &self.id
    }

    /// Adds a task, which may wait for others, in any order. `name` is unique in the flow: 1 to 95
    /// bytes of printable text.
    pub fn task(self, name: impl Into<String>, task: Task) -> Self {
        self.tasks([(name, task)])
    }

    /// Adds tasks with their names, as [`task`](Self::task).
    pub fn tasks(mut self, tasks: impl IntoIterator<Item = (impl Into<String>, Task)>) -> Self {
        self.tasks.extend(tasks.into_iter().map(|(name, task)| (name.into(), task)));
        self
    }

    /// The tasks, each after its upstreams, with upstreams by id: for [`TaskQueue::prepare`], or to
    /// inspect.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid): more than 20,000 tasks, an invalid or repeated name,
    /// an upstream name that no task of the flow has, or tasks that wait for each other in a cycle.
    pub fn into_tasks(self) -> Result<Vec<Task>, Error> {
        Ok(self.into_named_tasks()?.into_iter().map(|(_, task)| task).collect())
    }

    fn into_named_tasks(self) -> Result<Vec<(String, Task)>, Error> {
        let many = self.tasks.len();
        if many > MAX_ADD {
            return Err(Error::invalid(format!(
                "{many} tasks in one flow: give it at most {MAX_ADD}, and add those beyond behind them as more of the flow"
            )));
        }
        let mut ids: HashMap<String, TaskId> = HashMap::with_capacity(many);
        let mut tasks = Vec::with_capacity(many);
        for (name, mut task) in in_order(self.tasks)? {
            let name_tag = name_tag(&name)?;
            if ids.contains_key(&name) {
                return Err(Error::invalid(format!(
                    "two tasks of the flow are named {name:?}: give each a name of its own"
                )));
            }
            if let Some(other) = task.named_upstreams().find(|other| !ids.contains_key(*other)) {
                return Err(Error::invalid(unknown(&name, other)));
            }
            if self.is_named {
                task = task.with_id(self.id.id_of(&name));
            }
            let task = task.tag(self.id.tag()).tag(name_tag).in_flow(&name, &ids);
            ids.insert(name.clone(), task.id());
            tasks.push((name, task));
        }
        Ok(tasks)
    }
}

fn unknown(name: &str, other: &str) -> String {
    if name == other {
        return format!("task {name:?} of the flow waits for itself: let it wait for others");
    }
    format!(
        "task {name:?} of the flow waits for {other:?}, and the flow has no task of that name: name one of the flow, or \
         give the id of a task"
    )
}

/// Results of adding a flow, by the names of its tasks.
#[derive(Clone, Debug)]
pub struct AddedFlow {
    flow: FlowId,
    tasks: Vec<(String, Added)>,
    places: HashMap<String, usize>,
}

impl AddedFlow {
    /// The flow's id.
    pub fn flow(&self) -> &FlowId {
        &self.flow
    }

    /// The id of the task with this name, or of the task that holds its unique name instead.
    pub fn get(&self, name: &str) -> Option<TaskId> {
        self.places.get(name).map(|&place| self.tasks[place].1.id())
    }

    /// The results, each after those of its upstreams.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Added)> {
        self.tasks.iter().map(|(name, added)| (name.as_str(), *added))
    }
}

impl TaskQueue {
    /// Adds a flow, all tasks or none. Tasks already stored under the same ids stay unchanged.
    ///
    /// A task whose [unique name](Task::unique) is taken is not added; its downstreams wait for the
    /// holder, which is not part of the flow.
    ///
    /// # Errors
    ///
    /// As [`into_tasks`](Flow::into_tasks) and [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// As [`add`](Self::add): adding a clone of the flow again is safe.
    pub async fn add_flow(&self, flow: Flow) -> Result<AddedFlow, Error> {
        let id = flow.id.clone();
        let (names, tasks): (Vec<String>, Vec<Task>) = flow.into_named_tasks()?.into_iter().unzip();
        let places = names.iter().cloned().zip(0..).collect();
        let added = self.add_all(tasks).await?;
        Ok(AddedFlow { flow: id, tasks: names.into_iter().zip(added).collect(), places })
    }
}
