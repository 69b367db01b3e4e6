//! A transaction from the inside: questions now, writes with the commit.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use deadpool_postgres::Client;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, MaybeDone, maybe_done, poll_fn};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, RowStream};

use crate::connection::error::RowError;
use crate::connection::params::Param;

/// A transaction in progress.
///
/// Questions are asked when their future is first polled; those joined are on the wire together.
/// Writes are collected and go out with the commit, in one flight; so nothing may depend on what it
/// has written itself. Only what counts the rows it writes does so at once.
///
/// Dropped without a commit, it is rolled back, before anything that the connection is used for
/// next; nobody waits for that.
///
/// `'env` is what the work done in it may borrow.
pub(crate) struct Tx<'env> {
    client: Arc<Client>,
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

/// Parameters as the client takes them.
pub(crate) fn bind_params(params: &[Param]) -> Vec<BoundParam<'_>> {
    let mut bound: Vec<BoundParam<'_>> = Vec::with_capacity(params.len());
    for param in params {
        bound.push((&*param.value, param.kind.clone()));
    }
    bound
}

impl Tx<'_> {
    /// The client must be told to begin before the first question is asked.
    pub(crate) fn new(client: Arc<Client>) -> Self {
        Self {
            client,
            deferred: Vec::new(),
            has_written: false,
            is_open: true,
            env: PhantomData,
        }
    }

    /// The rows of a query.
    pub(crate) async fn query_rows(
        &self,
        sql: &str,
        params: Vec<Param>,
    ) -> Result<Vec<Row>, RowError> {
        Ok(self.client.query_typed(sql, &bind_params(&params)).await?)
    }

    /// The one row of a query that has at most one.
    pub(crate) async fn query_row(
        &self,
        sql: &str,
        params: Vec<Param>,
    ) -> Result<Option<Row>, RowError> {
        Ok(self.query_rows(sql, params).await?.into_iter().next())
    }

    /// The rows of a query, as they come.
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

    /// Writes at once; gives the number of rows.
    pub(crate) async fn execute(&mut self, sql: &str, params: Vec<Param>) -> Result<u64, RowError> {
        // Set before the answer: a write that failed or was given up still needs the end of the
        // transaction.
        self.has_written = true;
        Ok(self
            .client
            .execute_typed(sql, &bind_params(&params))
            .await?)
    }

    /// Writes with the commit.
    pub(crate) fn execute_on_commit(&mut self, sql: &'static str, params: Vec<Param>) {
        self.deferred.push(Statement { sql, params });
    }

    /// Whether there is anything to commit.
    pub(crate) fn is_idle(&self) -> bool {
        self.deferred.is_empty() && !self.has_written
    }

    /// Sends what was written and the commit, then waits for both.
    pub(crate) async fn commit(mut self) -> Result<(), Error> {
        self.is_open = false;
        // The commit is sent right behind the writes, without waiting for them. If one fails, the
        // server turns the commit into a rollback, so nothing is half done.
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
        // The first failure in order is the cause; the server refuses whatever follows it.
        in_order(flight).await.into_iter().collect()
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // Polled once, which puts it on the wire; the connection sends whatever comes next
            // behind it. A drop cannot wait.
            let _sent = self.client.batch_execute("ROLLBACK").now_or_never();
        }
    }
}

/// Begins all, each before the next, and waits for all.
async fn in_order<F: Future + Unpin>(futures: Vec<F>) -> Vec<F::Output>
where
    F::Output: Unpin,
{
    let mut running: Vec<MaybeDone<F>> = futures.into_iter().map(maybe_done).collect();
    poll_fn(|cx| {
        let mut pending = false;
        for future in &mut running {
            // No short circuit: every future must be polled once in this order, for its statement
            // to be sent in this order.
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
