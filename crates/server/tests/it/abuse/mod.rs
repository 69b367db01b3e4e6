//! Callers who mean harm, and callers who do not know better.

mod audit;
mod canary;
mod capture;
mod corpus;
mod defects;
mod patience;
mod places;
mod secrets;
mod smuggling;
pub(crate) mod wire;
