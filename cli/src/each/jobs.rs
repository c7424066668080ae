//! The number of commands that may run at once.

use rustix::process::{Resource, getrlimit};

use super::{each_args::Each, output::Grouping};
use crate::exit::report;

const DEFAULT_JOBS: usize = 64;
/// Used by the store, the standard streams and starting commands.
const RESERVED_FILES: u64 = 40;

/// Limited by `--jobs` and the limit of open files.
pub(crate) fn most_at_once(each: &Each) -> usize {
    let wanted = each.jobs.map_or(DEFAULT_JOBS, usize::from);
    let Some(files) = getrlimit(Resource::Nofile).current else { return wanted };
    let allowed = allowed(files, each.grouping());
    if each.jobs.is_some() && allowed < wanted {
        report(&format!(
            "--jobs {wanted} is more than {files} open files allow: {allowed} at once; `ulimit -n` raises it"
        ));
    }
    wanted.min(allowed)
}

fn allowed(files: u64, grouping: Grouping) -> usize {
    // Per command: a pipe and a file for each of stdout and stderr, a process handle, and one
    // spare.
    let each = if grouping == Grouping::None { 2 } else { 6 };
    usize::try_from(files.saturating_sub(RESERVED_FILES) / each).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_limits_allow_the_default() {
        assert!(allowed(1024, Grouping::AsTheyEnd) >= DEFAULT_JOBS);
        assert!(allowed(256, Grouping::None) >= DEFAULT_JOBS);
        assert_eq!(allowed(3, Grouping::AsTheyEnd), 1);
    }
}
