//! The one writer of a process.
//!
//! Calls queue up; the thread takes whatever waits, runs each call inside a savepoint of one
//! transaction, commits once and only then answers. A call whose future was dropped before its turn
//! is skipped; one dropped later is complete all the same. A call that fails leaves nothing and
//! does not disturb its neighbours. The queue is bounded in bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use contexture_store::Error;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use crate::fault::{Fault, from_sqlite};

/// Calls and bytes that are committed together at most.
const BATCH_CALLS: usize = 1024;
const BATCH_BYTES: usize = 16 << 20;
/// What a call weighs besides its payload.
const CALL_BYTES: usize = 1024;

/// The queue's end that callers hold.
#[derive(Debug)]
pub(crate) struct Writer {
    /// `None` once closing.
    queue: Option<Sender<Call>>,
    waiting: Arc<AtomicUsize>,
    max_bytes: usize,
    thread: Option<JoinHandle<()>>,
}

struct Call {
    weight: Weight,
    run: Work,
}

/// Bytes in the queue; they leave it when this is dropped.
struct Weight {
    bytes: usize,
    waiting: Arc<AtomicUsize>,
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Call {
    /// What it carried is out of the queue before anybody hears of it.
    fn run(self, conn: Result<&Connection, Error>) -> Option<Ran> {
        let Self { weight, run } = self;
        let ran = run(conn);
        drop(weight);
        ran
    }

    fn refuse(self, error: Error) -> Option<Ran> {
        self.run(Err(error))
    }
}

/// Runs, or is told why it cannot; `None`: nobody waits for it any more.
type Work = Box<dyn FnOnce(Result<&Connection, Error>) -> Option<Ran> + Send>;

/// A call that ran and waits for the commit.
struct Ran {
    /// Whether it succeeded; otherwise its changes are taken back.
    keep: bool,
    /// Answers, with the commit's failure if it failed.
    answer: Box<dyn FnOnce(Option<Error>) + Send>,
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(conn: Connection, path: &Path, max_bytes: usize) -> std::io::Result<Self> {
        let (queue, calls) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let path = path.to_owned();
        let thread = std::thread::Builder::new()
            .name("contexture-writer".to_owned())
            .spawn(move || work(&conn, &path, &calls))?;
        Ok(Self {
            queue: Some(queue),
            waiting,
            max_bytes,
            thread: Some(thread),
        })
    }

    /// Runs `f` in a transaction; `bytes` is what it carries.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        bytes: usize,
        f: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
        path: &Arc<PathBuf>,
    ) -> Result<T, Error> {
        let bytes = bytes.saturating_add(CALL_BYTES);
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let weight = Weight {
            bytes,
            waiting: Arc::clone(&self.waiting),
        };
        // A call heavier than the whole queue may still go alone.
        if before > 0 && before.saturating_add(bytes) > self.max_bytes {
            return Err(Error::Busy {
                why: format!("{before} bytes are waiting to be written"),
            });
        }
        let (answer, answered) = oneshot::channel();
        let path = Arc::clone(path);
        let run = Box::new(move |conn: Result<&Connection, Error>| {
            if answer.is_closed() {
                return None;
            }
            let result = conn.and_then(|conn| f(conn).map_err(|fault| fault.into_error(&path)));
            Some(Ran {
                keep: result.is_ok(),
                answer: Box::new(move |failure| {
                    // The caller may be gone; what was done stays done.
                    let _ = answer.send(failure.map_or(result, Err));
                }),
            })
        });
        let queue = self.queue.as_ref().ok_or(Error::Closed)?;
        queue
            .send(Call { weight, run })
            .map_err(|_| Error::Closed)?;
        // The thread answers every call it takes; if it died, it may have died after a commit.
        let lost = |source| Error::OutcomeUnknown {
            source: Box::new(source),
        };
        answered.await.map_err(lost)?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writer thread had panicked");
        }
    }
}

fn work(conn: &Connection, path: &Path, calls: &Receiver<Call>) {
    while let Ok(first) = calls.recv() {
        let mut bytes = first.weight.bytes;
        let mut batch = vec![first];
        while batch.len() < BATCH_CALLS && bytes < BATCH_BYTES {
            let Ok(call) = calls.try_recv() else { break };
            bytes += call.weight.bytes;
            batch.push(call);
        }
        run(conn, path, batch);
    }
}

/// Runs a batch: all calls in one transaction, one answer each.
fn run(conn: &Connection, path: &Path, batch: Vec<Call>) {
    let mut calls = batch.into_iter();
    if let Err(error) = conn.execute_batch("BEGIN IMMEDIATE") {
        // Not even begun: nothing can have happened. Errors are not `Clone`, so each caller gets
        // one of its own.
        let code = error.sqlite_error().copied();
        for call in calls {
            let error = from_sqlite(again(code, &error), path);
            answer(call.refuse(error), None);
        }
        return;
    }
    let mut ran = Vec::with_capacity(calls.len());
    for call in calls.by_ref() {
        ran.extend(one(conn, path, call));
        if conn.is_autocommit() {
            // SQLite gave the whole transaction up: a full disk, an I/O error.
            break;
        }
    }
    let end = finish(conn, ran.iter().any(|ran| ran.keep));
    for ran in ran {
        let failure = end.as_ref().err().map(|end| end.for_caller(path));
        // A call that failed by itself keeps its own reason.
        let failure = failure.filter(|_| ran.keep);
        answer(Some(ran), failure);
    }
    for call in calls {
        answer(call.refuse(rolled_back()), None);
    }
}

/// Runs one call inside a savepoint.
fn one(conn: &Connection, path: &Path, call: Call) -> Option<Ran> {
    if let Err(error) = savepoint(conn, "SAVEPOINT call") {
        return call.refuse(from_sqlite(error, path));
    }
    let ran = call.run(Ok(conn));
    if !ran.as_ref().is_some_and(|ran| ran.keep) && !conn.is_autocommit() {
        let undone = savepoint(conn, "ROLLBACK TO call");
        debug_assert!(undone.is_ok(), "{undone:?}");
    }
    if !conn.is_autocommit() {
        let released = savepoint(conn, "RELEASE call");
        debug_assert!(released.is_ok(), "{released:?}");
    }
    ran
}

fn savepoint(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}

/// Ends the transaction.
fn finish(conn: &Connection, anything: bool) -> Result<(), CommitFailure> {
    if conn.is_autocommit() {
        return Err(CommitFailure::RolledBack);
    }
    let ended = if anything { "COMMIT" } else { "ROLLBACK" };
    let Err(error) = conn.execute_batch(ended) else {
        return Ok(());
    };
    if !conn.is_autocommit()
        && let Err(error) = conn.execute_batch("ROLLBACK")
    {
        tracing::error!(%error, "cannot roll back");
    }
    Err(CommitFailure::Refused(error))
}

fn answer(ran: Option<Ran>, failure: Option<Error>) {
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
                        source: Box::new(again(code, error)),
                    },
                    _ => from_sqlite(again(code, error), path),
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
fn again(code: Option<rusqlite::ffi::Error>, error: &rusqlite::Error) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        code.unwrap_or_else(|| rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ERROR)),
        Some(error.to_string()),
    )
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    fn insert(conn: &Connection, n: u32) -> Result<u32, Fault> {
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
        let writer = Writer::start(conn, &path, 1 << 20).unwrap();
        let (go, gate) = channel::<()>();
        let mut first = Box::pin(writer.call(
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
                Err::<u32, _>(Fault::Store(Error::Closed))
            }
        };
        let (a, b, mut c) = (
            writer.call(0, |conn| insert(conn, 2), &path),
            writer.call(0, fails(3), &path),
            Box::pin(writer.call(0, |conn| insert(conn, 4), &path)),
        );
        assert!(c.as_mut().poll(&mut waker).is_pending());
        drop(c);
        let twice = writer.call(0, |conn| insert(conn, 2), &path);
        let last = writer.call(0, |conn| insert(conn, 5), &path);
        go.send(()).unwrap();
        assert_eq!(first.await.unwrap(), 1);
        let (a, b, twice, last) = tokio::join!(a, b, twice, last);
        assert_eq!((a.unwrap(), last.unwrap()), (2, 5));
        assert!(matches!(b, Err(Error::Closed)));
        assert!(matches!(twice, Err(Error::Storage { .. })));
        assert_eq!(stored(&other), [1, 2, 5]);
        drop(writer);
    }
}
