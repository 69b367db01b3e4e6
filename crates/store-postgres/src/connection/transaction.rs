//! A transaction: queries that are awaited, and writes that are sent with the commit.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, MaybeDone, maybe_done, poll_fn};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, RowStream};

use crate::connection::error::RowError;
use crate::connection::params::Param;
use crate::connection::turns::LentClient;

/// A transaction in progress.
///
/// A query is sent when its future is first polled, so joined queries share a round trip. Writes
/// are collected and sent together with the commit, so queries do not see them. Only
/// [`Tx::execute`], which counts rows, writes at once.
///
/// Dropped without a commit, the transaction is rolled back before the connection is used again;
/// the drop does not wait for that.
///
/// `'env` is the lifetime of what the work may borrow.
pub(crate) struct Tx<'env> {
    client: Arc<LentClient>,
    deferred: Vec<Statement>,
    has_written: bool,
    is_open: bool,
    env: PhantomData<&'env ()>,
}

/// A statement with its parameters.
struct Statement {
    sql: &'static str,
    params: Vec<Param>,
}

type BoundParam<'a> = (&'a (dyn ToSql + Sync), Type);

/// Converts parameters to the form that the client takes.
pub(crate) fn bind_params(params: &[Param]) -> Vec<BoundParam<'_>> {
    let mut bound: Vec<BoundParam<'_>> = Vec::with_capacity(params.len());
    for param in params {
        bound.push((&*param.value, param.kind.clone()));
    }
    bound
}

impl Tx<'_> {
    /// Creates a transaction; the caller must send BEGIN before the first query.
    pub(crate) fn new(client: Arc<LentClient>) -> Self {
        Self {
            client,
            deferred: Vec::new(),
            has_written: false,
            is_open: true,
            env: PhantomData,
        }
    }

    /// Returns the rows of a query.
    pub(crate) async fn query_rows(
        &self,
        sql: &str,
        params: Vec<Param>,
    ) -> Result<Vec<Row>, RowError> {
        Ok(self.client.query_typed(sql, &bind_params(&params)).await?)
    }

    /// Returns the row of a query that has at most one.
    pub(crate) async fn query_row(
        &self,
        sql: &str,
        params: Vec<Param>,
    ) -> Result<Option<Row>, RowError> {
        Ok(self.query_rows(sql, params).await?.into_iter().next())
    }

    /// Returns the rows of a query as a stream.
    pub(crate) async fn query_stream(
        &self,
        sql: &str,
        params: Vec<Param>,
    ) -> Result<RowStream, RowError> {
        Ok(self
            .client
            .query_typed_raw(sql, bind_params(&params))
            .await?)
    }

    /// Runs a write at once; returns the number of affected rows.
    pub(crate) async fn execute(&mut self, sql: &str, params: Vec<Param>) -> Result<u64, RowError> {
        // Set before the answer: even a write that is dropped must end the transaction.
        self.has_written = true;
        Ok(self
            .client
            .execute_typed(sql, &bind_params(&params))
            .await?)
    }

    /// Queues a write that is sent with the commit.
    pub(crate) fn execute_on_commit(&mut self, sql: &'static str, params: Vec<Param>) {
        self.deferred.push(Statement { sql, params });
    }

    /// Returns whether there is nothing to commit.
    pub(crate) fn is_idle(&self) -> bool {
        self.deferred.is_empty() && !self.has_written
    }

    /// Sends the queued writes and the commit, then waits for all of them.
    pub(crate) async fn commit(mut self) -> Result<(), Error> {
        self.is_open = false;
        // The commit is sent without waiting for the writes. If one fails, the server turns the
        // commit into a rollback.
        let mut flight: Vec<BoxFuture<'_, Result<(), Error>>> =
            Vec::with_capacity(self.deferred.len() + 1);
        for statement in &self.deferred {
            flight.push(Box::pin(async {
                let params = bind_params(&statement.params);
                self.client.execute_typed(statement.sql, &params).await?;
                Ok(())
            }));
        }
        flight.push(Box::pin(self.client.batch_execute("COMMIT")));
        // The first failure in order is the cause; the server refuses all later statements.
        in_order(flight).await.into_iter().collect()
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // Polling once sends it, before anything else on this connection. A drop cannot wait
            // for the answer.
            let _sent = self.client.batch_execute("ROLLBACK").now_or_never();
        }
    }
}

/// Polls all futures in order until all are complete; returns their outputs.
async fn in_order<F: Future + Unpin>(futures: Vec<F>) -> Vec<F::Output>
where
    F::Output: Unpin,
{
    let mut running: Vec<MaybeDone<F>> = futures.into_iter().map(maybe_done).collect();
    poll_fn(|cx| {
        let mut pending = false;
        for future in &mut running {
            // No short circuit: polling every future in this order sends their statements in this
            // order.
            pending |= Pin::new(future).poll(cx).is_pending();
        }
        if pending {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    let mut outputs = Vec::with_capacity(running.len());
    for future in &mut running {
        outputs.extend(Pin::new(future).take_output());
    }
    outputs
}
