//! Concurrent tasks: all of them, with or without stopping at a failure, or the first that succeeds.
//!
//! Each task is given an [`Abort`] below the caller's and is awaited to its end: an abort asks a task to end
//! ([`Abort::run_until_aborted`]) and does not drop it, so its usage and results can be counted. Tasks run within the
//! caller's own task; dropping the future drops them.
//!
//! | | no tasks | one fails | all fail | the caller is aborted |
//! |---|---|---|---|---|
//! | [`try_join_all`] | an empty list | the others are aborted, pending ones never start: [`PartialFailure`] | the same | [`PartialFailure`], unless all succeed anyway |
//! | [`join_all`] | an empty list | its error is at its index | the same | each task is started and handles the abort itself |
//! | [`first_success`] | an empty [`PartialFailure`] | the others continue | [`PartialFailure`] | [`PartialFailure`], unless one succeeds anyway |
//!
//! Not here: child runs, branches, usage.

use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use crate::tasks::cancel::{Abort, Cancelled};

/// How many tasks run at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConcurrencyLimit {
    /// All of them.
    #[default]
    All,
    /// At most this many; the others start, in order, as these end.
    AtMost(NonZeroUsize),
}

/// A group of tasks of which not enough succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialFailure<T, E> {
    /// Values of the tasks that succeeded, with their indices.
    pub succeeded: Vec<(usize, T)>,
    /// Errors with their indices, in the order in which the tasks failed.
    pub failed: Vec<(usize, E)>,
    /// Number of tasks that were never started.
    pub skipped: usize,
    /// Why the caller was aborted meanwhile, if it was.
    pub cancelled: Option<Cancelled>,
}

impl<T, E: fmt::Display> fmt::Display for PartialFailure<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = self.succeeded.len() + self.failed.len() + self.skipped;
        write!(f, "{} of {of} succeeded", self.succeeded.len())?;
        if let Some((place, error)) = self.failed.first() {
            write!(f, "; number {place} failed first: {error}")?;
        }
        Ok(())
    }
}

impl<T: fmt::Debug, E: fmt::Debug + fmt::Display> std::error::Error for PartialFailure<T, E> {}

/// Runs all tasks and returns their values in order. The first failure aborts the others.
///
/// ```
/// use contexture_runs::{Abort, ConcurrencyLimit, parallel};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let tasks = [1, 2, 3].map(|n| move |_abort: Abort| async move { Ok::<_, String>(n * n) });
/// let squares = parallel::try_join_all(&Abort::new(), ConcurrencyLimit::All, tasks).await;
/// assert_eq!(squares, Ok(vec![1, 4, 9]));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// [`PartialFailure`] if one fails.
pub async fn try_join_all<T, E, F, Fut>(
    abort: &Abort,
    limit: ConcurrencyLimit,
    tasks: impl IntoIterator<Item = F>,
) -> Result<Vec<T>, PartialFailure<T, E>>
where
    F: FnOnce(Abort) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let ended = run_tasks(abort, limit, tasks, |result| match result {
        Ok(_) => GroupAction::Continue,
        Err(_) => GroupAction::Abort("another of the parallel tasks failed"),
    });
    let mut ended = ended.await;
    if ended.failed.is_empty() && ended.skipped == 0 {
        ended.succeeded.sort_by_key(|(place, _)| *place);
        return Ok(ended
            .succeeded
            .into_iter()
            .map(|(_, value)| value)
            .collect());
    }
    Err(ended.into_partial_failure(abort))
}

/// Runs all tasks and returns each result, in order. A failure aborts nothing.
pub async fn join_all<T, E, F, Fut>(
    abort: &Abort,
    limit: ConcurrencyLimit,
    tasks: impl IntoIterator<Item = F>,
) -> Vec<Result<T, E>>
where
    F: FnOnce(Abort) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let ended = run_tasks(abort, limit, tasks, |_| GroupAction::Continue).await;
    let succeeded = ended
        .succeeded
        .into_iter()
        .map(|(place, value)| (place, Ok(value)));
    let failed = ended
        .failed
        .into_iter()
        .map(|(place, error)| (place, Err(error)));
    let mut all: Vec<(usize, Result<T, E>)> = succeeded.chain(failed).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Runs tasks until one succeeds, and returns its index and value. The others are aborted; pending ones never start.
///
/// # Errors
/// [`PartialFailure`] if none succeeds.
pub async fn first_success<T, E, F, Fut>(
    abort: &Abort,
    limit: ConcurrencyLimit,
    tasks: impl IntoIterator<Item = F>,
) -> Result<(usize, T), PartialFailure<T, E>>
where
    F: FnOnce(Abort) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let ended = run_tasks(abort, limit, tasks, |result| match result {
        Ok(_) => GroupAction::Abort("another of the racing tasks was first"),
        Err(_) => GroupAction::Continue,
    });
    let mut ended = ended.await;
    if ended.succeeded.is_empty() {
        return Err(ended.into_partial_failure(abort));
    }
    // In the order in which they ended, so the first is the winner; later successes are dropped.
    Ok(ended.succeeded.swap_remove(0))
}

/// Whether the other tasks continue.
enum GroupAction {
    Continue,
    Abort(&'static str),
}

/// Results of the tasks, in the order in which they ended.
struct TaskResults<T, E> {
    succeeded: Vec<(usize, T)>,
    failed: Vec<(usize, E)>,
    skipped: usize,
}

impl<T, E> TaskResults<T, E> {
    fn into_partial_failure(self, abort: &Abort) -> PartialFailure<T, E> {
        PartialFailure {
            succeeded: self.succeeded,
            failed: self.failed,
            skipped: self.skipped,
            cancelled: abort.reason(),
        }
    }
}

/// Runs tasks up to the limit at a time; `judge` decides after each whether the others are aborted.
async fn run_tasks<T, E, F, Fut>(
    abort: &Abort,
    limit: ConcurrencyLimit,
    tasks: impl IntoIterator<Item = F>,
    judge: impl Fn(&Result<T, E>) -> GroupAction,
) -> TaskResults<T, E>
where
    F: FnOnce(Abort) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut waiting = tasks.into_iter().enumerate();
    // An abort of its own: the tasks can be aborted without the caller.
    let group = abort.child();
    let begin = |(place, task): (usize, F)| {
        let work = task(group.child());
        async move { (place, work.await) }
    };
    let limit = match limit {
        ConcurrencyLimit::All => usize::MAX,
        ConcurrencyLimit::AtMost(limit) => limit.get(),
    };
    let mut running: FuturesUnordered<_> = waiting.by_ref().take(limit).map(begin).collect();
    let mut ended = TaskResults {
        succeeded: Vec::new(),
        failed: Vec::new(),
        skipped: 0,
    };
    // Running tasks are awaited after an abort, not dropped: each ends when it can, and its result is reported.
    let mut over = false;
    while let Some((place, result)) = running.next().await {
        if let (false, GroupAction::Abort(reason)) = (over, judge(&result)) {
            over = true;
            group.abort(reason);
            // Counting also consumes them, so none is started below.
            ended.skipped = waiting.by_ref().count();
        }
        match result {
            Ok(value) => ended.succeeded.push((place, value)),
            Err(error) => ended.failed.push((place, error)),
        }
        if let Some(next) = waiting.next() {
            running.push(begin(next));
        }
    }
    ended
}
