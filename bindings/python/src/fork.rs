//! What happens around a fork: nothing runs meanwhile, and no SQLite file is open.
//!
//! SQLite keeps the locks of a process in memory. A child would inherit them as they were, without the locks themselves: it would
//! wait for ever for one that the parent held at that moment, and the parent would not see that the child has the file open. So
//! before a fork operations end, new ones wait, and files are closed; whoever comes next, here or there, opens them again.
//! PostgreSQL needs none of this: the child makes connections of its own.
//!
//! A fork that Python does not know of, or one that does not wait for an operation of more than ten seconds, leaves a file open.
//! The child then refuses to use it: `forked`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::process::ProcessCell;

/// How long a fork waits for operations that run.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause between two looks at what runs.
const PAUSE: Duration = Duration::from_micros(200);

/// Operations that run in this process.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Forks that are about to happen.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// What can be closed. Locked only together with the interpreter's lock, as `process` says.
static CLOSABLE: Mutex<Vec<Weak<dyn Closable>>> = Mutex::new(Vec::new());

/// What must not be open during a fork.
trait Closable: Send + Sync {
    /// Takes out what is open; whoever drops it closes it.
    fn take(&self, py: Python<'_>) -> Box<dyn Send>;
}

impl<T: Clone + Send + 'static> Closable for ProcessCell<T> {
    fn take(&self, py: Python<'_>) -> Box<dyn Send> {
        Box::new(Self::take(self, py))
    }
}

/// An operation, from its start to the end of what it holds.
#[derive(Debug)]
pub(crate) struct RunningOperation(());

impl Drop for RunningOperation {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Begins an operation, after the forks that are about to happen.
pub(crate) fn begin_operation(py: Python<'_>) -> RunningOperation {
    // No fork begins between the look and the count, because that needs the interpreter's lock.
    while FORKS.load(Ordering::SeqCst) > 0 {
        py.detach(|| thread::sleep(PAUSE));
    }
    RUNNING.fetch_add(1, Ordering::SeqCst);
    RunningOperation(())
}

/// Has a cell emptied before each fork.
pub(crate) fn close_before_forks<T: Clone + Send + 'static>(
    _attached: Python<'_>,
    cell: &Arc<ProcessCell<T>>,
) {
    let mut closable = CLOSABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if closable.len() == closable.capacity() {
        // Only when it would grow, so that many engines do not look through each other.
        closable.retain(|cell| cell.strong_count() > 0);
    }
    let cell: Arc<dyn Closable> = Arc::<ProcessCell<T>>::clone(cell);
    closable.push(Arc::downgrade(&cell));
}

/// Waits until nothing runs, and closes files. Python calls it before a fork.
#[pyfunction]
pub(crate) fn before_fork(py: Python<'_>) {
    FORKS.fetch_add(1, Ordering::SeqCst);
    let is_quiet = py.detach(|| {
        let started = Instant::now();
        while RUNNING.load(Ordering::SeqCst) > 0 {
            if started.elapsed() > PATIENCE {
                return false;
            }
            thread::sleep(PAUSE);
        }
        true
    });
    if is_quiet {
        let closable = CLOSABLE.lock().unwrap_or_else(PoisonError::into_inner);
        let cells: Vec<Arc<dyn Closable>> = closable.iter().filter_map(Weak::upgrade).collect();
        drop(closable);
        let open: Vec<Box<dyn Send>> = cells.iter().map(|cell| cell.take(py)).collect();
        py.detach(move || drop(open));
    }
}

/// Lets operations go on. Python calls it after a fork in the process that forked.
#[pyfunction]
pub(crate) fn after_fork_in_parent() {
    FORKS.fetch_sub(1, Ordering::SeqCst);
}

/// Forgets what ran in the other process. Python calls it after a fork in the new one.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    RUNNING.store(0, Ordering::SeqCst);
    FORKS.store(0, Ordering::SeqCst);
}
