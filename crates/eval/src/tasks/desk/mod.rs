//! A clerk's desk: orders, refunds, claims.

mod database;
mod requests;

pub(crate) use requests::desk_tasks;
