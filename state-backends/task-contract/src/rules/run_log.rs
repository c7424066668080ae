//! Logs of tasks: lines of runs, and notes.

use super::{Work, refused};
use crate::{Event, LogLine, Refusal, Rows, RunLog, State, Task, TaskId, Token, WorkerId, log};

impl<R: Rows> Work<'_, R> {
    /// Lines count also after the end of the run, until the task is leased again or purged.
    pub(super) fn write_log(&mut self, worker: WorkerId, new: &RunLog) -> Result<(), R::Error> {
        let is_of_run =
            |x: &Task| x.worker == Some(worker) && x.token == new.token && x.state != State::Purged;
        let Some(x) = self.rows.task(new.id)?.filter(is_of_run) else { return Ok(()) };
        let log = self.rows.log(x.id)?;
        let last = log::last_number(&log, new.token);
        let (now, token) = (self.now, new.token);
        let lines = new.lines.iter().filter(|line| line.number > last).map(|line| LogLine {
            at: now - line.age,
            token,
            number: line.number,
            text: line.text.clone(),
        });
        self.append_to_log(&x, log, token, lines.collect())
    }

    pub(super) fn add_note(&mut self, id: TaskId, text: &str) -> Result<(), R::Error> {
        let Some(x) = self.rows.task(id)?.filter(|x| x.state != State::Purged) else {
            return Err(refused(Refusal::NoTask(id)));
        };
        let (log, token) = (self.rows.log(id)?, Token::default());
        let number = log::last_number(&log, token).saturating_add(1);
        let note = LogLine { at: self.now, token, number, text: text.to_owned() };
        self.append_to_log(&x, log, token, vec![note])
    }

    fn append_to_log(
        &mut self,
        x: &Task,
        mut log: Vec<LogLine>,
        token: Token,
        lines: Vec<LogLine>,
    ) -> Result<(), R::Error> {
        if lines.is_empty() {
            return Ok(());
        }
        log::append(&mut log, token, lines);
        self.rows.put_log(x.id, &log)?;
        if self.is_followed() {
            self.rows.put_event(&Event::of_log(self.now, x))?;
        }
        Ok(())
    }
}
