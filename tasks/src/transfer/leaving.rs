//! Tasks leaving a queue: all of a key at once, while none of them runs.

use std::collections::{BTreeMap, HashSet};

use interval_queue::contract::Label;
use interval_queue_task_contract::{Key, MAX_PAGE, Order, Selector, TaskId, Verb};

use crate::{TaskQueue, error::Error};

pub(super) struct Leaving<'a> {
    from: &'a TaskQueue,
    live: Selector,
    to: Label,
    /// Keys with their former limits.
    paused: BTreeMap<Key, Option<u32>>,
}

impl<'a> Leaving<'a> {
    pub(super) fn new(from: &'a TaskQueue, live: Selector, to: Label) -> Self {
        Self { from, live, to, paused: BTreeMap::new() }
    }

    pub(super) fn live(&self) -> &Selector {
        &self.live
    }

    /// Keys with a running task are paused, so that no other task of the key starts before the next
    /// round.
    pub(super) async fn round(&mut self) -> Result<(), Error> {
        let most = MAX_PAGE as usize;
        let mut keyed: BTreeMap<Key, Vec<TaskId>> = BTreeMap::new();
        let mut after = Some(Order::Oldest.start());
        while let Some(from) = after {
            let page = self.from.page(&self.live, from, MAX_PAGE, false).await?;
            let mut alone = Vec::new();
            for stored in page.tasks {
                match stored.task.key {
                    Some(key) => keyed.entry(key).or_default().push(stored.task.id),
                    None => alone.push(stored.task.id),
                }
            }
            self.leave(alone).await?;
            after = page.next;
        }
        let (mut group, mut count) = (Vec::new(), 0);
        for (key, of_key) in keyed {
            if of_key.len() > most {
                // Several commands: no task may start in between.
                self.pause(&key).await?;
                for some in of_key.chunks(most) {
                    if !self.leave(some.to_vec()).await?.is_empty() {
                        break;
                    }
                }
                continue;
            }
            if count + of_key.len() > most {
                self.leave_whole(std::mem::take(&mut group)).await?;
                count = 0;
            }
            count += of_key.len();
            group.push((key, of_key));
        }
        self.leave_whole(group).await
    }

    /// All tasks of a key leave by one command, or none.
    async fn leave_whole(&mut self, group: Vec<(Key, Vec<TaskId>)>) -> Result<(), Error> {
        let ids = group.iter().flat_map(|(_, ids)| ids).copied().collect();
        let kept = self.leave(ids).await?;
        for (key, ids) in group {
            if ids.iter().any(|id| kept.contains(id)) {
                self.pause(&key).await?;
            }
        }
        Ok(())
    }

    /// Returns the tasks that stay, since another of their key runs.
    async fn leave(&self, ids: Vec<TaskId>) -> Result<HashSet<TaskId>, Error> {
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        // A search of payloads could take several commands, and a key must leave by one.
        let selector = Selector { ids, payload: None, ..self.live.clone() };
        let touched = self.from.change(&selector, Verb::Move(self.to.clone()), false).await?;
        Ok(touched.kept.into_iter().collect())
    }

    async fn pause(&mut self, key: &Key) -> Result<(), Error> {
        if self.paused.contains_key(key) {
            return Ok(());
        }
        let limit = self.from.key_limit(key.as_str()).await?;
        self.paused.insert(key.clone(), limit);
        self.from.set_key_limit(key.as_str(), Some(0)).await
    }

    pub(super) async fn open(&mut self) -> Result<(), Error> {
        while let Some((key, limit)) = self.paused.pop_first() {
            self.from.set_key_limit(key.as_str(), limit).await?;
        }
        Ok(())
    }
}
