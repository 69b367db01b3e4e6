//! Callers who mean harm, and callers who do not know better.

mod corpus;
mod smuggling;
mod wire;
