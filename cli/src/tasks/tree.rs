//! The graph around a task, for people: as many upstreams and downstreams as fit.

use std::collections::{HashMap, HashSet};

use interval_queue_documents::words;
use interval_queue_tasks::{Edge, Stored, TaskId, TaskQueue, name_in_flow};

use crate::exit::Failure;

/// Distance from the task.
const MAX_DEPTH: usize = 4;
/// Maximum per task, and on one side.
const MAX_NEIGHBOURS: usize = 10;
const MAX_TASKS: usize = 60;
/// A read returns at most as many.
const MAX_LISTED_NEIGHBOURS: usize = 100;

#[derive(Clone, Copy)]
enum Side {
    Up,
    Down,
}

impl Side {
    fn of(self, stored: &Stored) -> Vec<(TaskId, &Edge)> {
        match self {
            Self::Up => stored.upstreams.iter().map(|edge| (edge.up, edge)).collect(),
            Self::Down => stored.downstreams.iter().map(|edge| (edge.down, edge)).collect(),
        }
    }
}

/// Empty if the task has no edges.
pub(super) async fn around(queue: &TaskQueue, top: &Stored) -> Result<String, Failure> {
    let mut page = String::new();
    for (side, title) in [(Side::Up, "waits for"), (Side::Down, "waited for by")] {
        if side.of(top).is_empty() {
            continue;
        }
        let mut tree = Tree {
            side,
            found: find(queue, top, side).await?,
            drawn: HashSet::from([top.task.id]),
            lines: vec![],
        };
        tree.draw(top, "", MAX_DEPTH);
        page += &format!("\n{title}\n{}\n", tree.lines.join("\n"));
    }
    Ok(page)
}

/// One level per read.
async fn find(queue: &TaskQueue, top: &Stored, side: Side) -> Result<HashMap<TaskId, Stored>, Failure> {
    let mut found: HashMap<TaskId, Stored> = HashMap::new();
    let mut front = vec![top.clone()];
    for _ in 0..MAX_DEPTH {
        let near = front.iter().flat_map(|stored| side.of(stored).into_iter().take(MAX_NEIGHBOURS));
        let mut ids: Vec<TaskId> = near.map(|(id, _)| id).filter(|id| !found.contains_key(id)).collect();
        ids.sort();
        ids.dedup();
        ids.truncate(MAX_TASKS.saturating_sub(found.len()));
        if ids.is_empty() {
            break;
        }
        front = queue.tasks(ids).await?;
        found.extend(front.iter().map(|stored| (stored.task.id, stored.clone())));
    }
    Ok(found)
}

struct Tree {
    side: Side,
    found: HashMap<TaskId, Stored>,
    /// Tasks that already have a line.
    drawn: HashSet<TaskId>,
    lines: Vec<String>,
}

impl Tree {
    fn draw(&mut self, of: &Stored, indent: &str, depth: usize) {
        let near = self.side.of(of);
        let more = near.len().saturating_sub(MAX_NEIGHBOURS);
        let shown = near.len() - more;
        for (at, (id, edge)) in near.into_iter().take(MAX_NEIGHBOURS).enumerate() {
            let is_last = at + 1 == shown && more == 0;
            let (branch, below) = if is_last { ("└─", "   ") } else { ("├─", "│  ") };
            let found = self.found.get(&id).cloned();
            let goes_on = found.as_ref().is_some_and(|stored| !self.side.of(stored).is_empty());
            let is_new = self.drawn.insert(id);
            let rest = match (goes_on, is_new) {
                (true, false) => ", as above",
                (true, true) if depth == 1 => " …",
                _ => "",
            };
            self.lines.push(format!("{indent}{branch} {}{rest}", line(id, found.as_ref(), edge)));
            if let Some(stored) = found.filter(|_| goes_on && is_new && depth > 1) {
                self.draw(&stored, &format!("{indent}{below}"), depth - 1);
            }
        }
        if more > 0 {
            let at_least = if more + MAX_NEIGHBOURS == MAX_LISTED_NEIGHBOURS { "at least " } else { "" };
            self.lines.push(format!("{indent}└─ and {at_least}{more} more"));
        }
    }
}

/// By its name in its flow, or by its kind.
fn line(id: TaskId, found: Option<&Stored>, edge: &Edge) -> String {
    let Some(Stored { task, .. }) = found else { return format!("{id}") };
    let name = words::line(name_in_flow(task).unwrap_or(task.kind.as_str()));
    let input = edge.name.as_ref().filter(|input| Some(input.as_str()) != name_in_flow(task));
    let input = input.map(|input| format!(", input {:?}", input.as_str())).unwrap_or_default();
    let failing = match edge.on_failure.as_str() {
        "cancel" => String::new(),
        other => format!(", if it fails: {other}"),
    };
    format!("{name}  {}  {id}{input}{failing}", task.state)
}
