//! The way of a process to the stored tasks: the same network, with its delays and faults.

use async_trait::async_trait;
use futures::stream;
use interval_queue_contract::{Changes, QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{Change, Command, Reply, TaskStore};
use tokio::{sync::mpsc::Receiver, time::sleep_until};

use crate::{process::Process, wire::Request, world::World};

impl Request for Command {
    type Reply = Reply;

    fn arrive(&self, world: &World, process: usize, queue: &QueueName) -> Result<Reply, StateError> {
        world.apply_to_tasks(process, queue, self)
    }

    fn words(&self) -> String {
        words(self)
    }
}

#[derive(Clone)]
struct Begin;

impl Request for Begin {
    type Reply = Receiver<()>;

    fn arrive(&self, world: &World, _: usize, queue: &QueueName) -> Result<Self::Reply, StateError> {
        Ok(world.inside(|inside| inside.tasks.subscribe(queue)))
    }

    fn words(&self) -> String {
        "watch".into()
    }
}

#[async_trait]
impl TaskStore for Process {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let reply = self.send(queue, command).await;
        if let Err(error) = &reply {
            self.world.note(|| format!("{} gets an error: {error}", self.name()));
        }
        reply
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Ok(self.world.inside(|inside| inside.tasks.queues()))
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        if !self.world.inside(|inside| inside.lines[self.id].wakes) {
            return Err(StateError::new(StateErrorKind::Unsupported, "this store cannot be watched"));
        }
        let notified = self.send(queue, Begin).await?;
        let process = self.clone();
        Ok(Box::pin(stream::unfold((process, notified), async |(process, mut notified)| {
            loop {
                notified.recv().await?;
                let arrives = process.message_arrives();
                sleep_until(arrives).await;
                if !process.world.is_cut(process.id) {
                    return Some(((), (process, notified)));
                }
            }
        })))
    }
}

pub(crate) fn words(command: &Command) -> String {
    match command {
        Command::Step(step) => {
            let complete: Vec<_> = step
                .complete
                .iter()
                .map(|completion| {
                    format!(
                        "{}:{} {:?}",
                        super::ids::short(completion.id),
                        completion.token,
                        completion.outcome
                    )
                })
                .collect();
            let holding = step.held.as_ref().map(|holding| {
                let held = holding.iter().map(|(id, token)| format!("{}:{token}", super::ids::short(*id)));
                format!(" holding [{}]", held.collect::<Vec<_>>().join(" "))
            });
            format!(
                "step {} ({}) want {} ahead {} complete [{}]{}",
                step.sequence,
                step.acknowledged,
                step.want,
                step.ahead,
                complete.join(", "),
                holding.unwrap_or_default()
            )
        }
        Command::Add(add) => {
            let tasks: Vec<_> = add.tasks.iter().map(|task| super::ids::short(task.id)).collect();
            format!("add [{}] {} ms old", tasks.join(" "), add.age.get() / 1000)
        }
        Command::Change(Change::Tasks(change)) => format!("{} {:?}", change.verb.as_str(), change.selector),
        other => format!("{other:?}"),
    }
}

pub(crate) fn answer(reply: &Reply) -> String {
    match reply {
        Reply::Stepped(stepped) => {
            let leased: Vec<_> = stepped
                .leased
                .iter()
                .map(|leased| format!("{}:{}", super::ids::short(leased.task.id), leased.task.token))
                .collect();
            let ids = |ids: Vec<_>| ids.into_iter().map(super::ids::short).collect::<Vec<_>>().join(" ");
            let mut text = format!("leased [{}]", leased.join(" "));
            for (what, some) in [
                ("lost", stepped.lost.clone()),
                ("stop", stepped.stop.iter().map(|(id, _)| *id).collect()),
                ("refused", stepped.refused.clone()),
            ] {
                if !some.is_empty() {
                    text += &format!(", {what} [{}]", ids(some));
                }
            }
            for (what, is_so) in [(", restate", stepped.resync), (", more", stepped.more)] {
                if is_so {
                    text += what;
                }
            }
            text
        }
        Reply::Changed(_) => "done".into(),
        other => format!("{other:?}"),
    }
}
