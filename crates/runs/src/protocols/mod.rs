//! What a run tells, in the words of protocols that clients speak.
//!
//! Pure: a mapping is fed each [`RunEvent`](crate::RunEvent) and gives the events to send; it keeps no more than the answer
//! that is under way. Not here: how they are sent (server-sent events, sockets), and what is stored.

mod ag_ui;
mod open_responses;
mod sent;

pub use ag_ui::AgUi;
pub use open_responses::OpenResponses;
pub use sent::ProtocolEvent;
