//! [`Calls`] on SQLite.

use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{CallId, ConversationId, Owner};
use contexture_store::{
    CallGroup, CallPage, CallRecord, CallSum, Calls, ConversationCalls, Error, ListCalls, SumCalls,
    SweepCalls, SweptCalls, rules,
};

use crate::calls;
use crate::store::SqliteStore;
use crate::worker::call_queue::CallLoad;
use crate::worker::read_pool::ReadKind;

#[async_trait]
impl Calls for SqliteStore {
    async fn record_calls(&self, owner: &Owner, calls: Vec<CallRecord>) -> Result<(), Error> {
        rules::check_calls(&calls, &self.limits)?;
        let owner = owner.clone();
        self.write_transaction(CallLoad::of(&owner).with_rows(calls.len()), move |conn| {
            calls::record_calls(conn, &owner, &calls)
        })
        .await
    }

    async fn load_call(&self, owner: &Owner, id: CallId) -> Result<Option<CallRecord>, Error> {
        let of = owner.clone();
        self.read_transaction(ReadKind::Point, Some(owner), move |conn| {
            calls::load_call(conn, &of, id)
        })
        .await
    }

    async fn load_call_body(&self, owner: &Owner, id: CallId) -> Result<Option<Arc<[u8]>>, Error> {
        let of = owner.clone();
        self.read_transaction(ReadKind::Point, Some(owner), move |conn| {
            calls::load_body(conn, &of, id)
        })
        .await
    }

    async fn list_calls(&self, owner: &Owner, list: ListCalls) -> Result<CallPage, Error> {
        let of = owner.clone();
        self.read_transaction(ReadKind::Scan, Some(owner), move |conn| {
            calls::list_calls(conn, &of, &list)
        })
        .await
    }

    async fn sum_calls(
        &self,
        owner: &Owner,
        sum: SumCalls,
    ) -> Result<Vec<(CallGroup, CallSum)>, Error> {
        rules::check_sum_calls(&sum)?;
        let (of, limits) = (owner.clone(), Arc::clone(&self.limits));
        self.read_transaction(ReadKind::Scan, Some(owner), move |conn| {
            calls::sum_calls(conn, &of, &sum, &limits)
        })
        .await
    }

    async fn sum_conversations(
        &self,
        owner: &Owner,
        conversations: &[ConversationId],
    ) -> Result<Vec<ConversationCalls>, Error> {
        rules::check_sum_conversations(conversations, &self.limits)?;
        let (of, limits) = (owner.clone(), Arc::clone(&self.limits));
        let conversations = conversations.to_vec();
        self.read_transaction(ReadKind::Scan, Some(owner), move |conn| {
            calls::sum_conversations(conn, &of, &conversations, &limits)
        })
        .await
    }

    async fn list_call_owners(
        &self,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<Owner>, Error> {
        let after = after.cloned();
        self.read_transaction(ReadKind::Maintenance, None, move |conn| {
            calls::list_owners(conn, after.as_ref(), limit)
        })
        .await
    }

    async fn sweep_calls(&self, owner: &Owner, sweep: SweepCalls) -> Result<SweptCalls, Error> {
        let owner = owner.clone();
        self.write_transaction(CallLoad::of(&owner), move |conn| {
            calls::sweep_calls(conn, &owner, sweep)
        })
        .await
    }
}
