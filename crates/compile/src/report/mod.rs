//! The report: what was sent, what was not, and why, as data ([`document`]), as a table, as a page, item by item.
//!
//! It is drawn up (`account`) from what the passes decided and what follows from it (`ledger`); what is said beside its
//! segments (`notes`, `figures`) is the same in tables and pages.
//!
//! Not here: deciding anything.

pub(crate) mod account;
pub(crate) mod document;
pub mod figures;
pub(crate) mod html;
pub(crate) mod items;
pub(crate) mod ledger;
mod notes;
#[cfg(test)]
pub(crate) mod schema;
pub(crate) mod table;
