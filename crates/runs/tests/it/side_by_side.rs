//! Work side by side: what becomes of each, and of those that never began.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::time::Duration;

use contexture_runs::parallel::{first_success, join_all, try_join_all};
use contexture_runs::{Abort, Cancelled, ConcurrencyLimit};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Failure {
    Own(&'static str),
    Cancelled(String),
}

impl From<Cancelled> for Failure {
    fn from(cancelled: Cancelled) -> Self {
        Self::Cancelled(cancelled.reason.to_string())
    }
}

#[derive(Clone, Copy)]
struct Job {
    seconds: u64,
    ends: Result<u32, &'static str>,
}

fn ok(seconds: u64, value: u32) -> Job {
    let ends = Ok(value);
    Job { seconds, ends }
}

fn fails(seconds: u64, reason: &'static str) -> Job {
    let ends = Err(reason);
    Job { seconds, ends }
}

/// What began and ended, in order.
type Log = RefCell<Vec<String>>;

fn tasks<'l>(
    log: &'l Log,
    jobs: &'l [Job],
) -> impl Iterator<
    Item = impl FnOnce(Abort) -> std::pin::Pin<Box<dyn Future<Output = Result<u32, Failure>> + 'l>>,
> {
    jobs.iter().enumerate().map(move |(place, job)| {
        move |abort: Abort| -> std::pin::Pin<Box<dyn Future<Output = Result<u32, Failure>> + 'l>> {
            Box::pin(async move {
                log.borrow_mut().push(format!("{place} begins"));
                let slept = abort
                    .run_until_aborted(tokio::time::sleep(Duration::from_secs(job.seconds)))
                    .await;
                log.borrow_mut().push(format!("{place} ends"));
                slept?;
                job.ends.map_err(Failure::Own)
            })
        }
    })
}

fn two() -> ConcurrencyLimit {
    ConcurrencyLimit::AtMost(NonZeroUsize::new(2).unwrap())
}

const SIBLING: &str = "another of the parallel tasks failed";

#[tokio::test(start_paused = true)]
async fn all_gives_values_in_order_and_keeps_to_its_width() {
    let (log, abort) = (Log::default(), Abort::new());
    let jobs = [ok(3, 10), ok(1, 11), ok(1, 12), ok(1, 13)];
    let start = tokio::time::Instant::now();
    assert_eq!(
        try_join_all(&abort, two(), tasks(&log, &jobs)).await,
        Ok(vec![10, 11, 12, 13])
    );
    assert_eq!(start.elapsed().as_secs(), 3);
    let log = log.into_inner().join(", ");
    let expected = "0 begins, 1 begins, 1 ends, 2 begins, 2 ends, 3 begins";
    assert!(log.starts_with(expected), "{log}");
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_ends_the_others_and_all_are_awaited() {
    let (log, abort) = (Log::default(), Abort::new());
    let jobs = [
        ok(1, 10),
        ok(9, 11),
        fails(1, "broken"),
        ok(1, 13),
        ok(1, 14),
    ];
    let width = ConcurrencyLimit::AtMost(NonZeroUsize::new(3).unwrap());
    let partial = try_join_all(&abort, width, tasks(&log, &jobs))
        .await
        .unwrap_err();
    assert_eq!(partial.succeeded, [(0, 10)]);
    let cut = Failure::Cancelled(SIBLING.to_owned());
    assert_eq!(partial.failed[0], (2, Failure::Own("broken")));
    assert!(partial.failed.contains(&(1, cut)));
    assert_eq!(
        (
            partial.succeeded.len() + partial.failed.len() + partial.skipped,
            partial.cancelled
        ),
        (5, None)
    );
    assert!(abort.reason().is_none());
    let log = log.into_inner();
    let count = |word: &str| log.iter().filter(|line| line.ends_with(word)).count();
    assert_eq!(count("begins"), count("ends"));
}

#[tokio::test(start_paused = true)]
async fn settle_says_what_became_of_each() {
    let (log, abort) = (Log::default(), Abort::new());
    let jobs = [fails(2, "late"), ok(1, 11), fails(1, "soon")];
    let settled = join_all(&abort, two(), tasks(&log, &jobs)).await;
    assert_eq!(
        settled,
        [Err(Failure::Own("late")), Ok(11), Err(Failure::Own("soon"))]
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_success_wins_the_race() {
    let (log, abort) = (Log::default(), Abort::new());
    let jobs = [ok(5, 10), fails(1, "broken"), ok(2, 12), ok(3, 13)];
    let start = tokio::time::Instant::now();
    assert_eq!(
        first_success(&abort, two(), tasks(&log, &jobs)).await,
        Ok((2, 12))
    );
    assert_eq!(start.elapsed().as_secs(), 3);
    let log = log.into_inner();
    assert!(log.contains(&"0 ends".to_owned()) && !log.contains(&"3 begins".to_owned()));
    let none = Log::default();
    let lost = first_success(
        &abort,
        ConcurrencyLimit::All,
        tasks(&none, &[fails(2, "b"), fails(1, "a")]),
    )
    .await
    .unwrap_err();
    assert_eq!(
        lost.failed,
        [(1, Failure::Own("a")), (0, Failure::Own("b"))]
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_to_do_is_done_at_once() {
    let (log, abort) = (Log::default(), Abort::new());
    assert_eq!(
        try_join_all(&abort, ConcurrencyLimit::All, tasks(&log, &[])).await,
        Ok(vec![])
    );
    assert_eq!(join_all(&abort, two(), tasks(&log, &[])).await, []);
    let lost = first_success(&abort, two(), tasks(&log, &[]))
        .await
        .unwrap_err();
    assert!(lost.succeeded.is_empty() && lost.failed.is_empty() && lost.skipped == 0);
}

#[tokio::test(start_paused = true)]
async fn an_abort_from_above_ends_every_task_and_is_told() {
    let (log, abort) = (Log::default(), Abort::new());
    let jobs = [ok(9, 10), ok(9, 11), ok(9, 12)];
    let (partial, ()) = tokio::join!(try_join_all(&abort, two(), tasks(&log, &jobs)), async {
        abort.abort("the user left");
    });
    let partial = partial.unwrap_err();
    assert_eq!(partial.cancelled, abort.reason());
    assert_eq!(
        partial.failed[0].1,
        Failure::Cancelled("the user left".to_owned())
    );
    let settled = join_all(&abort, two(), tasks(&log, &jobs)).await;
    assert_eq!(
        settled,
        vec![Err(Failure::Cancelled("the user left".to_owned())); 3]
    );
}
