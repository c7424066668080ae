//! Where the benchmark runs, and what else it runs.

use std::{fs, path::Path, process::Command, thread};

use crate::{report::Machine, state};

/// What is to be known of this machine. What cannot be found out is empty.
pub(crate) fn this() -> Machine {
    Machine {
        processor: field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
        cores: cores(),
        memory_gib: memory_gib().unwrap_or(0),
        system: system(),
        disk: state::disk().unwrap_or_default(),
    }
}

/// How many processors there are.
pub(crate) fn cores() -> u32 {
    thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// What a program says of its version: the first word of its output that begins with a digit, as in `v22.1.0`
/// or `v=7.0.15`. None: it cannot be run.
pub(crate) fn version(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace().map(|word| word.trim_start_matches(['v', '=']));
    words.into_iter().find(|word| word.starts_with(|first: char| first.is_ascii_digit())).map(str::to_owned)
}

/// For how long the processors of this machine have been busy, and how long they have been there, in ticks of
/// the kernel that count for all of them together.
pub(crate) fn busy() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(str::parse);
    // user, nice, system, idle, waiting for a disk, interrupts, soft interrupts, stolen by other machines
    let ticks: Vec<u64> = ticks.take(8).collect::<Result<_, _>>().ok()?;
    let all: u64 = ticks.iter().sum();
    Some((all - ticks.get(3)? - ticks.get(4)?, all))
}

/// The kind of file system on which `path` lies.
pub(crate) fn file_system(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (_, point, kind) = (words.next()?, words.next()?, words.next()?);
        path.starts_with(point).then(|| (point.len(), kind.to_owned()))
    });
    // The last one of the longest is on top.
    mounts.max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

fn system() -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let name = fs::read_to_string("/etc/os-release").ok().and_then(|text| {
        let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
        Some(name.trim_matches('"').to_owned())
    });
    let name = name.unwrap_or_else(|| std::env::consts::OS.into());
    format!("{name}, kernel {}", kernel.trim()).trim_end_matches(", kernel ").to_owned()
}

fn memory_gib() -> Option<u32> {
    let kib: f64 = field("/proc/meminfo", "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib / f64::from(1 << 20)).round() as u32)
}

/// The value of `name` in a file of lines `name : value`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let values = text.lines().filter_map(|line| line.split_once(':'));
    values.into_iter().find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim().to_owned())
}
