//! The connection pool: begins transactions and retries them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contexture_ir::Owner;
use contexture_store::{Error, FairPermits, PermitLimits, StorageFault};
use deadpool_postgres::{
    Client, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime,
};
use futures_util::future::{BoxFuture, join};
use tokio::time::{Instant, timeout_at};

use crate::connection::address::DatabaseAddress;
use crate::connection::error::{
    FailureEffect, RowError, from_postgres, is_out_of_connections, is_unreachable,
    unavailable_error,
};
use crate::connection::tls::Tls;
use crate::connection::transaction::Tx;
use crate::connection::turns::{LentClient, Turns};
use crate::options::PostgresOptions;

/// Largest number of attempts of one call, the first included.
const ATTEMPTS: usize = 5;

/// Checks and other reads of everything that run at once.
const MAINTENANCE_READS: usize = 2;

/// Kind of access of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads rows by their keys, or a small page of them, from one snapshot and within the time limit of reads.
    Read,
    /// As `Read`, but many nodes of a path: whole conversations, exports, large pages.
    Path,
    /// As `Read`, but may read many rows to return few: searches, lists of conversations, statistics.
    Scan,
    /// Reads from one snapshot as much as there is: checks.
    Maintenance,
    /// Writes, and must not run twice: the second run would have another effect.
    Write,
    /// Writes, and may run twice: the second run changes nothing.
    WriteIdempotent,
}

/// Pool of connections to a database.
pub(crate) struct ConnectionPool {
    pool: Pool,
    turns: Turns,
    /// How long a call waits for its permit and a connection together.
    wait: Duration,
    address: Arc<PathBuf>,
    begin_read: String,
    begin_write: String,
    lanes: Lanes,
    tls: Tls,
    interrupted: AtomicU64,
}

/// Permits of each kind of access: what one kind, or one owner, does at once leaves connections to the others.
///
/// The lanes together have more permits than there are connections: whoever has a permit may still wait for a connection.
struct Lanes {
    reads: FairPermits,
    paths: FairPermits,
    scans: FairPermits,
    maintenance: FairPermits,
    writes: FairPermits,
}

impl Lanes {
    fn new(connections: usize, options: &PostgresOptions) -> Self {
        // One place is always left for somebody else.
        let shared = |total: usize| {
            FairPermits::new(PermitLimits {
                total,
                per_owner: total.saturating_sub(1),
            })
        };
        let all_but_one = connections.saturating_sub(1);
        Self {
            reads: shared(connections),
            paths: shared(connections.div_ceil(2)),
            scans: FairPermits::new(PermitLimits {
                total: options.scans.min(all_but_one),
                per_owner: options.scans_per_owner,
            }),
            maintenance: FairPermits::new(PermitLimits {
                total: MAINTENANCE_READS.min(all_but_one),
                per_owner: MAINTENANCE_READS,
            }),
            // Writes can wait for each other for seconds, and must not do so on all connections.
            writes: shared(connections - connections / 4),
        }
    }

    const fn permits(&self, access: Access) -> &FairPermits {
        match access {
            Access::Read => &self.reads,
            Access::Path => &self.paths,
            Access::Scan => &self.scans,
            Access::Maintenance => &self.maintenance,
            Access::Write | Access::WriteIdempotent => &self.writes,
        }
    }
}

/// Failed attempt of a transaction.
struct FailedAttempt {
    error: Error,
    effect: FailureEffect,
    /// Whether the error is one of the contract, and not of the database.
    refused: bool,
    /// Whether the commit was sent.
    sent: bool,
}

impl ConnectionPool {
    /// Creates the pool; connections are made when they are needed.
    pub(crate) fn new(address: DatabaseAddress, options: &PostgresOptions) -> Result<Self, Error> {
        let config = ManagerConfig {
            // No check on reuse: a transaction that finds its connection broken is retried.
            recycling_method: RecyclingMethod::Fast,
        };
        let mut target = address.config;
        if target.get_connect_timeout().is_none() {
            target.connect_timeout(options.connect_timeout);
        }
        let tls = address.tls.clone();
        let manager = match address.tls {
            Tls::Off(off) => Manager::from_config(target, off, config),
            Tls::On(tls) => Manager::from_config(target, tls, config),
        };
        let connections = options.connections.max(1);
        let pool = Pool::builder(manager)
            .max_size(connections)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::invalid_argument("options", error.to_string()))?;
        let ms = |time: Duration| time.as_millis().clamp(1, 2_147_483_647);
        Ok(Self {
            pool,
            turns: Turns::new(connections),
            wait: options.wait,
            address: Arc::new(address.shown),
            tls,
            lanes: Lanes::new(connections, options),
            interrupted: AtomicU64::new(0),
            begin_read: format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {}",
                ms(options.read_timeout)
            ),
            begin_write: format!(
                // READ COMMITTED suffices, since each write first locks the rows that it depends
                // on: the conversation's, or those of a stream or of single values. A higher level
                // would only add failures to retry. SET LOCAL ends with the transaction, as poolers
                // require.
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
                 SET LOCAL lock_timeout = {}; \
                 SET LOCAL idle_in_transaction_session_timeout = {}",
                ms(options.lock_timeout),
                ms(options.idle_timeout)
            ),
        })
    }

    /// Returns the address of the database without the password, for errors.
    pub(crate) fn address(&self) -> &Path {
        &self.address
    }

    /// Takes a connection from the pool or opens one; [`Error::Busy`] if that takes too long, or if the server gives none.
    /// Waits first for a permit of this kind of access, which counts for `owner` if the work is for one.
    pub(crate) async fn get_client(
        &self,
        access: Access,
        owner: Option<&Owner>,
    ) -> Result<LentClient, Error> {
        let give_up = Instant::now() + self.wait;
        let all_in_use = || busy_error("all connections are in use");
        let permit = self.permits(access).acquire_permit(owner);
        let permit = timeout_at(give_up, permit).await;
        let permit = permit.map_err(|_| all_in_use())?;
        loop {
            let turn = self.turns.wait_for_turn(give_up).await;
            let turn = turn.ok_or_else(all_in_use)?;
            let error = match self.pool.get().await {
                Ok(client) => return Ok(LentClient::new(client, turn, permit)),
                Err(error) => error,
            };
            let is_full =
                matches!(&error, PoolError::Backend(error) if is_out_of_connections(error));
            // Waits for one of the connections that there are.
            if !is_full || !self.turns.withhold(turn) {
                return Err(self.no_connection(error));
            }
        }
    }

    /// Returns how many calls were cancelled on the server because their callers left.
    pub(crate) fn interrupted_calls(&self) -> u64 {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Returns the permits of a kind of access.
    pub(crate) const fn permits(&self, access: Access) -> &FairPermits {
        self.lanes.permits(access)
    }

    /// Runs `work` in one transaction, for `owner` if it is done for one, and retries it where that is safe and may help.
    pub(crate) async fn run_transaction<'env, T, W>(
        &self,
        access: Access,
        owner: impl Into<Option<&Owner>>,
        work: W,
    ) -> Result<T, Error>
    where
        T: Send,
        W: for<'t> Fn(&'t mut Tx<'env>) -> BoxFuture<'t, Result<T, RowError>> + Send + Sync,
    {
        let owner = owner.into();
        let mut in_doubt = false;
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            let failed = match self.attempt_transaction(access, owner, &work).await {
                Ok(value) => return Ok(value),
                Err(failed) => failed,
            };
            // Once a commit may have arrived, a later failure of another kind does not remove the
            // doubt.
            in_doubt |= failed.sent && failed.effect == FailureEffect::Lost;
            let should_retry = match failed.effect {
                FailureEffect::Final => false,
                // The server has rolled the transaction back.
                FailureEffect::Collision => true,
                // Safe before the commit was sent, and after that for idempotent calls.
                FailureEffect::Lost => !in_doubt || access != Access::Write,
            };
            if should_retry && attempts > 0 {
                continue;
            }
            // An error of the contract after a doubtful commit is an answer: the retry was checked
            // against what is stored now.
            if in_doubt && !failed.refused {
                return Err(Error::OutcomeUnknown {
                    source: Box::new(failed.error),
                });
            }
            return Err(failed.error);
        }
    }

    async fn attempt_transaction<'env, T, W>(
        &self,
        access: Access,
        owner: Option<&Owner>,
        work: &W,
    ) -> Result<T, FailedAttempt>
    where
        T: Send,
        W: for<'t> Fn(&'t mut Tx<'env>) -> BoxFuture<'t, Result<T, RowError>> + Send + Sync,
    {
        // Declared first and so dropped last.
        let mut leaving = CancelOnDrop {
            pool: self,
            running: None,
        };
        let client = self.get_client(access, owner).await;
        let client = client.map_err(|error| FailedAttempt {
            error,
            effect: FailureEffect::Final,
            refused: false,
            sent: false,
        })?;
        let begin = match access {
            Access::Read | Access::Path | Access::Scan => &self.begin_read,
            Access::Maintenance => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Access::Write | Access::WriteIdempotent => &self.begin_write,
        };
        let client = Arc::new(client);
        let mut tx = Tx::new(Arc::clone(&client));
        leaving.running = Some(Arc::clone(&client));
        // BEGIN is sent together with the first queries.
        let (begun, worked) = join(client.batch_execute(begin), work(&mut tx)).await;
        // From here on the commit may be on its way, and its outcome must not be made uncertain.
        leaving.disarm();
        // If BEGIN failed, the error of the work is only its consequence.
        let worked = begun.map_err(RowError::Sql).and(worked);
        let value = worked.map_err(|fault| self.failed_attempt(fault, false))?;
        // Without writes, the round trip of a commit is saved; dropping the transaction rolls back.
        if !tx.is_idle() {
            let committed = tx.commit().await;
            committed.map_err(|error| self.failed_attempt(RowError::Sql(error), true))?;
        }
        Ok(value)
    }

    fn failed_attempt(&self, fault: RowError, sent: bool) -> FailedAttempt {
        FailedAttempt {
            effect: fault.failure_effect(),
            refused: matches!(fault, RowError::Store(_)),
            error: fault.into_error(&self.address),
            sent,
        }
    }

    fn no_connection(&self, error: PoolError) -> Error {
        match error {
            PoolError::Timeout(_) => busy_error("making a connection takes too long"),
            PoolError::Backend(error) if is_unreachable(&error) => {
                unavailable_error(error, &self.address)
            }
            PoolError::Backend(error) if error.as_db_error().is_none() => Error::Storage {
                path: self.address.to_path_buf(),
                fault: StorageFault::CannotOpen,
                source: Some(Box::new(error)),
            },
            PoolError::Backend(error) => from_postgres(error, &self.address),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
                Error::Closed
            }
        }
    }
}

fn busy_error(why: &str) -> Error {
    Error::Busy {
        why: why.to_owned(),
    }
}

/// Cancels what the server does for a call whose future is dropped.
///
/// The connection is not used again: the cancellation comes on another one, and could arrive when the
/// statement has ended and somebody else's runs.
struct CancelOnDrop<'a> {
    pool: &'a ConnectionPool,
    /// `None` while there is nothing to cancel.
    running: Option<Arc<LentClient>>,
}

impl CancelOnDrop<'_> {
    fn disarm(&mut self) {
        self.running = None;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        // The transaction was dropped before, so this is the only handle.
        let Some(client) = self.running.take().and_then(Arc::into_inner) else {
            return;
        };
        self.pool.interrupted.fetch_add(1, Ordering::Relaxed);
        let token = client.cancel_token();
        drop(Client::take(client.into_client()));
        // Without a runtime the process is ending, and the server notices that.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let tls = self.pool.tls.clone();
        runtime.spawn(async move {
            // If the request does not arrive, the statement ends by its time limit.
            let _sent = match tls {
                Tls::Off(off) => token.cancel_query(off).await,
                Tls::On(tls) => token.cancel_query(tls).await,
            };
        });
    }
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConnectionPool")
            .field(&self.address)
            .finish()
    }
}
