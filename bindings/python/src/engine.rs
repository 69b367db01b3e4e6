//! The engine as Python holds it: an address and options. What is behind it is opened on first use, once for each process.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use contexture::layers::builtin::SkillFolders;
use contexture::{DatabaseAddress, Engine};
use contexture_api::policy::PolicyConfig;
use futures_util::FutureExt as _;
use pyo3::prelude::*;
use tokio::sync::OnceCell;

use crate::failure::Failure;
use crate::fork;
use crate::operations::{self, Place, Reply, Request, Settings};
use crate::process::{self, ProcessCell};
use crate::task::{self, Outcome, RunningTask, Task, to_python};

/// How long a synchronous call waits before it looks whether somebody pressed Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Bytes of what was counted and written for the conversations used last.
const HANDLE_CACHE_BYTES: usize = 256 << 20;

/// The database of one process; it is opened by the first operation that needs it.
type Opened = Arc<OnceCell<Engine>>;

/// An engine: `Engine(address, policies, skills)` with policies as a JSON object and skills as folders.
#[pyclass(frozen, module = "contexture._native", name = "Engine")]
#[derive(Debug)]
pub(crate) struct NativeEngine {
    address: String,
    database: DatabaseAddress,
    settings: Arc<Settings>,
    opened: Arc<ProcessCell<Opened>>,
    /// The process that created it: the only one that a database in memory belongs to.
    process: u32,
}

#[pymethods]
impl NativeEngine {
    /// Checks address and options. Opens nothing, so that a program may fork after it.
    #[new]
    fn new(
        py: Python<'_>,
        address: String,
        policies: &[u8],
        skills: Vec<PathBuf>,
    ) -> PyResult<Self> {
        // Here and not at the first call, so that a misspelt address is found where it is written.
        let database: Result<DatabaseAddress, Failure> = address.parse().map_err(Failure::from);
        let database = database.map_err(task::raise)?;
        let settings = read_settings(policies, &skills).map_err(task::raise)?;
        let opened = Arc::new(ProcessCell::new());
        if database.sqlite_file().is_some() {
            fork::close_before_forks(py, &opened);
        }
        Ok(Self {
            address,
            database,
            settings: Arc::new(settings),
            opened,
            process: std::process::id(),
        })
    }

    /// Runs an operation to its end. The interpreter's lock is released, and signals are handled, as long as it runs.
    fn call<'py>(
        &self,
        py: Python<'py>,
        operation: String,
        place: Place,
        document: &[u8],
        attachment: Option<&[u8]>,
    ) -> PyResult<Outcome<'py>> {
        let request = Request::new(operation, place, document, attachment);
        let (sender, mut receiver) = mpsc::sync_channel(1);
        let spawned = self.spawn(py, request, move |outcome| {
            // The receiver is gone if a signal ended the call.
            let _ = sender.send(outcome);
        });
        let running = match spawned {
            Ok(running) => running,
            Err(failure) => return Ok(to_python(py, Err(failure))),
        };
        loop {
            let (received, again) = py.detach(move || {
                let received = receiver.recv_timeout(SIGNAL_INTERVAL);
                (received, receiver)
            });
            receiver = again;
            match received {
                Ok(outcome) => return Ok(to_python(py, outcome)),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(interrupt) = py.check_signals() {
                        running.cancel();
                        return Err(interrupt);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let failure = Failure::new("internal", "the operation ended without a result");
                    return Ok(to_python(py, Err(failure)));
                }
            }
        }
    }

    /// Starts an operation. `callback(ok, document, attachments)` is called once, from another thread, unless it is cancelled.
    fn start(
        &self,
        py: Python<'_>,
        operation: String,
        place: Place,
        document: &[u8],
        attachment: Option<&[u8]>,
        callback: Py<PyAny>,
    ) -> PyResult<Task> {
        let request = Request::new(operation, place, document, attachment);
        let deliver = task::delivery(py).map_err(task::raise)?;
        let running = self.spawn(py, request, move |outcome| deliver.send(callback, outcome));
        Ok(Task::new(running.map_err(task::raise)?))
    }

    /// Closes what this process has opened; what still runs ends first. A later call opens it again.
    fn close(&self, py: Python<'_>) {
        let opened = self.opened.take(py);
        // The last connection may write the file's log back.
        py.detach(move || drop(opened));
    }
}

impl NativeEngine {
    fn spawn(
        &self,
        py: Python<'_>,
        request: Request,
        done: impl FnOnce(Result<Reply, Failure>) + Send + 'static,
    ) -> Result<RunningTask, Failure> {
        let runtime = process::runtime(py)?;
        let operation = fork::begin_operation(py);
        let opened = self.opened(py)?;
        let address = self.address.clone();
        let settings = Arc::clone(&self.settings);
        let cancel = request.cancel.clone();
        let work = async move {
            if request.is_migration() {
                // Before it is opened: a database without tables cannot be.
                return operations::migrate(&address).await;
            }
            let engine = opened.get_or_try_init(|| open_engine(&address)).await?;
            operations::run(engine, &settings, &request).await
        };
        let handle = runtime.spawn(async move {
            // A panic would otherwise end the task without a word, and whoever waits for it would wait for ever.
            let ended = AssertUnwindSafe(work).catch_unwind().await;
            // Before the result is told, as whoever gets it may fork next. What it held is closed by now.
            drop(operation);
            done(ended.unwrap_or_else(|panic| Err(Failure::from_panic(&*panic))));
        });
        Ok(RunningTask::new(handle.abort_handle(), cancel))
    }

    fn opened(&self, py: Python<'_>) -> Result<Opened, Failure> {
        if self.database == DatabaseAddress::Memory && self.process != std::process::id() {
            let detail = "a database in memory belongs to the process that created it, and this one was forked from it";
            return Err(Failure::new("forked", detail));
        }
        if self.database.sqlite_file().is_some() && self.opened.is_inherited(py) {
            let detail = "the file was open when this process was forked, without Python's knowing or while an operation ran for long";
            return Err(Failure::new("forked", detail));
        }
        Ok(self.opened.get_or_make(py, || Arc::new(OnceCell::new())))
    }
}

async fn open_engine(address: &str) -> Result<Engine, Failure> {
    let engine = contexture::open(address).await?;
    Ok(engine.with_handle_cache(HANDLE_CACHE_BYTES))
}

/// Says what to do instead of a member of a policy that only a server follows.
fn instead_of(member: &str) -> &'static str {
    match member {
        "redact" => {
            "keys and passwords are taken out by `contexture serve`, before a message is stored"
        }
        "skills" => {
            "folders of skills are given to the engine, `Engine(skills=[…])`, and named by `compile(skills=[…])`"
        }
        _ => "no model is asked for summaries here; expected `manifest`",
    }
}

fn read_settings(policies: &[u8], skills: &[PathBuf]) -> Result<Settings, Failure> {
    let policies: BTreeMap<String, PolicyConfig> = serde_json::from_slice(policies)
        .map_err(|error| Failure::argument("policies", error.to_string()))?;
    for (name, policy) in &policies {
        if let Some(fault) = policy.first_fault() {
            let member = format!("policies.{name}.{}", fault.path.join("."));
            return Err(Failure::argument(&member, fault.detail));
        }
        if let Some(member) = policy.first_server_member() {
            let place = format!("policies.{name}.{member}");
            return Err(Failure::argument(&place, instead_of(member)));
        }
    }
    let folders = SkillFolders::new();
    let folders = skills.iter().fold(folders, SkillFolders::with_folder);
    let loaded = folders.load_skills();
    if let Some(refused) = loaded.refused.first() {
        let detail = format!("{}: {}", refused.path.display(), refused.error);
        return Err(Failure::argument("skills", detail));
    }
    Ok(Settings {
        policies,
        skills: loaded.skills,
    })
}
