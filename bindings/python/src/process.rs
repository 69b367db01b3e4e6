//! What belongs to one process of the operating system: the runtime, and open databases.
//!
//! After a fork the child has a copy of the parent's memory, but none of its threads, and its connections are the parent's. So a
//! value that another process made is neither used nor dropped, which would close what the parent still works with; the child
//! makes its own.
//!
//! A fork may happen at any moment, so no lock may be held then that the child would wait for. Python forks with the
//! interpreter's lock held: a lock that is only ever held together with that one is free at that moment. Every function here
//! therefore takes a [`Python`] token, and runs no Python code while it holds its own lock.

use std::convert::Infallible;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::Python;
use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;

/// Threads that work on tasks of asyncio; synchronous calls are worked on by their own threads.
const RUNTIME_THREADS: usize = 2;

/// A value of one process, made when it is first asked for.
#[derive(Debug)]
pub(crate) struct ProcessCell<T> {
    made: Mutex<Option<Made<T>>>,
}

#[derive(Debug)]
struct Made<T> {
    process: u32,
    value: T,
}

impl<T> Made<T> {
    /// Whether this process made it, and not one that it was forked from.
    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

impl<T: Clone> ProcessCell<T> {
    pub(crate) const fn new() -> Self {
        Self {
            made: Mutex::new(None),
        }
    }

    /// Returns this process's value, and makes it if there is none. An inherited one is given up without being dropped.
    ///
    /// # Errors
    /// What `make` fails with; the cell is left as it was.
    pub(crate) fn try_get_or_make<E>(
        &self,
        _attached: Python<'_>,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut made = self.lock();
        if let Some(found) = made.as_ref().filter(|found| found.is_own()) {
            return Ok(found.value.clone());
        }
        let value = make()?;
        let new = Made {
            process: std::process::id(),
            value: value.clone(),
        };
        mem::forget(made.replace(new));
        Ok(value)
    }

    /// Returns this process's value, as [`try_get_or_make`](Self::try_get_or_make) does, where making it cannot fail.
    pub(crate) fn get_or_make(&self, attached: Python<'_>, make: impl FnOnce() -> T) -> T {
        let made = self.try_get_or_make(attached, || Ok::<T, Infallible>(make()));
        made.unwrap_or_else(|never| match never {})
    }

    /// Takes this process's value out; `None` if there is none, or it is inherited.
    pub(crate) fn take(&self, _attached: Python<'_>) -> Option<T> {
        let own = self.lock().take_if(|made| made.is_own());
        own.map(|made| made.value)
    }

    /// Returns whether the value is that of the process that this one was forked from.
    pub(crate) fn is_inherited(&self, _attached: Python<'_>) -> bool {
        self.lock().as_ref().is_some_and(|made| !made.is_own())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Made<T>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for ProcessCell<T> {
    fn drop(&mut self) {
        let made = self.made.get_mut().unwrap_or_else(PoisonError::into_inner);
        mem::forget(made.take_if(|made| !made.is_own()));
    }
}

static RUNTIME: ProcessCell<Arc<Runtime>> = ProcessCell::new();

/// Returns the runtime of this process, which starts with the first call.
///
/// # Errors
/// The operating system starts no thread.
pub(crate) fn runtime(py: Python<'_>) -> Result<Arc<Runtime>, Failure> {
    RUNTIME.try_get_or_make(py, || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(RUNTIME_THREADS);
        let runtime = builder.thread_name("contexture").enable_all().build();
        runtime.map(Arc::new).map_err(|error| {
            let detail = format!("the operating system starts no thread: {error}");
            Failure::new("no_threads", detail)
        })
    })
}
