//! The write thread: the only writer of a process, which commits queued calls together.
//!
//! The thread takes queued calls for some time, runs each in a savepoint of one transaction, commits once and
//! only then answers. A call whose future was dropped before it ran is skipped; one dropped later
//! completes. A call that fails or panics is rolled back without affecting the others, unless
//! SQLite gives up the whole transaction (a full disk, an I/O error): then those that ran fail as busy.
//! The queue is bounded in bytes. When it is empty, the thread does pending cleanup.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use contexture_store::{Error, StorageFault};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use crate::error::{RowError, from_sqlite};
use crate::worker::call_queue::{CallLoad, CallQueue, CommitLoad, NextCalls};
use crate::worker::write_lock_queue::{WriteLockQueue, is_busy};

/// Time without a call after which the connection gives its cache up.
const CACHE_IDLE: Duration = Duration::from_secs(10);
/// Time of work after which a commit takes no more calls, unless the last commit itself took longer: whoever comes waits for
/// all that the commit holds, and after that its own share of the sync is small.
const BATCH_TIME: Duration = Duration::from_millis(20);
/// Bytes that a call counts for besides its payload.
const CALL_BYTES: usize = 1024;

/// Handle of the write thread, with the sending end of its queue.
#[derive(Debug)]
pub(crate) struct WriteThread {
    /// `None` once closing, and of a database that is only read.
    queue: Option<Sender<QueuedCall>>,
    is_read_only: bool,
    waiting: Arc<AtomicUsize>,
    max_bytes: usize,
    thread: Option<JoinHandle<()>>,
    cleanup: CleanupFlag,
}

/// Work for an empty queue; returns whether more of it is left.
pub(crate) type IdleTask = fn(&Connection) -> Result<bool, RowError>;

/// Whether cleanup is pending. True when a database is opened, since another process may have
/// crashed.
#[derive(Clone, Debug)]
pub(crate) struct CleanupFlag(Arc<AtomicBool>);

impl CleanupFlag {
    /// Marks cleanup as pending.
    pub(crate) fn schedule_cleanup(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A call that waits for the thread.
pub(crate) struct QueuedCall {
    pub(crate) load: CallLoad,
    /// Whether it runs outside any transaction.
    pub(crate) is_alone: bool,
    counted: QueuedBytes,
    run: CallWork,
}

/// Bytes counted as queued until this is dropped.
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
    /// Runs the call; its bytes leave the queue before the caller is answered.
    fn run_call(self, conn: Result<&Connection, Error>) -> Option<CompletedCall> {
        let Self { counted, run, .. } = self;
        let ran = run(conn);
        drop(counted);
        ran
    }

    /// A call that does nothing.
    #[cfg(test)]
    pub(crate) fn without_work(load: CallLoad) -> Self {
        let counted = QueuedBytes {
            bytes: 0,
            waiting: Arc::default(),
        };
        Self {
            load,
            is_alone: false,
            counted,
            run: Box::new(|_| None),
        }
    }

    fn refuse_call(self, error: Error) -> Option<CompletedCall> {
        self.run_call(Err(error))
    }
}

/// Runs the call or passes it the error; returns `None` if nobody waits for the result any more.
type CallWork = Box<dyn FnOnce(Result<&Connection, Error>) -> Option<CompletedCall> + Send>;

/// A call that ran and waits for the commit.
struct CompletedCall {
    /// Whether it succeeded; otherwise its changes are rolled back.
    succeeded: bool,
    /// Answers the caller, with the commit's error if it failed.
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
                    CallQueue::new(calls),
                    &idle_work,
                    WriteLockQueue::new(&path, busy_timeout),
                )
            })?;
        Ok(Self {
            queue: Some(queue),
            is_read_only: false,
            waiting,
            max_bytes,
            thread: Some(thread),
            cleanup,
        })
    }

    /// Returns the writer of a database that is only read: it refuses all calls, and there is no thread.
    pub(crate) fn refusing() -> Self {
        Self {
            queue: None,
            is_read_only: true,
            waiting: Arc::default(),
            max_bytes: 0,
            thread: None,
            cleanup: CleanupFlag(Arc::default()),
        }
    }

    /// Returns the flag for pending cleanup.
    pub(crate) fn cleanup_flag(&self) -> CleanupFlag {
        self.cleanup.clone()
    }

    /// Runs `f` in a transaction.
    pub(crate) async fn run_in_transaction<T: Send + 'static>(
        &self,
        load: CallLoad,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
        path: &Arc<PathBuf>,
    ) -> Result<T, Error> {
        self.enqueue_call(load, false, f, path).await
    }

    /// Runs `f` outside any transaction, alone.
    pub(crate) async fn run_outside_transaction<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
        path: &Arc<PathBuf>,
    ) -> Result<T, Error> {
        self.enqueue_call(CallLoad::OWN, true, f, path).await
    }

    /// Counts bytes as queued; [`Error::Busy`] if the queue is full.
    fn reserve_bytes(&self, bytes: usize) -> Result<QueuedBytes, Error> {
        // Counted before it is compared, so that two concurrent callers cannot both take the last
        // room. On a refusal, dropping the guard subtracts the bytes again.
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let counted = QueuedBytes {
            bytes,
            waiting: Arc::clone(&self.waiting),
        };
        // A call larger than the whole queue is accepted if the queue is empty.
        if before > 0 && before.saturating_add(bytes) > self.max_bytes {
            return Err(Error::Busy {
                why: format!("{before} bytes are waiting to be written"),
            });
        }
        Ok(counted)
    }

    async fn enqueue_call<T: Send + 'static>(
        &self,
        load: CallLoad,
        is_alone: bool,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
        path: &Arc<PathBuf>,
    ) -> Result<T, Error> {
        if self.is_read_only {
            return Err(Error::Storage {
                path: path.to_path_buf(),
                fault: StorageFault::ReadOnly,
                source: None,
            });
        }
        let counted = self.reserve_bytes(load.bytes.saturating_add(CALL_BYTES))?;
        let (answer, answered) = oneshot::channel();
        let path = Arc::clone(path);
        let run = Box::new(move |conn: Result<&Connection, Error>| {
            // The caller gave up before the call ran. Skipping it keeps abandoned calls from
            // delaying others.
            if answer.is_closed() {
                return None;
            }
            let result = conn.and_then(|conn| catch_panic(conn, f, &path));
            Some(CompletedCall {
                succeeded: result.is_ok(),
                answer: Box::new(move |failure| {
                    // The caller may be gone; the call takes effect all the same.
                    let _ = answer.send(failure.map_or(result, Err));
                }),
            })
        });
        let queue = self.queue.as_ref().ok_or(Error::Closed)?;
        let call = QueuedCall {
            load,
            is_alone,
            counted,
            run,
        };
        queue.send(call).map_err(|_| Error::Closed)?;
        // Without an answer the thread has died, possibly after the commit.
        let lost = |source| Error::OutcomeUnknown {
            source: Box::new(source),
        };
        answered.await.map_err(lost)?
    }
}

impl Drop for WriteThread {
    fn drop(&mut self) {
        // Closing the channel lets the thread finish the queued calls and return; joining waits for
        // that.
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writer thread had panicked");
        }
    }
}

/// Runs a call and turns a panic in it into an error.
pub(crate) fn catch_panic<T>(
    conn: &Connection,
    f: impl FnOnce(&Connection) -> Result<T, RowError>,
    path: &Path,
) -> Result<T, Error> {
    // Unwind safety: a call in a transaction is rolled back after a panic.
    match catch_unwind(AssertUnwindSafe(|| f(conn))) {
        Ok(result) => result.map_err(|fault| fault.into_error(path)),
        // The panic message may contain stored content, so it is not logged; the panic hook has
        // reported it.
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

/// Work of the thread while the queue is empty.
struct IdleWork {
    cleanup: CleanupFlag,
    idle_task: IdleTask,
    failed: Cell<bool>,
}

impl IdleWork {
    /// Takes one step, in a transaction of its own. It waits for no other process: nobody has asked for it, and a command
    /// that only reads must not end later because of it. A failed step is tried again after the next batch of calls, or
    /// when the database is opened next.
    fn run_step(&self, conn: &Connection, lock_queue: &mut WriteLockQueue) {
        // Cleared before the step, so that a cleanup that is scheduled meanwhile is not lost.
        if !self.cleanup.0.swap(false, Ordering::Acquire) {
            return;
        }
        let step = || -> Result<bool, RowError> {
            lock_queue.try_begin_write(conn)?;
            let more = (self.idle_task)(conn)?;
            conn.execute_batch("COMMIT")?;
            Ok(more)
        };
        match catch_unwind(AssertUnwindSafe(step)) {
            Ok(Ok(true)) => self.cleanup.schedule_cleanup(),
            Ok(Ok(false)) => {}
            Ok(Err(RowError::Sql(error))) if is_busy(&error) => self.failed.set(true),
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

    /// After each batch, a step that failed before is tried again.
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
    mut calls: CallQueue,
    idle_work: &IdleWork,
    mut lock_queue: WriteLockQueue,
) {
    let mut last_commit = Duration::ZERO;
    loop {
        match calls.take_next() {
            NextCalls::Commit => {
                let most = BATCH_TIME.max(last_commit);
                last_commit = run_batch(conn, path, (&mut calls, most), &mut lock_queue);
            }
            NextCalls::Alone(call) => send_answer(call.run_call(Ok(conn)), None),
            NextCalls::Closed => return,
            // One step between two checks of the queue, so a call waits for one step at most.
            NextCalls::Nothing if idle_work.is_due() => {
                idle_work.run_step(conn, &mut lock_queue);
                continue;
            }
            NextCalls::Nothing => {
                wait_for_call(conn, &mut calls);
                continue;
            }
        }
        idle_work.retry_failed();
    }
}

/// Waits for a call. After a while without one, the pages that earlier calls read are given up.
fn wait_for_call(conn: &Connection, calls: &mut CallQueue) {
    if !calls.wait(Some(CACHE_IDLE)) {
        if let Err(error) = conn.release_memory() {
            tracing::warn!(%error, "the cache of the database stays as large as it is");
        }
        calls.wait(None);
    }
}

/// Runs a batch: the next calls, of at most so much time, in one transaction, one answer each. Returns how long the commit took.
fn run_batch(
    conn: &Connection,
    path: &Path,
    (calls, most): (&mut CallQueue, Duration),
    lock_queue: &mut WriteLockQueue,
) -> Duration {
    let mut load = CommitLoad::default();
    if let Err(error) = lock_queue.begin_write(conn) {
        // The transaction has not begun, so nothing has happened. Errors are not `Clone`, so each
        // caller gets a copy.
        let code = error.sqlite_error().copied();
        while let Some(call) = calls.take_for_commit(&mut load) {
            let error = from_sqlite(clone_error(code, &error), path);
            send_answer(call.refuse_call(error), None);
        }
        return Duration::ZERO;
    }
    let started = Instant::now();
    let mut ran = Vec::new();
    while let Some(call) = calls.take_for_commit(&mut load) {
        ran.extend(run_in_savepoint(conn, path, call));
        // In autocommit mode SQLite rolled back the whole transaction: a full disk, an I/O error.
        if conn.is_autocommit() || started.elapsed() >= most {
            break;
        }
    }
    let worked = started.elapsed();
    // If every call failed, there is nothing to commit: rolling back saves the fsync.
    let end = end_transaction(conn, ran.iter().any(|ran| ran.succeeded));
    let took = started.elapsed().saturating_sub(worked);
    for ran in ran {
        let failure = end.as_ref().err().map(|end| end.for_caller(path));
        // A call that failed by itself keeps its own error.
        let failure = failure.filter(|_| ran.succeeded);
        send_answer(Some(ran), failure);
    }
    took
}

/// Runs one call inside a savepoint.
fn run_in_savepoint(conn: &Connection, path: &Path, call: QueuedCall) -> Option<CompletedCall> {
    // A savepoint for each call: one that fails is rolled back alone.
    if let Err(error) = execute_savepoint(conn, "SAVEPOINT call") {
        return call.refuse_call(from_sqlite(error, path));
    }
    let ran = call.run_call(Ok(conn));
    // In autocommit mode SQLite has already rolled everything back, savepoints included.
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

/// Reason why a batch was not committed.
enum CommitFailure {
    /// A statement of another call made SQLite roll back the transaction.
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

/// Copies an error, which is not `Clone`.
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

    /// A call that waits behind those of another owner is committed right after the one that runs.
    #[tokio::test]
    async fn owners_wait_in_turn() {
        let directory = tempfile::tempdir().unwrap();
        let path = Arc::new(directory.path().join("turns.db"));
        let conn = Connection::open(&*path).unwrap();
        conn.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)")
            .unwrap();
        let writer =
            WriteThread::spawn_thread(conn, &path, 1 << 20, Duration::ZERO, |_| Ok(false)).unwrap();
        let (go, gate) = channel::<()>();
        let [eve, ada] = ["eve", "ada"].map(|name| contexture_ir::Owner::new(name).unwrap());
        let seen = |conn: &Connection| Ok(stored(conn).len());
        let large = CallLoad::of(&eve).with_rows(2_000);
        let mut running = Box::pin(writer.run_in_transaction(
            large.clone(),
            move |conn| {
                gate.recv().unwrap();
                insert(conn, 0)
            },
            &path,
        ));
        let mut waker = Context::from_waker(Waker::noop());
        assert!(running.as_mut().poll(&mut waker).is_pending());
        let mut behind = Vec::new();
        for n in 1..=5 {
            let call = move |conn: &Connection| insert(conn, n);
            behind.push(Box::pin(writer.run_in_transaction(
                large.clone(),
                call,
                &path,
            )));
        }
        for call in &mut behind {
            assert!(call.as_mut().poll(&mut waker).is_pending());
        }
        let mut small = Box::pin(writer.run_in_transaction(CallLoad::of(&ada), seen, &path));
        assert!(small.as_mut().poll(&mut waker).is_pending());
        go.send(()).unwrap();
        // Only what ran when it came.
        assert_eq!(small.await.unwrap(), 1);
        for call in behind {
            call.await.unwrap();
        }
    }

    /// Calls that were queued together, the first of which takes long: it is committed before the others run.
    #[tokio::test]
    async fn a_commit_takes_no_call_after_its_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = Arc::new(directory.path().join("time.db"));
        let conn = Connection::open(&*path).unwrap();
        conn.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY)")
            .unwrap();
        let writer =
            WriteThread::spawn_thread(conn, &path, 1 << 20, Duration::ZERO, |_| Ok(false)).unwrap();
        let mut waker = Context::from_waker(Waker::noop());
        let mut queue = |work: Box<dyn FnOnce() + Send>, n| {
            let call = move |conn: &Connection| {
                work();
                insert(conn, n)
            };
            let mut call = Box::pin(writer.run_in_transaction(CallLoad::OWN, call, &path));
            assert!(call.as_mut().poll(&mut waker).is_pending());
            call
        };
        let [(go, gate), (committed, was_committed)] = [(); 2].map(|()| channel::<()>());
        // While this one runs, the others are queued.
        let before = queue(Box::new(move || gate.recv().unwrap()), 0);
        let long = queue(Box::new(|| std::thread::sleep(2 * BATCH_TIME)), 1);
        let patience = Duration::from_secs(60);
        let next = queue(
            Box::new(move || was_committed.recv_timeout(patience).unwrap()),
            2,
        );
        go.send(()).unwrap();
        before.await.unwrap();
        long.await.unwrap();
        committed.send(()).unwrap();
        next.await.unwrap();
    }

    /// Queued calls are committed together. One that fails after it has written is rolled back
    /// alone, and one that nobody waits for is not run.
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
            CallLoad::OWN,
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
            writer.run_in_transaction(CallLoad::OWN, |conn| insert(conn, 2), &path),
            writer.run_in_transaction(CallLoad::OWN, fails(3), &path),
            Box::pin(writer.run_in_transaction(CallLoad::OWN, |conn| insert(conn, 4), &path)),
        );
        assert!(c.as_mut().poll(&mut waker).is_pending());
        drop(c);
        let twice = writer.run_in_transaction(CallLoad::OWN, |conn| insert(conn, 2), &path);
        let last = writer.run_in_transaction(CallLoad::OWN, |conn| insert(conn, 5), &path);
        go.send(()).unwrap();
        assert_eq!(first.await.unwrap(), 1);
        let (a, b, twice, last) = tokio::join!(a, b, twice, last);
        assert_eq!((a.unwrap(), last.unwrap()), (2, 5));
        assert!(matches!(b, Err(Error::Closed)));
        assert!(matches!(twice, Err(Error::Storage { .. })));
        assert_eq!(stored(&other), [1, 2, 5]);
        drop(writer);
    }

    /// A panic inside a call is that call's error; it leaves no change, and the thread continues.
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
            writer.run_in_transaction(CallLoad::OWN, |conn| insert(conn, 1), &path),
            writer.run_in_transaction(CallLoad::OWN, panics(2), &path),
            writer.run_in_transaction(CallLoad::OWN, |conn| insert(conn, 3), &path),
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
            .run_in_transaction(CallLoad::OWN, |conn| insert(conn, 4), &path)
            .await;
        assert_eq!(last.unwrap(), 4);
        assert_eq!(stored(&other), [1, 3, 4]);
    }
}
