//! Clients that keep no state, matched to their conversations.

mod client;
mod conversations;
mod formats;
mod own;
mod sessions;
