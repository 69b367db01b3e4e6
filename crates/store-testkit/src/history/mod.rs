//! Recorded histories of concurrent clients, and a checker that finds what a correct store never shows, as Elle does.
//!
//! Each client writes what it is about to do and what came of it to one file, which all clients of all processes append
//! to. The order of the lines is an order in which the events happened: no clock is read, and what a killed process had
//! written stays. Afterwards [`check_history`] compares the events with the path that is stored.
//!
//! What is checked: every acknowledged append is on the path once, whole, at its depth and behind the head that it
//! expected; what was refused is not there, and nothing that nobody wrote; whoever begins after an acknowledgement goes
//! behind it, and sees it; a client never sees less than before, its own writes least of all.
//!
//! Not here: forks. All clients write and read one branch.

mod anomaly;
mod check;
mod client;
mod log;

pub use anomaly::Anomaly;
pub use check::{CheckedHistory, check_history};
pub use client::HistoryClient;
pub use log::{
    ClientOperation, HistoryEvent, HistoryLog, OperationOutcome, OperationPhase, read_history,
};
