//! Clients that keep no state, matched to their conversations.

mod client;
mod conversations;
mod exchanges;
mod formats;
mod kept;
mod own;
mod scale;
mod sessions;
mod shared;
mod withdrawals;
