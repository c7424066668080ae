//! The stored definition of a schedule: JSON that stores do not read.

use std::time::SystemTime;

use interval_queue::{InvalidInput, Micros};
use interval_queue_task_contract::{
    DueSchedule, Fire, Json, MAX_ADD, NewTask, Overlap, Schedule as Row, Task, TaskId,
};
use serde::{Deserialize, Serialize};

use super::{
    Missed,
    rule::{Instants, Rule},
    time,
};
use crate::flow::instance;

/// Of the JSON. Workers ignore schedules of a higher version.
const VERSION: u32 = 2;
const TASK_VERSION: u32 = 1;
const ON_TIME_TOLERANCE: Micros = Micros::from_millis(60_000);
/// Ended tasks are kept for at least twice as long.
const END_CHECK_INTERVAL: Micros = Micros::from_millis(10 * 60_000);

/// Without the name and the columns that the rules read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definition {
    pub(super) version: u32,
    pub(super) rule: Rule,
    pub(super) missed: Missed,
    /// Or the last task of a flow. Its id is a placeholder.
    pub(super) task: NewTask,
    /// Other tasks of a flow, each after its upstreams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<NewTask>,
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Definition {
    /// `tasks`: each after its upstreams.
    pub(super) fn new(rule: Rule, missed: Missed, mut tasks: Vec<NewTask>) -> Result<Self, InvalidInput> {
        if let Missed::UpTo(most) = missed {
            // One command adds all tasks of a firing.
            let limit = Missed::MAX_MISSED.min((MAX_ADD / tasks.len().max(1)) as u32);
            if !(1..=limit).contains(&most) {
                return Err(InvalidInput::new(format!("missed instants {most}: give 1 to {limit}")));
            }
        }
        rule.instants()?;
        let task = tasks.pop().ok_or_else(|| InvalidInput::new("a schedule without a task: give it one"))?;
        let version = if tasks.is_empty() { TASK_VERSION } else { VERSION };
        Ok(Self { version, rule, missed, task, before: tasks })
    }

    pub(super) fn map_tasks<E>(self, mut map: impl FnMut(NewTask) -> Result<NewTask, E>) -> Result<Self, E> {
        let before = self.before.into_iter().map(&mut map).collect::<Result<_, _>>()?;
        Ok(Self { task: map(self.task)?, before, ..self })
    }

    pub(crate) fn read(row: &Row) -> Result<Self, InvalidInput> {
        let text = row.definition.as_str();
        let name = row.name.as_str();
        let damaged = |error| InvalidInput::new(format!("schedule {name:?} cannot be read: {error}"));
        let Versioned { version } = serde_json::from_str(text).map_err(damaged)?;
        if version > VERSION {
            return Err(InvalidInput::new(format!(
                "schedule {name:?} was stored by a newer version ({version}, this one knows {VERSION}): upgrade this one"
            )));
        }
        serde_json::from_str(text).map_err(damaged)
    }

    pub(super) fn to_json(&self) -> Result<Json, InvalidInput> {
        Json::of(self)
    }

    pub(super) fn first(&self, now: Micros) -> Result<Micros, InvalidInput> {
        let instants = self.rule.instants()?;
        match (&instants, instants.next(now), &self.rule) {
            (_, Some(next), _) => Ok(next),
            (Instants::AfterEnd(_), ..) => Ok(now),
            (.., Rule::Cron { line, .. }) => Err(InvalidInput::new(format!(
                "cron line {line:?} does not come within four years: there is no such day"
            ))),
            _ => Err(InvalidInput::new("there is no next instant")),
        }
    }

    pub(super) fn times(&self, from: Micros, most: usize) -> Vec<SystemTime> {
        let Ok(instants) = self.rule.instants() else { return Vec::new() };
        std::iter::successors(Some(from), |at| instants.next(*at)).take(most).map(time).collect()
    }

    /// The last task gets the id `last`.
    pub(super) fn tasks(&self, last: TaskId) -> Vec<NewTask> {
        let template: Vec<_> = self.before.iter().chain([&self.task]).cloned().collect();
        instance(&template, last)
    }

    /// In bytes.
    pub(super) fn max_payload(&self) -> usize {
        let tasks = self.before.iter().chain([&self.task]);
        tasks.map(|task| task.payload.as_str().len()).max().unwrap_or_default()
    }

    fn made(&self, row: &Row, at: Micros) -> impl Iterator<Item = (Micros, NewTask)> {
        let last = TaskId::of_schedule(row.incarnation, &row.name, at);
        self.tasks(last).into_iter().map(move |task| (at, task))
    }

    pub(crate) fn follows(&self) -> bool {
        matches!(self.rule, Rule::AfterEnd { .. })
    }

    /// `last`: the previous task, if the rule [follows](Self::follows) it and it is stored.
    pub(crate) fn fire(&self, due: &DueSchedule, last: Option<&Task>) -> Result<Fire, InvalidInput> {
        let row = &due.schedule;
        let instants = self.rule.instants()?;
        let (made, next) = match instants {
            Instants::AfterEnd(after) => follow(after, due, last),
            // A kept instant: the next one is already stored.
            _ if row.kept == Some(due.at) => (vec![due.at], None),
            _ => (self.instants_to_make(&instants, due), instants.next(due.now)),
        };
        Ok(Fire {
            schedule: row.name.clone(),
            revision: row.revision,
            from: due.at,
            made: made.into_iter().flat_map(|at| self.made(row, at)).collect(),
            next,
        })
    }

    /// Instants since the last firing.
    fn instants_to_make(&self, instants: &Instants, due: &DueSchedule) -> Vec<Micros> {
        let most = match self.missed {
            // Otherwise several tasks would overlap.
            Missed::UpTo(most) if due.schedule.overlap == Overlap::Allow => most as usize,
            _ => 1,
        };
        let mut made = instants.last(due.at, due.now, most);
        if self.missed == Missed::None {
            made.retain(|at| due.now - *at <= ON_TIME_TOLERANCE);
        }
        made
    }
}

/// For a task that follows the end of the previous one: while that runs, the next start is at least
/// `after` away.
fn follow(after: Micros, due: &DueSchedule, last: Option<&Task>) -> (Vec<Micros>, Option<Micros>) {
    let now = due.now;
    let look = Some(now + after.min(END_CHECK_INTERVAL));
    match last {
        Some(last) if !last.state.is_ended() => (Vec::new(), look),
        Some(last) => match last.ended.map(|ended| ended + after).filter(|at| *at > now) {
            Some(at) => (Vec::new(), Some(at)),
            None => (vec![due.at], look),
        },
        None => (vec![due.at], look),
    }
}

#[cfg(test)]
mod tests {
    use interval_queue_task_contract::{Key, State};

    use super::*;

    fn secs(seconds: u64) -> Micros {
        Micros::from_millis(seconds * 1_000)
    }

    fn every_10_s(missed: Missed) -> Definition {
        let task = NewTask::new(TaskId::FIRST, Json::default());
        Definition::new(Rule::Every { every_us: secs(10), offset_us: Micros::ZERO }, missed, vec![task])
            .unwrap()
    }

    fn due(definition: &Definition, overlap: Overlap, at: u64, now: u64) -> DueSchedule {
        let schedule = Row {
            name: Key::new("s").unwrap(),
            revision: 3,
            incarnation: Micros::new(7),
            definition: definition.to_json().unwrap(),
            next: Some(secs(at)),
            paused: false,
            overlap,
            last: None,
            kept: None,
            may_follow: false,
        };
        DueSchedule { schedule, at: secs(at), now: secs(now) }
    }

    /// Instants in seconds.
    fn fired(definition: &Definition, due: &DueSchedule) -> (Vec<u64>, Option<u64>) {
        let fire = definition.fire(due, None).unwrap();
        assert_eq!((fire.revision, fire.from), (3, due.at));
        let made = fire.made.iter().map(|(at, task)| {
            assert_eq!(task.id, TaskId::of_schedule(Micros::new(7), &fire.schedule, *at));
            at.get() / 1_000_000
        });
        (made.collect(), fire.next.map(|next| next.get() / 1_000_000))
    }

    #[test]
    fn an_instant_in_time_makes_its_task_under_every_missed_policy() {
        for missed in [Missed::None, Missed::Last, Missed::UpTo(5)] {
            let definition = every_10_s(missed);
            assert_eq!(
                fired(&definition, &due(&definition, Overlap::Allow, 100, 101)),
                (vec![100], Some(110))
            );
        }
    }

    #[test]
    fn missed_instants_are_made_up_for_by_policy() {
        for (missed, overlap, made) in [
            (Missed::None, Overlap::Allow, &[][..]),
            (Missed::Last, Overlap::Allow, &[100]),
            (Missed::UpTo(3), Overlap::Allow, &[80, 90, 100]),
            (Missed::UpTo(1_000), Overlap::Allow, &[70, 80, 90, 100]),
            (Missed::UpTo(3), Overlap::Skip, &[100]),
            (Missed::UpTo(3), Overlap::Keep, &[100]),
        ] {
            // The last of several instants; for `Missed::None` also one that is 61 s late.
            let definition = every_10_s(missed);
            let (mut at, mut now) = (70, 109);
            if missed == Missed::None {
                assert_eq!(fired(&definition, &due(&definition, overlap, at, now)), (vec![100], Some(110)));
                let rule = Rule::Every { every_us: secs(1_000), offset_us: Micros::ZERO };
                let seldom = Definition { rule, ..definition };
                (at, now) = (1_000, 2_061);
                assert_eq!(fired(&seldom, &due(&seldom, overlap, at, now)), (made.to_vec(), Some(3_000)));
                assert_eq!(fired(&seldom, &due(&seldom, overlap, at, now - 1)).0, [2_000]);
                continue;
            }
            assert_eq!(fired(&definition, &due(&definition, overlap, at, now)), (made.to_vec(), Some(110)));
        }
    }

    #[test]
    fn a_kept_instant_is_not_missed() {
        let definition = every_10_s(Missed::None);
        let mut kept = due(&definition, Overlap::Keep, 100, 9_999);
        kept.schedule.kept = Some(secs(100));
        assert_eq!(fired(&definition, &kept), (vec![100], None));
    }

    #[test]
    fn a_following_task_starts_the_given_time_after_the_end() {
        let task = NewTask::new(TaskId::LAST, Json::default());
        let definition =
            Definition::new(Rule::AfterEnd { after_us: secs(30) }, Missed::Last, vec![task]).unwrap();
        assert!(definition.follows());
        let due = due(&definition, Overlap::Allow, 100, 102);
        let ended = |at: Option<u64>| Task {
            state: if at.is_some() { State::Failed } else { State::Leased },
            ended: at.map(secs),
            ..Task::bare(TaskId::FIRST)
        };
        for (last, made, next) in [
            (None, &[100][..], 132),
            (Some(ended(None)), &[], 132),
            (Some(ended(Some(90))), &[], 120),
            (Some(ended(Some(72))), &[100], 132),
        ] {
            let fire = definition.fire(&due, last.as_ref()).unwrap();
            let at: Vec<_> = fire.made.iter().map(|(at, _)| at.get() / 1_000_000).collect();
            assert_eq!((at, fire.next), (made.to_vec(), Some(secs(next))), "{last:?}");
        }
        // An ended task is checked before it is deleted.
        let long = Definition { rule: Rule::AfterEnd { after_us: secs(86_400) }, ..definition };
        assert_eq!(long.fire(&due, Some(&ended(None))).unwrap().next, Some(secs(102) + END_CHECK_INTERVAL));
    }

    #[test]
    fn missed_instants_fit_into_one_command() {
        for (tasks, most, limit) in [(1, 0, 1_000), (1, 1_001, 1_000), (100, 201, 200)] {
            let (rule, task) =
                (Rule::AfterEnd { after_us: secs(1) }, NewTask::new(TaskId::FIRST, Json::default()));
            let made = |most| Definition::new(rule.clone(), Missed::UpTo(most), vec![task.clone(); tasks]);
            assert_eq!(
                made(most).unwrap_err().to_string(),
                format!("missed instants {most}: give 1 to {limit}")
            );
            assert!(made(limit).is_ok());
        }
    }

    #[test]
    fn a_definition_survives_its_json_and_a_newer_one_is_rejected() {
        let mut row = due(&every_10_s(Missed::UpTo(3)), Overlap::Skip, 1, 2).schedule;
        assert_eq!(
            row.definition.as_str(),
            "{\"version\":1,\"rule\":{\"every\":{\"every_us\":10000000,\"offset_us\":0}},\"missed\":{\"up_to\":3},\
             \"task\":{\"id\":\"00000000-0000-0000-0000-000000000000\",\"kind\":\"default\",\"payload\":null,\
             \"priority\":0,\"key\":null,\"ordered\":false,\"unique\":null,\"on_conflict\":\"keep\",\
             \"not_before\":{\"after\":0},\"deadline\":null,\"policy\":{},\"weight\":1,\"tags\":[],\"edges\":[]}}"
        );
        assert_eq!(Definition::read(&row).unwrap(), every_10_s(Missed::UpTo(3)));
        row.definition = Json::new("{\"version\": 3, \"rule\": \"full moon\"}").unwrap();
        let error = Definition::read(&row).unwrap_err().to_string();
        assert!(error.contains("newer version (3, this one knows 2): upgrade"), "{error}");
        row.definition = Json::new("{\"version\": 1, \"rule\": \"full moon\"}").unwrap();
        assert!(Definition::read(&row).unwrap_err().to_string().contains("schedule \"s\" cannot be read"));
    }
}
