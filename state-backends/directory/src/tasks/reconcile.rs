//! Reconciles files with the index: each difference becomes a command of the rules, or its file is
//! quarantined.

use std::{
    io,
    path::{Path, PathBuf},
};

use interval_queue_contract::{Micros, QueueName};
use interval_queue_task_contract::{
    Add, Added, Change, ChangeTasks, Command, Reply, Rows, Selector, State, Task, TaskId, Touched, Verb,
    rules,
};
use uuid::Uuid;

use super::{
    TransactionError,
    document::{Document, Wrong},
    edit_scan::Findings,
    names, quarantine,
    redo_entry::RedoEntry,
    transaction::DirectoryTransaction,
};
use crate::store::files::{Contents, Unread, is_marked};

/// Returns whether the index or files change.
pub(super) fn reconcile(
    transaction: &mut DirectoryTransaction<'_>,
    queue: &QueueName,
    findings: Findings,
) -> Result<bool, TransactionError> {
    let mut reconciler = Reconciler { transaction, queue, folder: names::folder(queue), is_changed: false };
    let mut moved = Vec::new();
    let mut new = Vec::new();
    // All files are located first, since each command may touch several.
    for (state, path) in findings.strange {
        match reconciler.strange(state, &path)? {
            Strange::Nothing => {}
            Strange::Moved(task, document) => moved.push((task, state, document)),
            Strange::New(id, document, name) => new.push((id, document, name)),
        }
    }
    let mut gone = findings.gone;
    let mut edited = Vec::new();
    for id in findings.edited {
        match reconciler.edited(id)? {
            Edited::Same => {}
            Edited::Gone => gone.push(id),
            Edited::Written(document, contents) => edited.push((id, document, contents)),
        }
    }
    let mut removed = Vec::new();
    for id in gone {
        removed.extend(reconciler.gone(id)?);
    }
    for (task, state, document) in moved {
        reconciler.move_task(&task, state, &document)?;
    }
    for id in removed {
        reconciler.remove(id)?;
    }
    for (id, document, contents) in edited {
        reconciler.take_over(id, &document, Some(&contents))?;
    }
    for (id, document, name) in new {
        reconciler.add(id, &document, &name)?;
    }
    Ok(reconciler.is_changed)
}

/// A file that the index does not expect.
enum Strange {
    Nothing,
    Moved(Box<Task>, Document),
    New(Option<TaskId>, Document, String),
}

/// A file without its mark.
enum Edited {
    Same,
    Gone,
    Written(Document, Contents),
}

struct Reconciler<'r, 'a> {
    transaction: &'r mut DirectoryTransaction<'a>,
    queue: &'r QueueName,
    folder: String,
    is_changed: bool,
}

impl Reconciler<'_, '_> {
    fn failed(&self, verb: &str, name: &Path, error: io::Error) -> TransactionError {
        TransactionError::Files(self.transaction.location.failed(verb, &name.to_string_lossy(), error))
    }

    fn quarantine(&mut self, path: &Path, why: &str) -> Result<(), TransactionError> {
        self.is_changed = true;
        let quarantined = quarantine::isolate(self.transaction.files(), path, why);
        quarantined.map(drop).map_err(|error| self.failed("set aside", path, error))
    }

    /// Writes why an edit has no effect.
    fn write_reason(&mut self, id: TaskId, what: &str) -> Result<(), TransactionError> {
        let name = format!("{}/{}/{id}.json.reason", self.folder, names::QUARANTINE);
        let written = self.transaction.files().replace(&name, &format!("{what}\n"));
        written.map_err(|error| self.failed("write", Path::new(&name), error))
    }

    fn task(&mut self, id: TaskId) -> Result<Option<Task>, TransactionError> {
        self.transaction.with_rows(self.queue, false, |rows| rows.task(id))
    }

    fn number(&mut self, id: TaskId) -> Result<i64, TransactionError> {
        let sql = "SELECT t.number FROM interval_queue_task t JOIN interval_queue_task_queue q ON q.number = t.queue \
                   WHERE q.name = ?1 AND t.id = ?2";
        let on = &self.transaction.index.connection;
        Ok(on.prepare_cached(sql)?.query_row((self.queue.as_str(), id.to_string()), |row| row.get(0))?)
    }

    /// Where the file of a task belongs.
    fn path_of(&mut self, task: &Task) -> Result<Option<String>, TransactionError> {
        let number = self.number(task.id)?;
        Ok(names::path(&self.folder, task.state, number, task.id))
    }

    fn strange(&mut self, state: Option<State>, path: &Path) -> Result<Strange, TransactionError> {
        let contents = match self.transaction.files().read(path) {
            Ok(contents) => contents,
            Err(Unread::Missing) => return Ok(Strange::Nothing),
            Err(Unread::Odd(why)) => return self.quarantine(path, &why).map(|()| Strange::Nothing),
            Err(Unread::Denied(_)) => {
                return self.quarantine(path, "this user has no right to read it").map(|()| Strange::Nothing);
            }
            Err(Unread::Failed(error)) => return Err(self.failed("read", path, error)),
        };
        match self.classify(state, path, &contents)? {
            Ok(strange) => Ok(strange),
            Err(why) => self.quarantine(path, &why).map(|()| Strange::Nothing),
        }
    }

    fn classify(
        &mut self,
        state: Option<State>,
        path: &Path,
        contents: &Contents,
    ) -> Result<Result<Strange, Wrong>, TransactionError> {
        let Some(name) = path.to_str().filter(|name| !name.chars().any(char::is_control)) else {
            return Ok(Err("its name is no text: give it another one".into()));
        };
        let (document, says) = match Document::parse(&contents.text).and_then(|document| {
            let says = document.id()?;
            Ok((document, says))
        }) {
            Ok(read) => read,
            Err(why) => return Ok(Err(why)),
        };
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let called: Option<TaskId> = stem.parse().ok();
        if let (Some(called), Some(says)) = (called, says)
            && called != says
        {
            let why = format!(
                "its name says {called} and its \"id\" {says}: take one out to add it as another task"
            );
            return Ok(Err(why));
        }
        let id = says.or(called);
        let known = match id {
            Some(id) => self.task(id)?.filter(|task| task.state != State::Purged),
            None => None,
        };
        let Some(task) = known else {
            let ended = state.filter(|state| state.is_ended() || *state == State::Leased);
            if let Some(state) = ended {
                return Ok(Err(format!(
                    "no task of this id is known to be {state}: mv it to {}/ to add it",
                    names::DROP_BOX
                )));
            }
            // A purged task's id is kept for a while; a file with it is added under a new id.
            let is_free = match id {
                Some(id) => self.task(id)?.is_none(),
                None => false,
            };
            return Ok(Ok(Strange::New(id.filter(|_| is_free), document, name.to_owned())));
        };
        let expected = self.path_of(&task)?.unwrap_or_default();
        if self.transaction.files().is_there(&expected) && expected != name {
            return Ok(Err(format!(
                "task {} is {}, at {expected}: that one counts, and not this file",
                task.id, task.state
            )));
        }
        let id = task.id;
        self.transaction.pending(self.queue).moved.insert(id, name.to_owned());
        Ok(Ok(Strange::Moved(Box::new(task), document)))
    }

    /// Requires that the file has lost its mark.
    fn edited(&mut self, id: TaskId) -> Result<Edited, TransactionError> {
        let Some(task) = self.task(id)? else { return Ok(Edited::Same) };
        let Some(expected) = self.path_of(&task)? else { return Ok(Edited::Same) };
        let contents = match self.transaction.files().read(&expected) {
            Ok(contents) => contents,
            Err(Unread::Missing) => return Ok(Edited::Gone),
            Err(Unread::Odd(why)) => {
                self.quarantine(Path::new(&expected), &why)?;
                return Ok(Edited::Gone);
            }
            Err(Unread::Denied(error) | Unread::Failed(error)) => {
                return Err(self.failed("read", Path::new(&expected), error));
            }
        };
        let read = Document::parse(&contents.text).and_then(|document| {
            let says = document.id()?;
            if says.is_some_and(|says| says != id) {
                return Err(format!("its name says {id} and its \"id\" is another one"));
            }
            document.new_task(id)?;
            Ok((says, document))
        });
        match read {
            Ok((says, _)) if says.is_some() && is_marked(contents.written, names::mark(id)) => {
                Ok(Edited::Same)
            }
            Ok((_, document)) => Ok(Edited::Written(document, contents)),
            Err(why) => {
                self.quarantine(Path::new(&expected), &why)?;
                Ok(Edited::Gone)
            }
        }
    }

    /// Requires that the file is missing and was not found elsewhere.
    fn gone(&mut self, id: TaskId) -> Result<Option<TaskId>, TransactionError> {
        if self.transaction.pending(self.queue).moved.contains_key(&id) {
            return Ok(None);
        }
        let Some(task) = self.task(id)? else { return Ok(None) };
        match self.path_of(&task)? {
            Some(expected) if !self.transaction.files().is_there(&expected) => {
                self.transaction.pending(self.queue).missing.insert(id);
                Ok(Some(id))
            }
            _ => Ok(None),
        }
    }

    fn verb(&mut self, id: TaskId, verb: Verb) -> Result<(), TransactionError> {
        let change = ChangeTasks {
            selector: Selector { states: State::ALL.into(), ..Selector::ids([id]) },
            verb,
            after: None,
            watermark: Some(Micros::MAX),
            limit: 1,
            dry_run: false,
        };
        let reply = self.transaction.apply(self.queue, &Command::Change(Change::Tasks(change)), false)?;
        self.is_changed = true;
        match reply {
            Reply::Touched(Touched { taken, .. }) if !taken.is_empty() => {
                taken.iter().try_for_each(|(id, holder)| {
                    let what =
                        format!("task {holder} has the unique name of task {id}, so its file was put back");
                    self.write_reason(*id, &what)
                })
            }
            _ => Ok(()),
        }
    }

    /// The file was moved to the directory of another state.
    fn move_task(
        &mut self,
        task: &Task,
        to: Option<State>,
        document: &Document,
    ) -> Result<(), TransactionError> {
        use State::{Added, Blocked, Cancelled, Ready, Scheduled, Waiting};
        let waits = matches!(to, None | Some(Added | Ready | Blocked | Scheduled | Waiting));
        let verb = match task.state {
            state if state.is_ended() => Some(Verb::Retry).filter(|_| waits),
            _ if to == Some(Cancelled) => Some(Verb::Cancel),
            State::Leased if waits => Some(Verb::Release),
            Scheduled if to == Some(Ready) => Some(Verb::Release),
            _ => None,
        };
        match verb {
            Some(verb) => self.verb(task.id, verb)?,
            // The file only moves to the right shard.
            None if to == Some(task.state) => {}
            None => {
                let to = to.map_or(names::DROP_BOX, State::as_str);
                let what = format!(
                    "task {} is {}: a person cannot make it {to}, so its file was put back",
                    task.id, task.state
                );
                self.write_reason(task.id, &what)?;
            }
        }
        let id = task.id;
        self.transaction.with_rows(self.queue, false, |rows| match rows.task(id)? {
            Some(task) => rows.put(&task, &task),
            None => Ok(()),
        })?;
        self.is_changed = true;
        self.take_over(id, document, None)
    }

    fn remove(&mut self, id: TaskId) -> Result<(), TransactionError> {
        let Some(task) = self.task(id)? else { return Ok(()) };
        if !task.state.is_ended() && task.stop.is_none() {
            self.verb(id, Verb::Cancel)?;
        }
        if self.task(id)?.is_some_and(|task| task.state.is_ended()) {
            self.verb(id, Verb::Purge)?;
        }
        Ok(())
    }

    /// Requires that the task is not running.
    fn take_over(
        &mut self,
        id: TaskId,
        document: &Document,
        read: Option<&Contents>,
    ) -> Result<(), TransactionError> {
        let now = self.transaction.now;
        let Ok(new) = document.new_task(id) else { return Ok(()) };
        match self.transaction.with_rows(self.queue, false, |rows| rules::edit(rows, now, &new)) {
            Ok(true) => self.is_changed = true,
            Ok(false) => {
                // An edited payload is read at the next lease. A running task's file stays
                // unmarked, so it is scanned again.
                let is_ours = self.task(id)?.is_some_and(|task| task.state != State::Leased);
                if let Some(contents) = read.filter(|_| is_ours) {
                    let has_id = document.id().is_ok_and(|id| id.is_some());
                    let marked = if has_id { contents.mark(names::mark(id)) } else { Ok(false) };
                    if !marked.map_err(|error| self.failed("mark", Path::new(&id.to_string()), error))? {
                        self.rewrite(id)?;
                    }
                }
            }
            Err(TransactionError::Refused(error)) => {
                self.write_reason(id, &format!("what was written of task {id} cannot be: {error}"))?;
                self.rewrite(id)?;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn rewrite(&mut self, id: TaskId) -> Result<(), TransactionError> {
        self.is_changed = true;
        self.transaction.with_rows(self.queue, false, |rows| match rows.task(id)? {
            Some(task) => rows.rewrite(&task),
            None => Ok(()),
        })
    }

    fn add(&mut self, id: Option<TaskId>, document: &Document, name: &str) -> Result<(), TransactionError> {
        let id = id.unwrap_or_else(|| TaskId::new(Uuid::now_v7()));
        let path = PathBuf::from(name);
        let new = match document.new_task(id) {
            Ok(new) => new,
            Err(why) => return self.quarantine(&path, &why),
        };
        // The new task's file takes over the unknown fields of this one, which is removed.
        self.transaction.pending(self.queue).moved.insert(id, name.to_owned());
        let add = Command::Add(Add { tasks: [new].into(), sequence: 0, age: Micros::ZERO });
        match self.transaction.apply(self.queue, &add, false) {
            Ok(Reply::Added(added)) => {
                if !matches!(added[..], [Added::New(_)]) {
                    let pending = self.transaction.pending(self.queue);
                    pending.moved.remove(&id);
                    pending.redo.push(RedoEntry::Remove { name: name.to_owned() });
                }
                self.is_changed = true;
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(TransactionError::Refused(error)) => {
                self.transaction.pending(self.queue).moved.remove(&id);
                self.quarantine(&path, &error.to_string())
            }
            Err(error) => Err(error),
        }
    }
}
