//! `[server.limits]`: how much one request, connection or owner may take.

use std::num::NonZeroU32;

use contexture::catalogue::Money;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::server::deserialize_dollars;

/// How much one request, connection or owner may take. Each is an error that says so where it is exceeded.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table, such as [server.limits]"
)]
pub struct LimitsConfig {
    /// Bytes of a request's head: its first line and its fields, without blanks around values. Default 65,536; at least 8,192.
    /// Beyond: `head_too_large`, status 431; a head of more than twice as many is not read to its end.
    pub header_bytes: usize,
    /// Header fields of a request. Default 100. Beyond: status 431.
    pub headers: usize,
    /// Seconds until the first request's head has come on a connection. Default 10. Beyond: the connection is closed.
    pub header_seconds: u64,
    /// Seconds until the next request's head has come on a connection that is kept. Default 120, as clients that close
    /// theirs do so before. Beyond: the connection is closed.
    pub keep_alive_seconds: u64,
    /// Bytes of a request's body. Default 67,108,864. Beyond: `body_too_large`, status 413.
    pub body_bytes: usize,
    /// Seconds a client may pause within a request's body. Default 30. Beyond: `bad_body`, status 400.
    pub body_seconds: u64,
    /// Seconds that a request's body may take in all; imports have no such limit. Default 300. Beyond: `bad_body`, status
    /// 400.
    pub body_total_seconds: u64,
    /// Messages and items of one append (`POST …/messages`), which is one transaction. Default 256, as on SQLite all other writers
    /// wait for it. Beyond: `limit`, status 422. What is imported or passed on is stored in parts of 512.
    pub append_items: usize,
    /// Seconds until an answer begins. Default 60. Beyond: `timed_out`, status 503. Requests to
    /// providers have their own.
    pub request_seconds: u64,
    /// Seconds that sending an answer may stall because its client does not read. Default 120. Beyond: the connection is closed.
    pub send_seconds: u64,
    /// Seconds that running requests have at the end. Default 30. Then they are cut off.
    pub drain_seconds: u64,
    /// Connections at a time. Default 4,096. Where there are keys, an eighth of them is kept for clients that have shown one.
    /// Beyond: the connection that has waited longest for its next request is closed; if all are busy, new ones wait. If
    /// the connections for clients without a key are all busy, a further request without one is `overloaded`, status 503.
    pub connections: usize,
    /// Connections of one peer at a time: an address, or a /64 network of IPv6. Default 1,024; 0: no limit, for a reverse proxy
    /// in front. Beyond: its connection that has waited longest for its next request is closed; if all are busy, the new one.
    pub connections_per_peer: usize,
    /// Requests of an owner at a time, streams included. Default 512. Beyond: `too_many_requests`, status 429.
    pub concurrent: usize,
    /// Requests of an owner a minute; a tenth of them may come at once. Default: no limit.
    /// Beyond: `too_many_requests`, status 429.
    pub per_minute: Option<NonZeroU32>,
    /// What an owner may spend with providers on a day in UTC, in dollars, such as "20.00"; keys have limits of their own
    /// (`keys.dollars_per_day`). Calls that are under way count when they end, and models without a price count as nothing.
    /// Default: no limit. Beyond: `spend_limit`, status 429, until midnight.
    #[serde(deserialize_with = "deserialize_dollars")]
    #[schemars(with = "Option<String>")]
    pub dollars_per_day: Option<Money>,
    /// The same for each conversation. Requests wait until it is known to which one they belong, as they do under a policy.
    /// Default: no limit.
    #[serde(deserialize_with = "deserialize_dollars")]
    #[schemars(with = "Option<String>")]
    pub conversation_dollars_per_day: Option<Money>,
    /// Bytes of memory for the bodies of all requests: as they come, unpacked, and while they are worked on and stored.
    /// Default 402,653,184. One owner may take three quarters of it. Beyond: a body waits up to two seconds for room in the
    /// owner's share, so that clients are slowed down to what can be stored, and is then refused with `too_many_requests`,
    /// status 429; where other owners have the rest, with `overloaded`, status 503, at once. Work on a body that has come
    /// waits as long for either. A request that is passed on is then not stored (`overload`). A body that takes more
    /// than an owner's share by itself: `body_too_large`, status 413.
    #[serde(alias = "store_queue_bytes", alias = "behind_bytes")]
    pub memory_bytes: usize,
    /// Bytes of memory for what was read of the conversations used last, so that it is not read again with each request.
    /// Default 67,108,864; 0: nothing is kept. Beyond: the oldest are forgotten.
    #[serde(alias = "warm_bytes")]
    pub handle_cache_bytes: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            header_bytes: 64 << 10,
            headers: 100,
            header_seconds: 10,
            keep_alive_seconds: 120,
            body_bytes: 64 << 20,
            body_seconds: 30,
            body_total_seconds: 300,
            append_items: 256,
            request_seconds: 60,
            send_seconds: 120,
            drain_seconds: 30,
            connections: 4096,
            connections_per_peer: 1024,
            concurrent: 512,
            per_minute: None,
            dollars_per_day: None,
            conversation_dollars_per_day: None,
            memory_bytes: 384 << 20,
            handle_cache_bytes: 64 << 20,
        }
    }
}
