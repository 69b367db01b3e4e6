//! The connection pool: begins transactions and retries them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contexture_store::{Error, StorageFault};
use deadpool_postgres::{
    Client, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use futures_util::future::{BoxFuture, join};

use crate::connection::address::DatabaseAddress;
use crate::connection::error::{FailureEffect, RowError, from_postgres};
use crate::connection::tls::Tls;
use crate::connection::transaction::Tx;
use crate::options::PostgresOptions;

/// Largest number of attempts of one call, the first included.
const ATTEMPTS: usize = 5;

/// Kind of access of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads from one snapshot.
    Read,
    /// Writes, and must not run twice: the second run would have another effect.
    Write,
    /// Writes, and may run twice: the second run changes nothing.
    WriteIdempotent,
}

/// Pool of connections to a database.
pub(crate) struct ConnectionPool {
    pool: Pool,
    address: Arc<PathBuf>,
    begin_write: String,
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
        let manager = match address.tls {
            Tls::Off(off) => Manager::from_config(target, off, config),
            Tls::On(tls) => Manager::from_config(target, tls, config),
        };
        let pool = Pool::builder(manager)
            .max_size(options.connections.max(1))
            .wait_timeout(Some(options.wait))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::invalid_argument("options", error.to_string()))?;
        let ms = |time: Duration| time.as_millis().clamp(1, 2_147_483_647);
        Ok(Self {
            pool,
            address: Arc::new(address.shown),
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

    /// Takes a connection from the pool or opens one; [`Error::Busy`] if that takes too long.
    pub(crate) async fn get_client(&self) -> Result<Client, Error> {
        let client = self.pool.get().await;
        client.map_err(|error| self.no_connection(error))
    }

    /// Runs `work` in one transaction, and retries it where that is safe and may help.
    pub(crate) async fn run_transaction<'env, T, W>(
        &self,
        access: Access,
        work: W,
    ) -> Result<T, Error>
    where
        T: Send,
        W: for<'t> Fn(&'t mut Tx<'env>) -> BoxFuture<'t, Result<T, RowError>> + Send + Sync,
    {
        let mut in_doubt = false;
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            let failed = match self.attempt_transaction(access, &work).await {
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
        work: &W,
    ) -> Result<T, FailedAttempt>
    where
        T: Send,
        W: for<'t> Fn(&'t mut Tx<'env>) -> BoxFuture<'t, Result<T, RowError>> + Send + Sync,
    {
        let client = self.get_client().await.map_err(|error| FailedAttempt {
            error,
            effect: FailureEffect::Final,
            refused: false,
            sent: false,
        })?;
        let begin = match access {
            Access::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Access::Write | Access::WriteIdempotent => &self.begin_write,
        };
        let client = Arc::new(client);
        let mut tx = Tx::new(Arc::clone(&client));
        // BEGIN is sent together with the first queries.
        let (begun, worked) = join(client.batch_execute(begin), work(&mut tx)).await;
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
        let busy = |why: &str| Error::Busy {
            why: why.to_owned(),
        };
        match error {
            PoolError::Timeout(TimeoutType::Wait) => busy("all connections are in use"),
            PoolError::Timeout(_) => busy("making a connection takes too long"),
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

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConnectionPool")
            .field(&self.address)
            .finish()
    }
}
