//! Operations that run while Python does something else, and the thread that hands over what they end with.
//!
//! Results go through one thread of ours, and not from the runtime's: taking the interpreter's lock may take as long as a Python
//! function runs, during which the runtime must go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use contexture::ir::Cancel;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::task::AbortHandle;

use crate::failure::Failure;
use crate::operations::Reply;
use crate::process::ProcessCell;

/// What an operation ended with: whether it succeeded, a JSON document (of the result or the error), and raw bytes beside it.
pub(crate) type Outcome<'py> = (bool, Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>);

/// An operation that runs.
#[derive(Debug)]
pub(crate) struct RunningTask {
    handle: AbortHandle,
    cancel: Cancel,
    /// The process whose runtime works on it: in another one that runtime's locks may be held by nobody.
    process: u32,
}

impl RunningTask {
    pub(crate) fn new(handle: AbortHandle, cancel: Cancel) -> Self {
        Self {
            handle,
            cancel,
            process: std::process::id(),
        }
    }

    /// Drops what is left of the operation. What was stored stays stored.
    pub(crate) fn cancel(&self) {
        if self.process == std::process::id() {
            // A compile looks at the flag on its way; what waits for the database is dropped where it waits.
            self.cancel.cancel();
            self.handle.abort();
        }
    }
}

/// A started operation, for asyncio.
#[pyclass(frozen, module = "contexture._native")]
#[derive(Debug)]
pub(crate) struct Task {
    running: RunningTask,
}

impl Task {
    pub(crate) const fn new(running: RunningTask) -> Self {
        Self { running }
    }
}

#[pymethods]
impl Task {
    /// Cancels the operation: its callback may not be called any more. What was stored stays stored.
    fn cancel(&self) {
        self.running.cancel();
    }
}

/// What the thread that hands over is told.
enum Message {
    /// Hand this result over to this function.
    Deliver(Py<PyAny>, Result<Reply, Failure>),
    /// End.
    Stop,
}

/// The way to the thread that hands results over.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    sender: Sender<Message>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Delivery {
    pub(crate) fn send(&self, callback: Py<PyAny>, outcome: Result<Reply, Failure>) {
        // The thread is gone when the interpreter ends, and then nobody waits.
        let _ = self.sender.send(Message::Deliver(callback, outcome));
    }
}

static DELIVERY: ProcessCell<Delivery> = ProcessCell::new();

/// Whether the interpreter ends.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Returns the way to this process's thread, which starts with the first task.
///
/// # Errors
/// The operating system starts no thread, or the interpreter ends.
pub(crate) fn delivery(py: Python<'_>) -> Result<Delivery, Failure> {
    if IS_ENDING.load(Ordering::SeqCst) {
        let detail = "no task can be started any more: the interpreter ends";
        return Err(Failure::new("closed", detail));
    }
    DELIVERY.try_get_or_make(py, || {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new().name("contexture-deliver".to_owned());
        let thread = thread.spawn(move || deliver(&receiver)).map_err(|error| {
            let detail = format!("the operating system starts no thread: {error}");
            Failure::new("no_threads", detail)
        })?;
        Ok(Delivery {
            sender,
            thread: Arc::new(Mutex::new(Some(thread))),
        })
    })
}

/// Ends the thread that hands over. Python calls it before the interpreter ends: a thread that runs Python code then would be ended
/// in the middle of it.
#[pyfunction]
pub(crate) fn end_delivery(py: Python<'_>) {
    IS_ENDING.store(true, Ordering::SeqCst);
    let Some(delivery) = DELIVERY.take(py) else {
        return;
    };
    let _ = delivery.sender.send(Message::Stop);
    let mut thread = delivery
        .thread
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(thread) = thread.take() {
        // It may be about to hand over, for which it needs the lock.
        let _ = py.detach(move || thread.join());
    }
}

fn deliver(receiver: &Receiver<Message>) {
    while let Ok(Message::Deliver(callback, outcome)) = receiver.recv() {
        let stopped = Python::try_attach(|py| {
            hand_over(py, &callback, outcome);
            // All that has come meanwhile, for one change of the lock.
            loop {
                match receiver.try_recv() {
                    Ok(Message::Deliver(callback, outcome)) => hand_over(py, &callback, outcome),
                    Ok(Message::Stop) => return true,
                    Err(_) => return false,
                }
            }
        });
        // None: the interpreter has ended already.
        if stopped.unwrap_or(true) {
            return;
        }
    }
}

fn hand_over(py: Python<'_>, callback: &Py<PyAny>, outcome: Result<Reply, Failure>) {
    // It fails if the event loop was closed before its task ended, and then there is nobody to tell.
    let _ = callback.call1(py, to_python(py, outcome));
}

/// Makes an exception whose one argument is the document of a failure; the Python half raises its own class for it.
pub(crate) fn raise(failure: Failure) -> PyErr {
    let document = String::from_utf8(failure.to_json()).unwrap_or_default();
    PyRuntimeError::new_err(document)
}

/// Converts what an operation ended with.
pub(crate) fn to_python(py: Python<'_>, outcome: Result<Reply, Failure>) -> Outcome<'_> {
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
    match outcome {
        Ok(reply) => {
            let attachments = reply.attachments.iter();
            let attachments = attachments.map(|one| bytes(one)).collect();
            (true, bytes(&reply.document), attachments)
        }
        Err(failure) => (false, bytes(&failure.to_json()), Vec::new()),
    }
}
