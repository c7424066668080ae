//! The policy of a kind, over that of the queue.

use interval_queue_tasks::{
    Context, ErrorKind, Kind, OnExisting, Policy, PolicyOverride, Settings, SettingsChange, State, Task,
    TaskError, TaskQueue, Worker,
};

use crate::common::{builder, finish, ms, secs, stored};

/// Handlers that fail, and check the policy of their run.
async fn fail_all(queue: &TaskQueue, attempts: [u32; 2]) {
    let handler = |most: u32| {
        move |context: Context, (): ()| async move {
            assert_eq!(context.policy().max_attempts, most);
            Err::<(), TaskError>("no".into())
        }
    };
    let worker = Worker::builder(queue).handler("a", handler(attempts[0])).handler("b", handler(attempts[1]));
    finish(worker).await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_has_its_own_attempts() {
    let policy = Policy::default().max_attempts(3).backoff(ms(1), ms(1));
    let own = PolicyOverride::default().max_attempts(2).timeout(secs(5));
    let queue = builder().policy(policy).kind_policy("b", own).connect("memory:").await.unwrap();
    let a = queue.add(Task::new("a", &())).await.unwrap().id();
    let b = queue.add(Task::new("b", &())).await.unwrap().id();
    fail_all(&queue, [3, 2]).await;
    let (a, b) = (stored(&queue, a).await.task, stored(&queue, b).await.task);
    assert_eq!((a.state, a.failures, b.state, b.failures), (State::Failed, 3, State::Failed, 2));
    let settings = queue.overview().await.unwrap().settings;
    assert_eq!(settings.policy_of(&b), Policy { max_attempts: 2, ..policy }.timeout(secs(5)));
}

#[tokio::test(start_paused = true)]
async fn the_policy_of_a_kind_changes_for_all_processes() {
    let store = interval_queue_tasks::connect("memory:").await.unwrap();
    let own = |attempts| PolicyOverride::default().max_attempts(attempts);
    let queue = builder().kind_policy("a", own(2)).open(&store).await.unwrap();
    let kept = builder().kind_policy("a", own(3)).kind_policy("b", own(4)).open(&store).await.unwrap();
    assert_eq!(kept.overruled().unwrap().kinds.len(), 2);
    let replacing = builder().on_existing(OnExisting::Replace);
    let replaced = replacing.kind_policy("b", own(4)).open(&store).await.unwrap();
    let kinds = |settings: Settings| -> Vec<_> {
        settings.kinds.iter().map(|(kind, own)| (kind.to_string(), own.max_attempts.unwrap())).collect()
    };
    let settings = queue.overview().await.unwrap().settings;
    let copy = builder().settings(&settings).connect("memory:").await.unwrap();
    assert_eq!(copy.overview().await.unwrap().settings, settings);
    assert_eq!(kinds(settings), [("a".to_owned(), 2), ("b".to_owned(), 4)]);
    let change = [(Kind::new("a").unwrap(), PolicyOverride::default())].into();
    let settings = replaced.set(SettingsChange { kinds: change, ..SettingsChange::default() }).await.unwrap();
    assert_eq!(kinds(settings), [("b".to_owned(), 4)]);
    queue.delete().await.unwrap();
    assert_eq!(replaced.overview().await.unwrap().settings, Settings::default());
}

#[tokio::test(start_paused = true)]
async fn an_invalid_policy_of_a_kind_is_refused() {
    let own = PolicyOverride::default().max_attempts(0);
    for (kind, policy, says) in
        [("mail", own, "kind \"mail\": max attempts 0: give 1 to"), ("", own.max_attempts(1), "kind")]
    {
        let error = builder().kind_policy(kind, policy).connect("memory:").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(says), "{error}");
    }
}
