//! The read pool: connections that only read.
//!
//! Each read runs on a blocking thread, on a connection of its own, in a transaction: it sees a
//! snapshot and waits for no writer. Connections are opened when first needed and reused.
//!
//! Reads of different lengths have different lanes ([`ReadKind`]), each with its own permits and
//! connections, so a search never makes a look-up wait. Within a lane owners are served in turn
//! ([`FairPermits`]). A read ends early when its caller leaves or its time is up: SQLite asks a
//! [`ReadWatch`] every few instructions whether to go on.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use contexture_ir::Owner;
use contexture_store::{Error, FairPermits, PermitLimits};
use rusqlite::Connection;

use crate::connection::{FileChanges, open_reader};
use crate::error::{RowError, from_sqlite};
use crate::options::SqliteOptions;
use crate::worker::write_thread::catch_panic;

/// Instructions of SQLite between two questions whether to go on. Few, because a look-up takes some
/// dozens, and a search is many look-ups.
const WATCH_INSTRUCTIONS: i32 = 64;

/// Reads that may run at once and belong to the database as a whole or to one conversation, such as
/// checks and backups.
const MAINTENANCE_READS: usize = 2;

/// How long a read may be, which decides what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadKind {
    /// Reads rows by their keys, or a small page of them.
    Point,
    /// Reads many nodes of a path: whole conversations, which each call of a model may need, exports, large pages. One takes
    /// up to some tens of milliseconds, so owners that export must not hold up look-ups. Not a [`ReadKind::Scan`] either: an
    /// owner's calls would wait for that owner's searches, which take up to the time limit.
    Path,
    /// May read many rows to return few: searches, lists of conversations, statistics.
    Scan,
    /// Reads as much as there is: checks and backups. It has no time limit.
    Maintenance,
}

/// Pool of read-only connections, with limits on concurrent reads.
#[derive(Debug)]
pub(crate) struct ReadPool {
    path: Arc<PathBuf>,
    changes: FileChanges,
    points: ReadLane,
    paths: ReadLane,
    scans: ReadLane,
    maintenance: ReadLane,
    interrupted: Arc<AtomicU64>,
}

/// The reads of one kind.
#[derive(Debug)]
struct ReadLane {
    permits: FairPermits,
    idle: Arc<Mutex<Vec<Connection>>>,
    time_limit: Option<Duration>,
}

impl ReadLane {
    fn new(total: usize, per_owner: usize, time_limit: Option<Duration>) -> Self {
        Self {
            permits: FairPermits::new(PermitLimits { total, per_owner }),
            idle: Arc::default(),
            time_limit,
        }
    }
}

impl ReadPool {
    pub(crate) fn new(path: Arc<PathBuf>, changes: FileChanges, options: &SqliteOptions) -> Self {
        let time_limit = Some(options.read_timeout);
        // One place is always left for somebody else.
        let of_owner = options.readers.saturating_sub(1);
        Self {
            path,
            changes,
            points: ReadLane::new(options.readers, of_owner, time_limit),
            paths: ReadLane::new(options.readers, of_owner, time_limit),
            scans: ReadLane::new(options.scans, options.scans_per_owner, time_limit),
            maintenance: ReadLane::new(MAINTENANCE_READS, MAINTENANCE_READS, None),
            interrupted: Arc::default(),
        }
    }

    fn lane(&self, kind: ReadKind) -> &ReadLane {
        match kind {
            ReadKind::Point => &self.points,
            ReadKind::Path => &self.paths,
            ReadKind::Scan => &self.scans,
            ReadKind::Maintenance => &self.maintenance,
        }
    }

    /// Returns how many reads were stopped because their callers left or their time was up.
    pub(crate) fn interrupted_reads(&self) -> u64 {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Returns the permits of a kind of read.
    pub(crate) fn permits(&self, kind: ReadKind) -> &FairPermits {
        &self.lane(kind).permits
    }

    /// Runs `f` in a read transaction, for `owner` if it is done for one.
    pub(crate) async fn run_read<T: Send + 'static>(
        &self,
        kind: ReadKind,
        owner: Option<&Owner>,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, Error> {
        let lane = self.lane(kind);
        let permit = lane.permits.acquire_permit(owner).await;
        let watch = Arc::new(ReadWatch::new(lane.time_limit));
        // Dropped with this future: whoever stops waiting stops the read.
        let _leaving = StopOnDrop(Arc::clone(&watch));
        let (path, idle) = (Arc::clone(&self.path), Arc::clone(&lane.idle));
        let changes = self.changes;
        let interrupted = Arc::clone(&self.interrupted);
        let work = move || {
            // Held until the read has really ended, not only until nobody waits for it.
            let _permit = permit;
            let conn = lock_idle(&idle).pop();
            let mut conn = match conn {
                Some(conn) => conn,
                None => open_reader(&path, changes).map_err(|error| from_sqlite(error, &path))?,
            };
            let result = run_watched(&mut conn, f, &watch, &path);
            // A connection that is still in a transaction is dropped instead of reused.
            if conn.is_autocommit() {
                lock_idle(&idle).push(conn);
            }
            if matches!(result, Err(Error::Interrupted { .. })) {
                interrupted.fetch_add(1, Ordering::Relaxed);
            }
            result
        };
        // The blocking task was lost. A read changes nothing, so the caller may repeat it.
        let lost = |source| Error::OutcomeUnknown {
            source: Box::new(source),
        };
        tokio::task::spawn_blocking(work).await.map_err(lost)?
    }
}

/// Runs `f` in a transaction for as long as the watch lets it.
fn run_watched<T>(
    conn: &mut Connection,
    f: impl FnOnce(&Connection) -> Result<T, RowError>,
    watch: &Arc<ReadWatch>,
    path: &Path,
) -> Result<T, Error> {
    let sql = |error| from_sqlite(error, path);
    // Its caller may have left while it waited for a thread.
    watch.check()?;
    conn.prepare_cached("BEGIN")
        .and_then(|mut begin| begin.execute([]))
        .map_err(sql)?;
    let asked = Arc::clone(watch);
    conn.progress_handler(WATCH_INSTRUCTIONS, Some(move || asked.should_stop()))
        .map_err(sql)?;
    let result = catch_panic(conn, f, path);
    // The end of the transaction is never interrupted: its connection is to be used again.
    conn.progress_handler(0, None::<fn() -> bool>)
        .map_err(sql)?;
    if !conn.is_autocommit() {
        conn.prepare_cached("COMMIT")
            .and_then(|mut commit| commit.execute([]))
            .map_err(sql)?;
    }
    match result {
        Err(Error::Interrupted { .. }) => Err(watch.interruption()),
        result => result,
    }
}

/// Whether a read should go on.
#[derive(Debug)]
struct ReadWatch {
    is_abandoned: AtomicBool,
    end: Option<(Instant, Duration)>,
}

impl ReadWatch {
    fn new(time_limit: Option<Duration>) -> Self {
        Self {
            is_abandoned: AtomicBool::new(false),
            end: time_limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit))),
        }
    }

    fn should_stop(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
            || self.end.is_some_and(|(end, _)| Instant::now() >= end)
    }

    fn check(&self) -> Result<(), Error> {
        match self.should_stop() {
            true => Err(self.interruption()),
            false => Ok(()),
        }
    }

    fn interruption(&self) -> Error {
        let why = match (&self.end, self.is_abandoned.load(Ordering::Relaxed)) {
            (Some((_, limit)), false) => format!("it took longer than {} ms", limit.as_millis()),
            _ => "nobody waits for it any more".to_owned(),
        };
        Error::Interrupted { why }
    }
}

/// Stops a read when the future that waits for it is dropped.
struct StopOnDrop(Arc<ReadWatch>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.is_abandoned.store(true, Ordering::Relaxed);
    }
}

fn lock_idle(idle: &Mutex<Vec<Connection>>) -> std::sync::MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Runs until it is stopped.
    const ENDLESS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) \
         SELECT count(*) FROM n";

    struct Bench {
        pool: Arc<ReadPool>,
        _directory: tempfile::TempDir,
    }

    impl Bench {
        fn new(options: &SqliteOptions) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = Arc::new(directory.path().join("reads.db"));
            let conn = Connection::open(&*path).unwrap();
            conn.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (n)")
                .unwrap();
            Self {
                pool: Arc::new(ReadPool::new(path, FileChanges::Possible, options)),
                _directory: directory,
            }
        }

        /// Begins a read that runs until the sender is used or dropped.
        async fn block(&self, kind: ReadKind, owner: &str) -> (Sender<()>, Task) {
            let (go, gate) = channel::<()>();
            let (begun, has_begun) = tokio::sync::oneshot::channel();
            let task = self.spawn(kind, owner, move |_| {
                let _ = begun.send(());
                let _ = gate.recv();
                Ok(())
            });
            has_begun.await.unwrap();
            (go, task)
        }

        fn spawn(
            &self,
            kind: ReadKind,
            owner: &str,
            f: impl FnOnce(&Connection) -> Result<(), RowError> + Send + 'static,
        ) -> Task {
            let (pool, owner) = (Arc::clone(&self.pool), Owner::new(owner).unwrap());
            tokio::spawn(async move { pool.run_read(kind, Some(&owner), f).await })
        }
    }

    type Task = tokio::task::JoinHandle<Result<(), Error>>;

    fn count_endlessly(conn: &Connection) -> Result<(), RowError> {
        conn.query_row(ENDLESS, [], |_| Ok(()))?;
        Ok(())
    }

    /// While one owner has as many scans under way as it may, all else goes on: its own point reads,
    /// and scans and point reads of others.
    #[tokio::test(flavor = "multi_thread")]
    async fn blocked_scans_delay_nothing_else() {
        let bench = Bench::new(&SqliteOptions::default());
        let mut blocked = Vec::new();
        for _ in 0..2 {
            blocked.push(bench.block(ReadKind::Scan, "a").await);
        }
        let third = bench.spawn(ReadKind::Scan, "a", |_| Ok(()));
        while bench.pool.permits(ReadKind::Scan).times_waited() == 0 {
            tokio::task::yield_now().await;
        }
        for (kind, owner) in [
            (ReadKind::Point, "a"),
            (ReadKind::Point, "b"),
            (ReadKind::Path, "a"),
            (ReadKind::Scan, "b"),
            (ReadKind::Maintenance, "a"),
        ] {
            let done = bench.spawn(kind, owner, |_| Ok(())).await.unwrap();
            assert!(done.is_ok(), "{kind:?} of {owner}");
        }
        assert!(!third.is_finished());
        assert_eq!(bench.pool.permits(ReadKind::Point).times_waited(), 0);
        drop(blocked);
        third.await.unwrap().unwrap();
    }

    /// One owner's point reads leave a place for the next owner, and so do its reads of paths.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_owner_leaves_a_place_for_the_next() {
        for kind in [ReadKind::Point, ReadKind::Path] {
            check_place_for_the_next(kind).await;
        }
    }

    async fn check_place_for_the_next(kind: ReadKind) {
        let bench = Bench::new(&SqliteOptions::default());
        let mut blocked = Vec::new();
        for _ in 0..3 {
            blocked.push(bench.block(kind, "a").await);
        }
        let fourth = bench.spawn(kind, "a", |_| Ok(()));
        bench
            .spawn(ReadKind::Point, "b", |_| Ok(()))
            .await
            .unwrap()
            .unwrap();
        assert!(!fourth.is_finished());
        drop(blocked);
        fourth.await.unwrap().unwrap();
    }

    /// A statement ends when nobody waits for it any more, and its permit and connection come back.
    #[tokio::test(flavor = "multi_thread")]
    async fn who_leaves_interrupts_the_statement() {
        let bench = Bench::new(&SqliteOptions::default());
        for round in 1..=3 {
            let tasks: Vec<Task> = ["a", "a", "b", "b"]
                .into_iter()
                .map(|owner| bench.spawn(ReadKind::Scan, owner, count_endlessly))
                .collect();
            while bench.pool.permits(ReadKind::Scan).held_permits() < 4 {
                tokio::task::yield_now().await;
            }
            for task in tasks {
                task.abort();
                assert!(task.await.unwrap_err().is_cancelled());
            }
            // This one waits until an earlier one has really ended.
            bench
                .spawn(ReadKind::Scan, "a", |_| Ok(()))
                .await
                .unwrap()
                .unwrap();
            while bench.pool.interrupted_reads() < 4 * round {
                tokio::task::yield_now().await;
            }
        }
        // A read is counted before its permit is back.
        while bench.pool.permits(ReadKind::Scan).held_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(
            lock_idle(&bench.pool.scans.idle).len() <= 4,
            "connections are reused"
        );
    }

    /// Only a read that is over its time is stopped, with an error that says so.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_read_ends_when_its_time_is_up() {
        let bench = Bench::new(&SqliteOptions {
            read_timeout: Duration::from_millis(20),
            ..SqliteOptions::default()
        });
        for kind in [ReadKind::Point, ReadKind::Scan] {
            let stopped = bench.spawn(kind, "a", count_endlessly).await.unwrap();
            let error = stopped.unwrap_err();
            assert!(
                error.is_retryable() && error.kind() == "interrupted",
                "{error:?}"
            );
            assert!(error.to_string().contains("20 ms"), "{error}");
        }
        assert_eq!(bench.pool.interrupted_reads(), 2);
        // The connection that was interrupted serves the next read.
        let count =
            |conn: &Connection| Ok(conn.query_row("SELECT count(*) FROM t", [], |_| Ok(()))?);
        bench
            .spawn(ReadKind::Scan, "a", count)
            .await
            .unwrap()
            .unwrap();
    }
}
