//! What every state in a file promises, as tests: [`file_promises!`](crate::file_promises) makes them.
#![allow(missing_docs, reason = "the name of each is what is promised")]

use std::{fs, os::unix::fs::symlink, time::Duration};

use interval_queue_contract::{Change, Command, Memory, SharedState, StateErrorKind};
use tokio::time;

use super::{InFile, Taker, all_files, assert_error, last_ticket, look, open, open_queue, queue, state_in};

/// Tests of what every state in a file promises, for this kind of state.
#[macro_export]
macro_rules! file_promises {
    ($state:ty) => {
        $crate::file_promises! { @async $state:
            a_path_that_cannot_be_used_is_named_and_nothing_is_made,
            all_names_of_a_file_lead_to_the_same_one_whether_or_not_it_is_there,
            an_unusable_record_stays_as_it_is_and_harms_no_other_queue,
            a_directory_that_goes_away_is_missed_and_one_that_comes_back_is_used,
            a_command_waits_while_the_runtime_goes_on_and_in_the_end_gives_up_and_heals,
            commands_that_wait_for_each_other_do_not_wait_one_time_out_each,
            a_command_nobody_waits_for_any_more_leaves_the_file_free,
        }

        #[test]
        fn processes_that_open_and_work_at_once_get_every_ticket_once() {
            $crate::files::processes_get_every_ticket_once::<$state>(
                "processes_that_open_and_work_at_once_get_every_ticket_once",
            );
        }

        #[test]
        fn a_process_killed_at_any_moment_leaves_the_file_whole() {
            $crate::files::a_killed_process_leaves_it_whole::<$state>(
                "a_process_killed_at_any_moment_leaves_the_file_whole",
            );
        }
    };
    (@async $state:ty: $($promise:ident,)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                $crate::files::$promise::<$state>().await;
            }
        )*
    };
}

pub async fn a_path_that_cannot_be_used_is_named_and_nothing_is_made<S: InFile>() {
    use StateErrorKind::{Invalid, NotFound};
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    fs::write(base.join("file"), "kept").unwrap();
    symlink("loop_b", base.join("loop_a")).unwrap();
    symlink("loop_a", base.join("loop_b")).unwrap();
    fs::write(base.join("a_name"), "kept").unwrap();
    fs::hard_link(base.join("a_name"), base.join("another_name")).unwrap();
    let before = all_files(&base);
    let long = "x".repeat(300);
    for (path, kind, says) in [
        ("missing/state", NotFound, "does not exist: create it"),
        ("", Invalid, "is a directory: give the path of a file"),
        ("..", Invalid, "is a directory"),
        ("missing/..", Invalid, "is not a regular file"),
        ("missing/", Invalid, "names a directory, and there is none: create it"),
        ("missing/.", Invalid, "names a directory, and there is none: create it"),
        ("file/", Invalid, "give the path of a file"),
        ("file/state", Invalid, "give the path of a file"),
        (&long, Invalid, "give the path of a file"),
        ("/dev/null", Invalid, "is not a regular file: give the path of one, which need not be there"),
        ("another_name", Invalid, "has several names (hard links)"),
        ("loop_a", StateErrorKind::Unreachable, "loop_a"),
    ] {
        let path = base.join(path);
        let error = open::<S>(&path).await.unwrap_err();
        assert_error(&error, kind, &path, says);
    }
    assert_eq!(all_files(&base), before);
}

pub async fn all_names_of_a_file_lead_to_the_same_one_whether_or_not_it_is_there<S: InFile>() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    fs::create_dir(base.join("real")).unwrap();
    fs::create_dir(base.join("other")).unwrap();
    symlink("other/second", base.join("link")).unwrap();
    symlink("../real/state", base.join("other/second")).unwrap();
    symlink("real", base.join("to_directory")).unwrap();
    let mut states = Vec::new();
    for name in ["link", "to_directory/state", "other/../real/./state"] {
        // Two are open before the file is there, and one opens it later.
        if states.len() == 2 {
            open_queue(&states[0]).await.unwrap();
        }
        let state = open::<S>(base.join(name)).await.unwrap();
        assert_eq!(S::path(&state), base.join("real/state"));
        states.push(state);
    }
    for (ticket, state) in (1..).zip(&states) {
        assert_eq!(Taker::new(state, &format!("shard {ticket}")).take().await.unwrap(), ticket);
    }
}

pub async fn an_unusable_record_stays_as_it_is_and_harms_no_other_queue<S: InFile>() {
    use StateErrorKind::{Foreign, NewerVersion};
    for (record, kind, says) in [
        (r#"{"version": 3,  "lanes": [ 1 ]}"#, NewerVersion, "newer version"),
        (r#"{ "colour": "red" }"#, Foreign, "cannot be used"),
        ("[ ]", Foreign, "cannot be used"),
        ("null", Foreign, "cannot be used"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = state_in::<S>(directory.path()).await;
        S::plant(&path, record);
        let before = S::records(&path);
        for command in [Command::Read, Command::Change(Change::Pause, Memory::default())] {
            let error = state.apply(&queue("odd"), command).await.unwrap_err();
            assert_error(&error, kind, &path, says);
            assert!(error.to_string().contains("\"odd\""), "{error}");
            assert!(std::error::Error::source(&error).is_some(), "the cause says more");
        }
        assert_eq!(S::records(&path), before);
        Taker::new(&state, "shard").take().await.unwrap();
        assert_eq!(look(&state).await.unwrap().unwrap().record.interval().get(), 250_000);
        assert!(S::records(&path).contains(record), "carried over as it is");
        assert_eq!(state.queues().await.unwrap(), [queue("mail"), queue("odd")]);
    }
}

pub async fn a_directory_that_goes_away_is_missed_and_one_that_comes_back_is_used<S: InFile>() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().canonicalize().unwrap().join("inner");
    fs::create_dir(&inner).unwrap();
    let (state, _) = state_in::<S>(&inner).await;
    fs::remove_dir_all(&inner).unwrap();
    for error in [open_queue(&state).await.unwrap_err(), look(&state).await.unwrap_err()] {
        assert_error(&error, StateErrorKind::NotFound, &inner, "does not exist");
    }
    fs::create_dir(&inner).unwrap();
    assert_eq!(look(&state).await.unwrap(), None);
    open_queue(&state).await.unwrap();
    assert!(look(&state).await.unwrap().is_some());
}

pub async fn a_command_waits_while_the_runtime_goes_on_and_in_the_end_gives_up_and_heals<S: InFile>() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in::<S>(directory.path()).await;
    let state = S::open_at(&path, Duration::from_millis(500)).await.unwrap();
    let mut taker = Taker::new(&state, "shard");
    // Until quick commands may be carried out on the thread that gives them, the only one of this runtime.
    for _ in 0..50 {
        taker.take().await.unwrap();
    }
    let held = S::hold(&path);
    let before = S::records(&path);
    let taking = tokio::spawn(async move { (taker.take().await.unwrap_err(), taker) });
    let mut naps = 0;
    while !taking.is_finished() {
        time::sleep(Duration::from_millis(5)).await;
        naps += 1;
    }
    assert!(naps > 5, "{naps}");
    let (error, mut taker) = taking.await.unwrap();
    assert_error(&error, StateErrorKind::Unreachable, &path, "held");
    assert!(error.is_retryable() && error.to_string().contains("for 500ms"), "{error}");
    assert_eq!(S::records(&path), before);
    // Looks wait for nobody.
    assert_eq!(last_ticket(&state).await, 50);
    assert_eq!(state.queues().await.unwrap(), [queue("mail")]);

    let taking = tokio::spawn(async move { taker.take().await });
    time::sleep(Duration::from_millis(50)).await;
    drop(held);
    assert_eq!(taking.await.unwrap().unwrap(), 51, "what failed took nothing");
}

pub async fn commands_that_wait_for_each_other_do_not_wait_one_time_out_each<S: InFile>() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in::<S>(directory.path()).await;
    let timeout = Duration::from_millis(300);
    let state = S::open_at(&path, timeout).await.unwrap();
    let _held = S::hold(&path);
    let commands: Vec<_> = (0..200)
        .map(|n| {
            let mut taker = Taker::new(&state, &format!("shard {n}"));
            tokio::spawn(async move { taker.take().await.unwrap_err().kind() })
        })
        .collect();
    // One time-out each would be a minute.
    let all = async {
        for command in commands {
            assert_eq!(command.await.unwrap(), StateErrorKind::Unreachable);
        }
    };
    time::timeout(timeout * 100, all).await.unwrap();
}

pub async fn a_command_nobody_waits_for_any_more_leaves_the_file_free<S: InFile>() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in::<S>(directory.path()).await;
    for n in 0..100_u32 {
        let mut taker = Taker::new(&state, &format!("shard {n}"));
        let _ = time::timeout(Duration::from_micros(u64::from(n % 10) * 20), taker.take()).await;
    }
    let before = last_ticket(&state).await;
    assert!(Taker::new(&state, "last").take().await.unwrap() > before);
    drop(S::hold(&path));
}
