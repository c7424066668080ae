//! All that is measured.

use std::rc::Rc;

use crate::{
    case::{Case, What},
    place::{Kind, Setting},
    task_contender::Contender,
    task_peers::{Installed, Peer},
};

/// Bytes of a payload, usually and at most.
const SMALL: usize = 100;
const LARGE: usize = 4_000;
/// How many are added at once.
const ADDED: [usize; 2] = [1, 100];
/// How many a step has.
const STEPS: [usize; 3] = [1, 10, 100];
/// How many jobs a worker has that runs what was added before: the default, and more.
const JOBS: [usize; 2] = [10, 100];
/// How many it has that adds, too.
const STEADY: [usize; 3] = [1, 4, 16];

/// The kinds of stores that are wanted.
pub(crate) fn kinds(only: Option<&str>) -> Vec<Kind> {
    let is_named = |kind: &Kind| only.is_none_or(|only| has(kind.name(), only));
    let named: Vec<Kind> = Kind::ALL.into_iter().filter(is_named).collect();
    if named.is_empty() { Kind::ALL.to_vec() } else { named }
}

/// What is measured in these settings, ours before others in each part.
pub(crate) fn cases(settings: &[Setting], with_peers: bool, only: Option<&str>) -> Vec<Case> {
    let peers = if with_peers { Peer::installed(settings) } else { Vec::new() };
    let peers: Vec<Rc<Installed>> = peers.into_iter().map(Rc::new).collect();
    let mut cases = Vec::new();
    for &setting in settings {
        let able = peers.iter().filter(|peer| peer.can(setting));
        let able = able.flat_map(|peer| peer.settings().map(|number| Contender::Peer(peer.clone(), number)));
        let able: Vec<Contender> = able.collect();
        cases.extend(all(&able).into_iter().map(|what| Case::new(setting, what)));
    }
    cases.retain(|case| case.what.is_durable() || !case.setting.is_full);
    cases.retain(|case| only.is_none_or(|only| has(&name(case), only)));
    cases
}

fn all(peers: &[Contender]) -> Vec<What> {
    let mut all = Vec::new();
    for (size, batch) in [SMALL, LARGE].into_iter().flat_map(|size| ADDED.map(|batch| (size, batch))) {
        // How a peer runs tasks makes no difference to adding.
        let is_able = |peer: &&Contender| matches!(peer, Contender::Peer(peer, 0) if peer.can_add(batch));
        let adders = peers.iter().filter(is_able).cloned();
        let adders = [Contender::Worker].into_iter().chain(adders);
        all.extend(adders.map(|contender| What::Adds { contender, batch, size }));
    }
    let burn = |contender: &Contender, batch, size| What::Burn { contender: contender.clone(), batch, size };
    all.extend(STEPS.map(|batch| burn(&Contender::Steps, batch, SMALL)));
    all.extend(JOBS.map(|batch| burn(&Contender::Worker, batch, SMALL)));
    all.extend(peers.iter().map(|peer| burn(peer, 1, SMALL)));
    all.push(burn(&Contender::Worker, JOBS[1], LARGE));
    all.extend(peers.iter().map(|peer| burn(peer, 1, LARGE)));
    all.extend(STEADY.map(|jobs| What::Steady { jobs }));
    all.extend([What::OpenLoop, What::Degraded, What::Backlog, What::Killed]);
    all
}

/// Whether a name has this text in it, in whatever case.
fn has(name: &str, text: &str) -> bool {
    name.to_lowercase().contains(&text.to_lowercase())
}

/// All that it may be called.
fn name(case: &Case) -> String {
    let labels: Vec<String> = case.what.labels().into_iter().map(|(_, label)| label).collect();
    format!(
        "{} {} {} {}",
        case.setting.kind.name(),
        case.what.part(),
        case.setting.durability(),
        labels.join(" ")
    )
}
