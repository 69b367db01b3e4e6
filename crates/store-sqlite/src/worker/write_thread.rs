//! The write thread: the only writer of a process, which commits waiting calls together.
//!
//! Calls queue up; the thread takes whatever waits, runs each call inside a savepoint of one
//! transaction, commits once and only then answers. A call whose future was dropped before its turn
//! is skipped; one dropped later is complete all the same. A call that fails leaves nothing and
//! does not disturb its neighbours, not even by a panic: that is an error like any other. The queue
//! is bounded in bytes. When nothing waits and something is left to be tidied up, it does that.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use contexture_store::{Error, StorageFault};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use crate::error::{RowError, from_sqlite};
use crate::worker::write_lock_queue::WriteLockQueue;

/// Calls and bytes that are committed together at most.
const BATCH_CALLS: usize = 1024;
const BATCH_BYTES: usize = 16 << 20;
/// What a call weighs besides its payload.
const CALL_BYTES: usize = 1024;

/// The queue's end that callers hold.
#[derive(Debug)]
pub(crate) struct WriteThread {
    /// `None` once closing.
    queue: Option<Sender<QueuedCall>>,
    waiting: Arc<AtomicUsize>,
    max_bytes: usize,
    thread: Option<JoinHandle<()>>,
    cleanup: CleanupFlag,
}

/// What to do while nothing waits; says whether more of it is left.
pub(crate) type IdleTask = fn(&Connection) -> Result<bool, RowError>;

/// Whether something is left to be tidied up. True when a database is opened: another process may
/// have died over it.
#[derive(Clone, Debug)]
pub(crate) struct CleanupFlag(Arc<AtomicBool>);

impl CleanupFlag {
    /// Something is left, once what runs now is committed.
    pub(crate) fn schedule_cleanup(&self) {
        self.0.store(true, Ordering::Release);
    }
}

struct QueuedCall {
    weight: QueuedBytes,
    scope: CallScope,
    run: CallWork,
}

/// Where a call runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallScope {
    /// With others in one transaction.
    Shared,
    /// Outside any transaction.
    Alone,
}

/// Bytes in the queue; they leave it when this is dropped.
struct QueuedBytes {
    bytes: usize,
    waiting: Arc<AtomicUsize>,
}

impl Drop for QueuedBytes {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl QueuedCall {
    /// What it carried is out of the queue before anybody hears of it.
    fn run_call(self, conn: Result<&Connection, Error>) -> Option<CompletedCall> {
        let Self { weight, run, .. } = self;
        let ran = run(conn);
        drop(weight);
        ran
    }

    fn refuse_call(self, error: Error) -> Option<CompletedCall> {
        self.run_call(Err(error))
    }
}

/// Runs, or is told why it cannot; `None`: nobody waits for it any more.
type CallWork = Box<dyn FnOnce(Result<&Connection, Error>) -> Option<CompletedCall> + Send>;

/// A call that ran and waits for the commit.
struct CompletedCall {
    /// Whether it succeeded; otherwise its changes are taken back.
    succeeded: bool,
    /// Answers, with the commit's failure if it failed.
    answer: Box<dyn FnOnce(Option<Error>) + Send>,
}

impl WriteThread {
    /// Starts the thread.
    pub(crate) fn spawn_thread(
        conn: Connection,
        path: &Path,
        max_bytes: usize,
        busy_timeout: Duration,
        idle_task: IdleTask,
    ) -> std::io::Result<Self> {
        let cleanup = CleanupFlag(Arc::new(AtomicBool::new(true)));
        let idle_work = IdleWork {
            cleanup: cleanup.clone(),
            idle_task,
            failed: Cell::new(false),
        };
        let (queue, calls) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let path = path.to_owned();
        let thread = std::thread::Builder::new()
            .name("contexture-writer".to_owned())
            .spawn(move || {
                process_calls(
                    &conn,
                    &path,
                    &calls,
                    &idle_work,
                    WriteLockQueue::new(&path, busy_timeout),
                )
            })?;
        Ok(Self {
            queue: Some(queue),
            waiting,
            max_bytes,
            thread: Some(thread),
            cleanup,
        })
    }

    /// To say that something is left to be tidied up.
    pub(crate) fn cleanup_flag(&self) -> CleanupFlag {
        self.cleanup.clone()
    }

    /// Runs `f` in a transaction; `bytes` is what it carries.
    pub(crate) async fn run_in_transaction<T: Send + 'static>(
        &self,
        bytes: usize,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
        path: &Arc<PathBuf>,
    ) -> Result<T, Error> {
        self.enqueue_call(CallScope::Shared, bytes, f, path).await
    }

    /// Runs `f` outside any transaction, alone.
    pub(crate) async fn run_outside_transaction<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
        path: &Arc<PathBuf>,
    ) -> Result<T, Error> {
        self.enqueue_call(CallScope::Alone, 0, f, path).await
    }

    /// Counts bytes as waiting, or refuses them where the queue is full.
    fn reserve_bytes(&self, bytes: usize) -> Result<QueuedBytes, Error> {
        // Counted before it is compared: two callers at once cannot both find the last room. A
        // refusal drops the weight, which takes the bytes off again.
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let weight = QueuedBytes {
            bytes,
            waiting: Arc::clone(&self.waiting),
        };
        // A call heavier than the whole queue may still go alone.
        if before > 0 && before.saturating_add(bytes) > self.max_bytes {
            return Err(Error::Busy {
                why: format!("{before} bytes are waiting to be written"),
            });
        }
        Ok(weight)
    }

    async fn enqueue_call<T: Send + 'static>(
        &self,
        scope: CallScope,
        bytes: usize,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
        path: &Arc<PathBuf>,
    ) -> Result<T, Error> {
        let weight = self.reserve_bytes(bytes.saturating_add(CALL_BYTES))?;
        let (answer, answered) = oneshot::channel();
        let path = Arc::clone(path);
        let run = Box::new(move |conn: Result<&Connection, Error>| {
            // The caller gave up before its turn, and nothing was written yet: skipping it keeps a
            // queue of abandoned calls from delaying the living.
            if answer.is_closed() {
                return None;
            }
            let result = conn.and_then(|conn| catch_panic(conn, f, &path));
            Some(CompletedCall {
                succeeded: result.is_ok(),
                answer: Box::new(move |failure| {
                    // The caller may be gone; what was done stays done.
                    let _ = answer.send(failure.map_or(result, Err));
                }),
            })
        });
        let queue = self.queue.as_ref().ok_or(Error::Closed)?;
        queue
            .send(QueuedCall { weight, scope, run })
            .map_err(|_| Error::Closed)?;
        // The thread answers every call it takes; if it died, it may have died after a commit.
        let lost = |source| Error::OutcomeUnknown {
            source: Box::new(source),
        };
        answered.await.map_err(lost)?
    }
}

impl Drop for WriteThread {
    fn drop(&mut self) {
        // Closing the channel lets the thread finish what is queued and return; joining makes sure
        // that it was committed when the store is gone.
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writer thread had panicked");
        }
    }
}

/// Runs a call; a panic in it is an error, and what it wrote is taken back like any other's.
pub(crate) fn catch_panic<T>(
    conn: &Connection,
    f: impl FnOnce(&Connection) -> Result<T, RowError>,
    path: &Path,
) -> Result<T, Error> {
    // Unwind safety: what a panic leaves half done is in the savepoint, which is rolled back.
    match catch_unwind(AssertUnwindSafe(|| f(conn))) {
        Ok(result) => result.map_err(|fault| fault.into_error(path)),
        // What a panic says may be of what is stored. Where it was, its hook has told.
        Err(_) => {
            tracing::error!("a call to the store panicked");
            Err(Error::Storage {
                path: path.to_owned(),
                fault: StorageFault::Panicked,
                source: None,
            })
        }
    }
}

/// What the thread does while nothing waits.
struct IdleWork {
    cleanup: CleanupFlag,
    idle_task: IdleTask,
    failed: Cell<bool>,
}

impl IdleWork {
    /// One step, in a transaction of its own. What fails is tried again after the next call, or when
    /// the database is opened next.
    fn run_step(&self, conn: &Connection, lock_queue: &mut WriteLockQueue) {
        // Taken down before the step: a call that schedules a cleanup meanwhile raises it again and
        // is not lost.
        if !self.cleanup.0.swap(false, Ordering::Acquire) {
            return;
        }
        let step = || -> Result<bool, RowError> {
            lock_queue.begin_write(conn)?;
            let more = (self.idle_task)(conn)?;
            conn.execute_batch("COMMIT")?;
            Ok(more)
        };
        match catch_unwind(AssertUnwindSafe(step)) {
            Ok(Ok(true)) => self.cleanup.schedule_cleanup(),
            Ok(Ok(false)) => {}
            failed => {
                tracing::warn!(?failed, "what a deletion left is not tidied up");
                self.failed.set(true);
            }
        }
        if !conn.is_autocommit()
            && let Err(error) = conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "cannot roll back");
        }
    }

    /// After a call that went well, what failed before may do so too.
    fn retry_failed(&self) {
        if self.failed.take() {
            self.cleanup.schedule_cleanup();
        }
    }

    fn is_due(&self) -> bool {
        self.cleanup.0.load(Ordering::Acquire)
    }
}

fn process_calls(
    conn: &Connection,
    path: &Path,
    calls: &Receiver<QueuedCall>,
    idle_work: &IdleWork,
    mut lock_queue: WriteLockQueue,
) {
    loop {
        let first = match calls.try_recv() {
            Ok(call) => call,
            Err(TryRecvError::Disconnected) => return,
            // One step between two looks at the queue, so a call that comes meanwhile waits for one
            // step at most.
            Err(TryRecvError::Empty) if idle_work.is_due() => {
                idle_work.run_step(conn, &mut lock_queue);
                continue;
            }
            Err(TryRecvError::Empty) => match calls.recv() {
                Ok(call) => call,
                Err(_) => return,
            },
        };
        let mut bytes = first.weight.bytes;
        let mut next = Some(first);
        let mut batch = Vec::new();
        while let Some(call) = next.take() {
            // What runs outside a transaction (VACUUM, a checkpoint) must not overtake calls that
            // were queued before it, so these are committed first.
            if call.scope == CallScope::Alone {
                run_batch(conn, path, std::mem::take(&mut batch), &mut lock_queue);
                let ran = call.run_call(Ok(conn));
                send_answer(ran, None);
                break;
            }
            batch.push(call);
            // Whatever waits by now shares one commit; nobody waits for more calls to come. The
            // limits bound the log and the time until the first answer.
            if batch.len() < BATCH_CALLS && bytes < BATCH_BYTES {
                next = calls.try_recv().ok();
                bytes += next.as_ref().map_or(0, |call| call.weight.bytes);
            }
        }
        run_batch(conn, path, batch, &mut lock_queue);
        idle_work.retry_failed();
    }
}

/// Runs a batch: all calls in one transaction, one answer each.
fn run_batch(
    conn: &Connection,
    path: &Path,
    batch: Vec<QueuedCall>,
    lock_queue: &mut WriteLockQueue,
) {
    if batch.is_empty() {
        return;
    }
    let mut calls = batch.into_iter();
    if let Err(error) = lock_queue.begin_write(conn) {
        // Not even begun: nothing can have happened. Errors are not `Clone`, so each caller gets
        // one of its own.
        let code = error.sqlite_error().copied();
        for call in calls {
            let error = from_sqlite(clone_error(code, &error), path);
            send_answer(call.refuse_call(error), None);
        }
        return;
    }
    let mut ran = Vec::with_capacity(calls.len());
    for call in calls.by_ref() {
        ran.extend(run_in_savepoint(conn, path, call));
        if conn.is_autocommit() {
            // SQLite gave the whole transaction up: a full disk, an I/O error.
            break;
        }
    }
    // A batch in which every call failed wrote nothing that counts: rolling back spares the fsync.
    let end = end_transaction(conn, ran.iter().any(|ran| ran.succeeded));
    for ran in ran {
        let failure = end.as_ref().err().map(|end| end.for_caller(path));
        // A call that failed by itself keeps its own reason.
        let failure = failure.filter(|_| ran.succeeded);
        send_answer(Some(ran), failure);
    }
    for call in calls {
        send_answer(call.refuse_call(rolled_back()), None);
    }
}

/// Runs one call inside a savepoint.
fn run_in_savepoint(conn: &Connection, path: &Path, call: QueuedCall) -> Option<CompletedCall> {
    // A savepoint for each call: one that fails takes back its own rows and leaves those of its
    // neighbours.
    if let Err(error) = execute_savepoint(conn, "SAVEPOINT call") {
        return call.refuse_call(from_sqlite(error, path));
    }
    let ran = call.run_call(Ok(conn));
    // In autocommit mode SQLite has already rolled everything back, savepoints included; there is
    // nothing to return to.
    if !ran.as_ref().is_some_and(|ran| ran.succeeded) && !conn.is_autocommit() {
        let undone = execute_savepoint(conn, "ROLLBACK TO call");
        debug_assert!(undone.is_ok(), "{undone:?}");
    }
    if !conn.is_autocommit() {
        let released = execute_savepoint(conn, "RELEASE call");
        debug_assert!(released.is_ok(), "{released:?}");
    }
    ran
}

fn execute_savepoint(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}

/// Ends the transaction.
fn end_transaction(conn: &Connection, anything: bool) -> Result<(), CommitFailure> {
    if conn.is_autocommit() {
        return Err(CommitFailure::RolledBack);
    }
    let statement = if anything { "COMMIT" } else { "ROLLBACK" };
    let Err(error) = conn.execute_batch(statement) else {
        return Ok(());
    };
    if !conn.is_autocommit()
        && let Err(error) = conn.execute_batch("ROLLBACK")
    {
        tracing::error!(%error, "cannot roll back");
    }
    Err(CommitFailure::Refused(error))
}

fn send_answer(ran: Option<CompletedCall>, failure: Option<Error>) {
    if let Some(ran) = ran {
        (ran.answer)(failure);
    }
}

/// Why a batch was not committed.
enum CommitFailure {
    /// A neighbour's statement made SQLite give up the transaction.
    RolledBack,
    /// The commit itself failed.
    Refused(rusqlite::Error),
}

impl CommitFailure {
    fn for_caller(&self, path: &Path) -> Error {
        match self {
            Self::RolledBack => rolled_back(),
            Self::Refused(error) => {
                let code = error.sqlite_error().copied();
                match error.sqlite_error_code() {
                    // The commit may have reached the disk before the failure.
                    Some(ErrorCode::SystemIoFailure) => Error::OutcomeUnknown {
                        source: Box::new(clone_error(code, error)),
                    },
                    _ => from_sqlite(clone_error(code, error), path),
                }
            }
        }
    }
}

fn rolled_back() -> Error {
    Error::Busy {
        why: "a neighbouring write failed and took this one back with it".to_owned(),
    }
}

/// The same error once more.
fn clone_error(code: Option<rusqlite::ffi::Error>, error: &rusqlite::Error) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        code.unwrap_or_else(|| rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ERROR)),
        Some(error.to_string()),
    )
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    fn insert(conn: &Connection, n: u32) -> Result<u32, RowError> {
        conn.execute("INSERT INTO t VALUES (?)", [n])?;
        Ok(n)
    }

    fn stored(conn: &Connection) -> Vec<u32> {
        let mut statement = conn.prepare("SELECT n FROM t ORDER BY n").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// Calls that wait together are committed together; the one that fails after it has written
    /// takes only its own writing back, and one that nobody waits for is not run.
    #[tokio::test]
    async fn a_batch_keeps_its_good_calls() {
        let directory = tempfile::tempdir().unwrap();
        let path = Arc::new(directory.path().join("queue.db"));
        let conn = Connection::open(&*path).unwrap();
        conn.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)")
            .unwrap();
        let other = Connection::open(&*path).unwrap();
        let writer =
            WriteThread::spawn_thread(conn, &path, 1 << 20, Duration::ZERO, |_| Ok(false)).unwrap();
        let (go, gate) = channel::<()>();
        let mut first = Box::pin(writer.run_in_transaction(
            0,
            move |conn| {
                gate.recv().unwrap();
                insert(conn, 1)
            },
            &path,
        ));
        let mut waker = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut waker).is_pending());
        let fails = |n| {
            move |conn: &Connection| {
                insert(conn, n)?;
                Err::<u32, _>(RowError::Store(Error::Closed))
            }
        };
        let (a, b, mut c) = (
            writer.run_in_transaction(0, |conn| insert(conn, 2), &path),
            writer.run_in_transaction(0, fails(3), &path),
            Box::pin(writer.run_in_transaction(0, |conn| insert(conn, 4), &path)),
        );
        assert!(c.as_mut().poll(&mut waker).is_pending());
        drop(c);
        let twice = writer.run_in_transaction(0, |conn| insert(conn, 2), &path);
        let last = writer.run_in_transaction(0, |conn| insert(conn, 5), &path);
        go.send(()).unwrap();
        assert_eq!(first.await.unwrap(), 1);
        let (a, b, twice, last) = tokio::join!(a, b, twice, last);
        assert_eq!((a.unwrap(), last.unwrap()), (2, 5));
        assert!(matches!(b, Err(Error::Closed)));
        assert!(matches!(twice, Err(Error::Storage { .. })));
        assert_eq!(stored(&other), [1, 2, 5]);
        drop(writer);
    }

    /// A panic inside a call is that call's error; it leaves nothing, and the writer goes on.
    #[tokio::test]
    async fn a_panic_ends_one_call_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = Arc::new(directory.path().join("panic.db"));
        let conn = Connection::open(&*path).unwrap();
        conn.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)")
            .unwrap();
        let other = Connection::open(&*path).unwrap();
        let writer =
            WriteThread::spawn_thread(conn, &path, 1 << 20, Duration::ZERO, |_| Ok(false)).unwrap();
        let panics = |n| {
            move |conn: &Connection| -> Result<u32, RowError> {
                insert(conn, n)?;
                panic!("number {n}")
            }
        };
        let (before, shared, after) = tokio::join!(
            writer.run_in_transaction(0, |conn| insert(conn, 1), &path),
            writer.run_in_transaction(0, panics(2), &path),
            writer.run_in_transaction(0, |conn| insert(conn, 3), &path),
        );
        assert_eq!((before.unwrap(), after.unwrap()), (1, 3));
        let alone = writer
            .run_outside_transaction(|_| -> Result<u32, RowError> { panic!("number 2") }, &path)
            .await;
        for panicked in [shared, alone] {
            let error = panicked.unwrap_err();
            assert!(
                matches!(
                    &error,
                    Error::Storage {
                        fault: StorageFault::Panicked,
                        source: None,
                        ..
                    }
                ),
                "{error:?}"
            );
        }
        let last = writer
            .run_in_transaction(0, |conn| insert(conn, 4), &path)
            .await;
        assert_eq!(last.unwrap(), 4);
        assert_eq!(stored(&other), [1, 3, 4]);
    }
}
