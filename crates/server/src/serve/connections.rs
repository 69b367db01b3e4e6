//! The connections that are open, and which of them are closed to make room for others.
//!
//! Connections that wait for their next request cost little, but only so many may be open. So the one that has waited longest
//! is closed when room is needed: of one peer, of all clients that have shown no key, in the end of all. A share of the
//! connections is kept for clients with a key, so that nobody without one can keep them out.
//!
//! Not here: how a connection is served and closed (`listener`).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// One part of so many is kept for clients with a key.
const KEPT_FOR_KEYS: usize = 8;

/// How many connections may be open.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    /// Of all clients together.
    pub(super) total: usize,
    /// Of one peer; `None`: as many as in all.
    pub(super) per_peer: Option<usize>,
    /// Of clients that have shown no key.
    pub(super) without_key: usize,
}

impl ConnectionLimits {
    /// Returns the limits for so many connections, of which a share is kept where clients have keys.
    pub(super) fn new(total: usize, per_peer: usize, clients: ClientKeys) -> Self {
        let kept = match clients {
            ClientKeys::Needed => total / KEPT_FOR_KEYS,
            ClientKeys::None => 0,
        };
        Self {
            total,
            per_peer: (per_peer > 0).then_some(per_peer),
            without_key: total - kept,
        }
    }
}

/// Whether clients of this server have keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientKeys {
    Needed,
    None,
}

/// The connections that are open.
#[derive(Debug)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    table: Mutex<Table>,
    /// A connection was closed, or waits for its next request.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next_id: u64,
    open: BTreeMap<u64, Open>,
    /// Connections that have begun to wait, longest first.
    without_key: BTreeSet<Waiting>,
    with_key: BTreeSet<Waiting>,
    keyed: usize,
    peers: BTreeMap<IpAddr, Peer>,
}

#[derive(Debug, Default)]
struct Peer {
    open: usize,
    waiting: BTreeSet<Waiting>,
}

/// A connection that waits, ordered by when it began to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    /// Number of the wait: one that began later has a greater one.
    since: u64,
    id: u64,
}

#[derive(Debug)]
struct Open {
    peer: IpAddr,
    has_key: bool,
    /// Requests under way, of which HTTP/1.1 has one at a time.
    running: usize,
    waiting: Option<Waiting>,
    close: CancellationToken,
    /// Whether the client leaves what is sent to it unread: told to close, such a connection stays open until its time to send is
    /// over.
    is_stalled: Arc<AtomicBool>,
}

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self {
            limits,
            table: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Waits until one more connection may be accepted, and closes one that waits if none may.
    pub(super) async fn wait_for_room(&self) {
        loop {
            // Before the look, so that no change in between is missed.
            let changed = self.changed.notified();
            {
                let mut table = self.lock();
                if table.open.len() < self.limits.total {
                    return;
                }
                table.close_longest_waiting();
            }
            changed.await;
        }
    }

    /// Adds a connection that was accepted; `token` is cancelled when it is to be closed, and `is_stalled` says whether its
    /// client leaves what is sent to it unread. Returns `None` if its peer has too many that are all busy.
    pub(super) fn add(
        self: &Arc<Self>,
        peer: IpAddr,
        (token, is_stalled): (CancellationToken, Arc<AtomicBool>),
    ) -> Option<Arc<Connection>> {
        let peer = network_of(peer);
        let mut table = self.lock();
        if self
            .limits
            .per_peer
            .is_some_and(|most| table.connections_of(peer) >= most)
            && !table.close_longest_waiting_of(peer)
        {
            return None;
        }
        // One for each that is added: under pressure the number stays where it is.
        if table.open.len() - table.keyed >= self.limits.without_key {
            table.close_longest_waiting_without_key();
        }
        let id = table.add(peer, token, is_stalled);
        Some(Arc::new(Connection {
            id,
            all: self.clone(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection; it leaves the table when it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    all: Arc<Connections>,
}

impl Connection {
    /// Notes that a request begins; it ends when the guard is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> RunningRequest {
        let mut table = self.all.lock();
        table.stop_waiting(self.id);
        if let Some(open) = table.open.get_mut(&self.id) {
            open.running += 1;
        }
        RunningRequest(self.clone())
    }

    /// Notes that its client has shown a key of this server.
    pub(super) fn set_has_key(&self) {
        self.all.lock().set_has_key(self.id);
    }

    /// Returns whether this connection has shown no key and there are more such connections than their share: it takes room that
    /// is kept for clients with keys.
    pub(super) fn is_beyond_share(&self) -> bool {
        let table = self.all.lock();
        let share = self.all.limits.without_key;
        let is_without_key = table.open.get(&self.id).is_some_and(|open| !open.has_key);
        if !is_without_key || table.open.len() - table.keyed <= share {
            return false;
        }
        // Those that are being closed for others have left, but for a moment.
        let stays = |open: &&Open| {
            let is_leaving = open.close.is_cancelled() && !open.is_stalled.load(Ordering::Relaxed);
            !open.has_key && !is_leaving
        };
        table.open.values().filter(stays).count() > share
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.lock().remove(self.id);
        self.all.changed.notify_waiters();
    }
}

/// A request under way on a connection.
#[derive(Debug)]
pub(super) struct RunningRequest(Arc<Connection>);

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let Connection { id, all } = &*self.0;
        all.lock().end_request(*id);
        all.changed.notify_waiters();
    }
}

impl Table {
    fn add(&mut self, peer: IpAddr, close: CancellationToken, is_stalled: Arc<AtomicBool>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let open = Open {
            peer,
            has_key: false,
            running: 0,
            waiting: None,
            close,
            is_stalled,
        };
        self.open.insert(id, open);
        self.peers.entry(peer).or_default().open += 1;
        self.start_waiting(id);
        id
    }

    fn remove(&mut self, id: u64) {
        self.stop_waiting(id);
        let Some(open) = self.open.remove(&id) else {
            return;
        };
        self.keyed -= usize::from(open.has_key);
        if let Some(peer) = self.peers.get_mut(&open.peer) {
            peer.open -= 1;
            // Peers come and go; those without connections must not stay.
            if peer.open == 0 {
                self.peers.remove(&open.peer);
            }
        }
    }

    fn set_has_key(&mut self, id: u64) {
        let Some(open) = self.open.get_mut(&id).filter(|open| !open.has_key) else {
            return;
        };
        open.has_key = true;
        self.keyed += 1;
        if let Some(waiting) = open.waiting {
            self.without_key.remove(&waiting);
            self.with_key.insert(waiting);
        }
    }

    fn end_request(&mut self, id: u64) {
        if let Some(open) = self.open.get_mut(&id) {
            open.running = open.running.saturating_sub(1);
            // One that is to be closed ends after this answer.
            if open.running == 0 && !open.close.is_cancelled() {
                self.start_waiting(id);
            }
        }
    }

    fn start_waiting(&mut self, id: u64) {
        let since = self.next_id;
        self.next_id += 1;
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        let waiting = Waiting { since, id };
        open.waiting = Some(waiting);
        match open.has_key {
            true => self.with_key.insert(waiting),
            false => self.without_key.insert(waiting),
        };
        if let Some(peer) = self.peers.get_mut(&open.peer) {
            peer.waiting.insert(waiting);
        }
    }

    fn stop_waiting(&mut self, id: u64) {
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        if let Some(waiting) = open.waiting.take() {
            self.without_key.remove(&waiting);
            self.with_key.remove(&waiting);
            if let Some(peer) = self.peers.get_mut(&open.peer) {
                peer.waiting.remove(&waiting);
            }
        }
    }

    fn connections_of(&self, peer: IpAddr) -> usize {
        self.peers.get(&peer).map_or(0, |peer| peer.open)
    }

    /// Has the connection closed that has waited longest; those of clients with keys come last.
    fn close_longest_waiting(&mut self) -> bool {
        let longest = self.without_key.first().or_else(|| self.with_key.first());
        self.close_waiting(longest.copied())
    }

    fn close_longest_waiting_without_key(&mut self) -> bool {
        self.close_waiting(self.without_key.first().copied())
    }

    fn close_longest_waiting_of(&mut self, peer: IpAddr) -> bool {
        let peer = self.peers.get(&peer);
        self.close_waiting(peer.and_then(|peer| peer.waiting.first().copied()))
    }

    /// Has a connection closed. It leaves the table once it is: until then it counts.
    fn close_waiting(&mut self, waiting: Option<Waiting>) -> bool {
        let Some(waiting) = waiting else {
            return false;
        };
        self.stop_waiting(waiting.id);
        if let Some(open) = self.open.get(&waiting.id) {
            open.close.cancel();
        }
        metrics::counter!("contexture_connections_closed_for_room_total").increment(1);
        true
    }
}

/// Returns what counts as one peer: an address of IPv4, or a network of IPv6, of which a client has 2^64 addresses.
fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    /// A connection of a peer, and whether it was told to close.
    fn open(all: &Arc<Connections>, number: u8) -> Option<(Arc<Connection>, CancellationToken)> {
        let token = CancellationToken::new();
        let added = (token.clone(), Arc::default());
        Some((all.add(peer(number), added)?, token))
    }

    fn connections(total: usize, per_peer: usize, clients: ClientKeys) -> Arc<Connections> {
        let limits = ConnectionLimits::new(total, per_peer, clients);
        Arc::new(Connections::new(limits))
    }

    #[test]
    fn a_peer_closes_its_own_longest_waiting() {
        let all = connections(100, 2, ClientKeys::None);
        let (busy, busy_token) = open(&all, 1).unwrap();
        let running = busy.begin_request();
        let (_other, other_token) = open(&all, 2).unwrap();
        let (_waits, waits_token) = open(&all, 1).unwrap();
        let third = open(&all, 1).unwrap();
        assert!(
            waits_token.is_cancelled() && !busy_token.is_cancelled() && !other_token.is_cancelled()
        );
        let _also_busy = third.0.begin_request();
        drop(_waits);
        assert!(open(&all, 1).is_none(), "both are busy");
        drop(running);
        assert!(open(&all, 1).is_some());
        assert!(busy_token.is_cancelled());
    }

    /// Strangers who do not read their answers are busy for ever, and cannot be closed for whoever comes.
    #[test]
    fn busy_strangers_do_not_take_the_share_of_keys() {
        let all = connections(16, 0, ClientKeys::Needed);
        let busy: Vec<_> = (0..15)
            .map(|number| {
                let connection = all.add(peer(number), Default::default()).unwrap();
                let request = connection.begin_request();
                (connection, request)
            })
            .collect();
        // 14 of 16 are theirs.
        let beyond: Vec<bool> = busy.iter().map(|(one, _)| one.is_beyond_share()).collect();
        assert_eq!(
            beyond, [true; 15],
            "the next of them is refused, whichever asks"
        );
        let owner = all.add(peer(20), Default::default()).unwrap();
        let _request = owner.begin_request();
        owner.set_has_key();
        assert!(!owner.is_beyond_share());
        drop(busy);
        let stranger = all.add(peer(21), Default::default()).unwrap();
        let _request = stranger.begin_request();
        assert!(!stranger.is_beyond_share());
    }

    #[test]
    fn a_share_is_kept_for_clients_with_keys() {
        let all = connections(16, 0, ClientKeys::Needed);
        let mut keyed = Vec::new();
        for number in 0..4 {
            let one = open(&all, number).unwrap();
            drop(one.0.begin_request());
            one.0.set_has_key();
            keyed.push(one);
        }
        let mut strangers = Vec::new();
        for number in 0..100 {
            let one = open(&all, number).unwrap();
            drop(one.0.begin_request());
            strangers.push(one);
            // The listener drops what it was told to close.
            strangers.retain(|(_, token)| !token.is_cancelled());
        }
        assert_eq!(strangers.len(), 14);
        assert!(keyed.iter().all(|(_, token)| !token.is_cancelled()));
        // The newest are there, the longest waiting are gone.
        let newest = all.lock().open.keys().max().copied();
        assert_eq!(newest, strangers.last().map(|(one, _)| one.id));
    }

    #[tokio::test]
    async fn when_all_is_full_room_is_made_as_soon_as_one_waits() {
        let all = connections(2, 0, ClientKeys::None);
        let (first, first_token) = open(&all, 1).unwrap();
        let (second, second_token) = open(&all, 2).unwrap();
        let running = [first.begin_request(), second.begin_request()];
        let mut waiting = std::pin::pin!(all.wait_for_room());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert!(!first_token.is_cancelled() && !second_token.is_cancelled());
        let [_first, second_request] = running;
        drop(second_request);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert!(second_token.is_cancelled());
        drop(second);
        waiting.await;
    }

    #[test]
    fn nothing_stays_of_connections_that_are_gone() {
        let all = connections(1000, 3, ClientKeys::Needed);
        for number in 0..200 {
            let (one, _) = open(&all, number).unwrap();
            one.set_has_key();
            let request = one.begin_request();
            drop(one);
            drop(request);
        }
        let table = all.lock();
        assert!(table.open.is_empty() && table.peers.is_empty() && table.keyed == 0);
        assert!(table.with_key.is_empty() && table.without_key.is_empty());
    }

    #[test]
    fn a_network_is_one_peer() {
        let of = |text: &str| network_of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
