//! Whose turn it is to hold a connection: as many callers as the pool may have connections, or as the server gives it.
//!
//! A server that has no connection left refuses the next one at once. Callers then wait for one of those that there are,
//! like callers of a smaller pool, instead of failing while others work.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use contexture_store::Permit;
use deadpool_postgres::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Time after which one more connection is tried, after the server refused one.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// A connection that is lent until it is dropped.
pub(crate) struct LentClient {
    client: Client,
    // Dropped after the connection, which is back in the pool by then.
    _turn: OwnedSemaphorePermit,
    _permit: Permit,
}

impl LentClient {
    pub(super) const fn new(client: Client, turn: OwnedSemaphorePermit, permit: Permit) -> Self {
        Self {
            client,
            _turn: turn,
            _permit: permit,
        }
    }

    /// Takes the connection out of the pool.
    pub(super) fn into_client(self) -> Client {
        self.client
    }
}

impl Deref for LentClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// The turns of a pool's callers; first come, first served.
pub(super) struct Turns {
    free: Arc<Semaphore>,
    total: usize,
    refused: Mutex<Refused>,
}

/// Connections that the server refused.
struct Refused {
    /// Turns that nobody gets, because there is no connection for them.
    turns: usize,
    last: Instant,
}

impl Turns {
    /// Turns for this many connections.
    pub(super) fn new(total: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(total)),
            total,
            refused: Mutex::new(Refused {
                turns: 0,
                last: Instant::now(),
            }),
        }
    }

    /// Waits for a turn until `give_up`; `None` if there is none by then.
    pub(super) async fn wait_for_turn(
        &self,
        give_up: tokio::time::Instant,
    ) -> Option<OwnedSemaphorePermit> {
        self.try_another_connection();
        let turn = Arc::clone(&self.free).acquire_owned();
        tokio::time::timeout_at(give_up, turn).await.ok()?.ok()
    }

    /// Takes a turn away because the server refused its connection, and returns whether there are other turns to wait for.
    pub(super) fn withhold(&self, turn: OwnedSemaphorePermit) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.last = Instant::now();
        // The last turn stays: with it the next caller tries again.
        let are_others = refused.turns + 1 < self.total;
        if are_others {
            refused.turns += 1;
            turn.forget();
        }
        are_others
    }

    /// Gives one withheld turn back if the last refusal was some time ago.
    fn try_another_connection(&self) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.turns > 0 && refused.last.elapsed() >= RETRY_AFTER {
            refused.turns -= 1;
            refused.last = Instant::now();
            self.free.add_permits(1);
        }
    }
}
