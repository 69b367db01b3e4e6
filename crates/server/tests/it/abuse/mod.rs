//! Callers who mean harm, and callers who do not know better.

mod corpus;
mod places;
mod smuggling;
mod wire;
