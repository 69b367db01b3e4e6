//! [`Calls`] on PostgreSQL.

use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{CallId, ConversationId, Owner};
use contexture_store::{
    CallGroup, CallPage, CallRecord, CallSum, Calls, ConversationCalls, Error, ListCalls, SumCalls,
    SweepCalls, SweptCalls, rules,
};

use crate::calls;
use crate::connection::pool::Access;
use crate::store::PostgresStore;

#[async_trait]
impl Calls for PostgresStore {
    async fn record_calls(&self, owner: &Owner, calls: Vec<CallRecord>) -> Result<(), Error> {
        rules::check_calls(&calls, &self.limits)?;
        self.server
            .run_transaction(Access::WriteIdempotent, owner, |tx| {
                Box::pin(calls::record_calls(tx, owner, &calls))
            })
            .await
    }

    async fn load_call(&self, owner: &Owner, id: CallId) -> Result<Option<CallRecord>, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(calls::load_call(tx, owner, id))
            })
            .await
    }

    async fn load_call_body(&self, owner: &Owner, id: CallId) -> Result<Option<Arc<[u8]>>, Error> {
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(calls::load_body(tx, owner, id))
            })
            .await
    }

    async fn list_calls(&self, owner: &Owner, list: ListCalls) -> Result<CallPage, Error> {
        self.server
            .run_transaction(Access::Scan, owner, |tx| {
                Box::pin(calls::list_calls(tx, owner, &list))
            })
            .await
    }

    async fn sum_calls(
        &self,
        owner: &Owner,
        sum: SumCalls,
    ) -> Result<Vec<(CallGroup, CallSum)>, Error> {
        rules::check_sum_calls(&sum)?;
        self.server
            .run_transaction(Access::Scan, owner, |tx| {
                Box::pin(calls::sum_calls(tx, owner, &sum, &self.limits))
            })
            .await
    }

    async fn sum_conversations(
        &self,
        owner: &Owner,
        conversations: &[ConversationId],
    ) -> Result<Vec<ConversationCalls>, Error> {
        rules::check_sum_conversations(conversations, &self.limits)?;
        self.server
            .run_transaction(Access::Scan, owner, |tx| {
                Box::pin(calls::sum_conversations(tx, owner, conversations))
            })
            .await
    }

    async fn list_call_owners(
        &self,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<Owner>, Error> {
        self.server
            .run_transaction(Access::Maintenance, None, |tx| {
                Box::pin(calls::list_owners(tx, after, limit))
            })
            .await
    }

    async fn sweep_calls(&self, owner: &Owner, sweep: SweepCalls) -> Result<SweptCalls, Error> {
        // Run twice, the second run finds nothing that the first one has done.
        self.server
            .run_transaction(Access::WriteIdempotent, owner, |tx| {
                Box::pin(calls::sweep_calls(tx, owner, sweep))
            })
            .await
    }
}
