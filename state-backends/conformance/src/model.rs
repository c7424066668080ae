//! The record of a queue as the rules demand it.
#![allow(clippy::unwrap_used, reason = "a check fails by panicking")]

use interval_queue_contract::{
    Command, Micros, Reading, Record, Reply, Snapshot, StateError, StateErrorKind, rules,
};

/// The outcome of a command. Texts of errors are the backend's own.
pub(crate) type Outcome = Result<Reply, StateErrorKind>;

pub(crate) fn outcome(result: Result<Reply, StateError>) -> Outcome {
    result.map_err(|error| error.kind())
}

/// The record of a queue without other users.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) record: Option<Record>,
    /// The instant of the last read or reply.
    pub(crate) at: Micros,
    incarnation: Option<String>,
}

impl Model {
    /// Applies `commands` in this order to the rules; compares the results with the outcomes and
    /// with `look`, a read after them.
    ///
    /// The rules run at the instant in the reply, which is the clock's reading or, if later, the
    /// record's last write; the rules treat both alike. A rejection holds at any instant.
    ///
    /// # Errors
    ///
    /// The difference from the rules. The model is then unchanged.
    pub(crate) fn follow(
        &mut self,
        commands: &[(&Command, &Outcome)],
        look: Option<&Snapshot>,
    ) -> Result<(), String> {
        let mut next = self.clone();
        if let Some(look) = look {
            let found = look.record.incarnation.clone();
            let known = next.incarnation.get_or_insert_with(|| found.clone());
            if *known != found {
                return Err(format!("the state was held by {known:?} before, and is by {found:?} now"));
            }
        }
        for (command, outcome) in commands {
            next.carry_out(command, outcome)?;
        }
        let at = look.map_or(next.at, |look| look.at);
        if at < next.at {
            return Err(format!("the look is of {at:?}, and what came before it of {:?}", next.at));
        }
        let (expected, found) = (next.seen(at), look.map(|look| &look.record));
        if expected.as_ref() != found {
            let (expected, found) = (text(expected.as_ref()), text(found));
            return Err(format!("the rules have stored {expected}\nand a look shows {found}"));
        }
        next.at = at;
        *self = next;
        Ok(())
    }

    fn carry_out(&mut self, command: &Command, outcome: &Outcome) -> Result<(), String> {
        let told = match outcome {
            Ok(Reply::Stepped(stepped)) => Some(stepped.memory.at),
            Ok(Reply::Changed(changed)) => Some(changed.memory.at),
            _ => None,
        };
        let now = told.unwrap_or(self.at);
        if now < self.at {
            return Err(format!("the reply is of {now:?}, and what came before it of {:?}", self.at));
        }
        let incarnation = self.incarnation.clone().unwrap_or_default();
        let reading = Reading { now, incarnation };
        let expected = self::outcome(rules::apply(&mut self.record, &reading, command));
        if expected != *outcome {
            return Err(format!("with {reading:?} the rules reply {expected:?}\nand the state {outcome:?}"));
        }
        self.at = now;
        Ok(())
    }

    fn seen(&self, at: Micros) -> Option<Record> {
        let reading = Reading::of_clock(at);
        let reply = rules::apply(&mut self.record.clone(), &reading, &Command::Read).unwrap();
        reply.read().unwrap().map(|snapshot| snapshot.record)
    }
}

/// The record as readable JSON.
pub(crate) fn text(record: Option<&Record>) -> String {
    record.map_or_else(|| "no record".to_owned(), |record| record.to_json().unwrap())
}
