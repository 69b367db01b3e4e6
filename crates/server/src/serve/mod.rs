//! The running server: its routes, the endpoints about the server itself, and the listener that accepts connections and
//! shuts the server down.
//!
//! The top of the crate: it knows every other module and nothing knows it. The middleware that wraps all routes is put in
//! order here, and the OpenAPI description is generated from the same routers that serve requests.

mod api_description;
mod client_stream;
mod connections;
mod listener;
mod operations;
mod retention;
mod routes;

pub use api_description::openapi;
pub use listener::{ServeError, Server};
