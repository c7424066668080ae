//! Packs an imported task for the script: its row as `take` reads rows, its payload, its result,
//! its edges and its log.

use interval_queue_task_contract::{Attempt, Imported, LogLine, State, Task, Token, Until};

use super::{
    pack::{Fields, Packer},
    take::ENDS,
    task_request::{edge, micros, number_of, own_policy, progress},
};

pub(super) fn pack(packer: &mut Packer, one: &Imported) {
    packer.list(0..5, |packer, n| match (n, &one.result) {
        (0, _) => packer.table(|fields| task(fields, &one.task)),
        (1, _) => packer.text(one.payload.as_str()),
        (2, Some(result)) => packer.text(result.as_str()),
        (2, None) => packer.flag(false),
        (3, _) => packer.list(&one.edges, edge),
        _ => packer.list(&one.log, line),
    });
}

/// A line as `take` reads lines.
fn line(packer: &mut Packer, line: &LogLine) {
    packer.list(0..5, |packer, n| match n {
        0 => packer.int(micros(line.at)),
        1 => packer.int(micros(line.token.incarnation)),
        2 => packer.int(line.token.attempt),
        3 => packer.int(line.number),
        _ => packer.text(&line.text),
    });
}

/// Omits defaults, and fields that the rules decide anew.
fn task(fields: &mut Fields<'_>, x: &Task) {
    let unless = |number: i64, default: i64| Some(number).filter(|&number| number != default);
    fields.text("id", x.id.uuid().as_bytes());
    fields.text("kind", x.kind.as_str());
    fields.int("state", number_of(&State::ALL, x.state));
    fields.int("added", micros(x.added));
    fields.some_int("position", unless(x.position.into(), 0));
    fields.int("due", x.due);
    fields.some_int("priority", unless(x.priority.into(), 0));
    fields.some_text("key", x.key.as_ref().map(|key| key.as_str()));
    if x.ordered {
        fields.flag("ordered", true);
    }
    if let Some(unique) = &x.unique {
        fields.text("unique", unique.name.as_str());
        fields.some_int("name_until", (unique.until == Until::Leased).then_some(1));
        fields.flag("holds_name", x.holds_name);
    }
    fields.some_int("weight", unless(x.weight.into(), 1));
    if !x.tags.is_empty() {
        fields.field("tags").list(&x.tags, |packer, tag| packer.text(tag.as_str()));
    }
    fields.some_int("deadline", x.deadline.map(micros));
    fields.some_int("not_before", unless(micros(x.not_before), 0));
    own_policy(fields, &x.policy);
    if let Some(nominal) = &x.schedule {
        fields.text("schedule", nominal.schedule.as_str());
        fields.int("instant", micros(nominal.at));
    }
    fields.some_text("trace", x.trace.as_ref().map(|trace| trace.as_str()));
    token(fields, x.token);
    fields.some_int("failures", unless(x.failures.into(), 0));
    fields.some_int("retries", unless(x.retries.into(), 0));
    fields.some_int("returns", unless(x.returns.into(), 0));
    fields.some_int("generation", unless(x.generation.into(), 0));
    fields.some_text("worker", x.worker.as_ref().map(|worker| worker.uuid().into_bytes()));
    fields.some_int("admitted", x.admitted.map(micros));
    fields.some_int("leased", x.leased.map(micros));
    fields.some_text("progress", x.progress.as_ref().map(progress));
    fields.some_int("ended", x.ended.map(micros));
    fields.some_text("error", x.error.as_ref());
    if !x.history.is_empty() {
        fields.field("history").list(&x.history, |packer, run| packer.table(|fields| attempt(fields, run)));
    }
}

fn token(fields: &mut Fields<'_>, token: Token) {
    fields.some_int("incarnation", Some(micros(token.incarnation)).filter(|&incarnation| incarnation != 0));
    fields.some_int("attempt", Some(token.attempt).filter(|&attempt| attempt != 0));
}

fn attempt(fields: &mut Fields<'_>, run: &Attempt) {
    token(fields, run.token);
    fields.some_text("worker", run.worker.as_ref().map(|worker| worker.uuid().into_bytes()));
    fields.some_int("leased", run.leased.map(micros));
    fields.int("ended", micros(run.ended));
    fields.int("how", number_of(&ENDS, run.end));
    fields.some_text("error", run.error.as_ref());
}
