//! Crowds of shards and long lines of jobs: what runs once, however often the rest is repeated.

use std::time::Duration;

use crate::{
    contender::StateKind,
    crowd, long_line,
    report::{Crowd, LongLine},
};

/// What of them was asked for, with what was found.
#[derive(Debug)]
pub(crate) struct Masses {
    cases: Vec<Case>,
    pub(crate) crowds: Vec<Crowd>,
    pub(crate) lines: Vec<LongLine>,
}

#[derive(Debug)]
enum Case {
    Crowd(crowd::Case),
    Line(long_line::Case),
}

impl Masses {
    /// All there are.
    pub(crate) fn new(quick: bool) -> Self {
        let crowds = crowd::cases(quick).into_iter().map(Case::Crowd);
        let cases = crowds.chain(long_line::cases(quick).into_iter().map(Case::Line)).collect();
        Self { cases, crowds: Vec::new(), lines: Vec::new() }
    }

    /// Their names, with the state of each.
    pub(crate) fn names(&self) -> impl Iterator<Item = (String, StateKind)> {
        self.cases.iter().map(|case| (case.name(), case.kind()))
    }

    /// Leaves those out that are not wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&str, StateKind) -> bool) {
        self.cases.retain(|case| is_wanted(&case.name(), case.kind()));
    }

    /// About how long they run.
    pub(crate) fn takes(&self) -> Duration {
        self.cases.iter().map(Case::takes).sum()
    }

    /// Runs each of them, after telling its name and about how long it runs.
    pub(crate) fn run(&mut self, mut tell: impl FnMut(&str, Duration)) {
        for case in &self.cases {
            tell(&case.name(), case.takes());
            match case {
                Case::Crowd(case) => self.crowds.extend(crowd::crowds([case])),
                Case::Line(case) => self.lines.extend(long_line::long_lines([case])),
            }
        }
    }
}

impl Case {
    fn name(&self) -> String {
        match self {
            Self::Crowd(case) => case.name(),
            Self::Line(case) => case.name(),
        }
    }

    fn kind(&self) -> StateKind {
        match self {
            Self::Crowd(case) => case.kind,
            Self::Line(case) => case.kind,
        }
    }

    fn takes(&self) -> Duration {
        match self {
            Self::Crowd(case) => case.takes(),
            Self::Line(case) => case.takes(),
        }
    }
}
