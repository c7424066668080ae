//! All that is measured.

use std::rc::Rc;

use crate::{
    case::{Case, LARGE, SMALL, What},
    place::{Kind, Setting},
    task_contender::{Contender, PROCESSES},
    task_peers::{Installed, Peer},
};

/// How many are added at once.
const ADDED: [usize; 2] = [1, 100];
/// How many a step has.
const STEPS: [usize; 3] = [1, 10, 100];
/// How many jobs a worker has that runs what was added before: the default, and more.
const JOBS: [usize; 2] = [10, 100];
/// How many it has that adds, too.
const STEADY: [usize; 3] = [1, 4, 16];

/// The cases of these settings, ours before others in each part.
pub(crate) fn cases(settings: &[Setting], with_peers: bool, only: Option<&str>) -> Vec<Case> {
    let peers = if with_peers { Peer::installed(settings) } else { Vec::new() };
    let peers: Vec<Rc<Installed>> = peers.into_iter().map(Rc::new).collect();
    let mut cases = Vec::new();
    for &setting in settings {
        let able = peers.iter().filter(|peer| peer.can(setting));
        let able = able.flat_map(|peer| peer.settings().map(|number| Contender::Peer(peer.clone(), number)));
        let able: Vec<Contender> = able.collect();
        cases.extend(all(setting.kind, &able).into_iter().map(|what| Case::new(setting, what)));
    }
    cases.retain(|case| case.what.is_durable() || !case.setting.is_full);
    cases.retain(|case| only.is_none_or(|only| has(&name(case), only)));
    cases
}

fn all(kind: Kind, peers: &[Contender]) -> Vec<What> {
    let mut all = Vec::new();
    let sizes = [SMALL, LARGE].into_iter().flat_map(|size| ADDED.map(|batch| (PROCESSES, batch, size)));
    // Processes wait for each other where a file has one writer.
    let alone = (kind == Kind::Sqlite).then_some((1, 1, SMALL));
    for (processes, batch, size) in sizes.chain(alone) {
        // How a peer runs tasks makes no difference to adding.
        let is_able = |peer: &&Contender| matches!(peer, Contender::Peer(peer, 0) if peer.can_add(batch));
        let adders = [Contender::Worker].into_iter().chain(peers.iter().filter(is_able).cloned());
        for contender in adders {
            let processes = contender.at_most(processes);
            let what = What::Adds { contender, processes, batch, size };
            if !all.iter().any(|other: &What| other.labels() == what.labels()) {
                all.push(what);
            }
        }
    }
    let burn = |contender: &Contender, batch, size| What::Burn { contender: contender.clone(), batch, size };
    all.extend(STEPS.map(|batch| burn(&Contender::Steps, batch, SMALL)));
    all.extend(JOBS.map(|batch| burn(&Contender::Worker, batch, SMALL)));
    all.extend(peers.iter().map(|peer| burn(peer, 1, SMALL)));
    all.push(burn(&Contender::Worker, JOBS[1], LARGE));
    all.extend(peers.iter().map(|peer| burn(peer, 1, LARGE)));
    let is_best =
        |peer: &&Contender| matches!(peer, Contender::Peer(peer, setting) if peer.is_best(*setting));
    let best = || peers.iter().filter(is_best).cloned();
    all.extend(STEADY.map(|jobs| What::Steady { contender: Contender::Worker, jobs }));
    all.extend(best().map(|contender| What::Steady { contender, jobs: 1 }));
    let contenders = [Contender::Worker].into_iter().chain(best());
    all.extend(contenders.map(|contender| What::OpenLoop { contender }));
    all.extend([What::Degraded, What::Backlog, What::Killed]);
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
