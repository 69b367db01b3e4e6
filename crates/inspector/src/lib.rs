//! The inspector: pages for people that show what a model saw, why, and what it cost.
//!
//! A page is drawn of documents of the HTTP API, which the host gets for it ([`Api`]): what a reader may see and change is decided
//! there, by the same key, and every number of a page is the API's. There are no rules here but those of drawing.
//!
//! Pages are whole without scripts: links lead to everything, and forms change things. The one module that is served with them
//! ([`find_asset`]) adds what needs a hand: moving from call to call without loading a page, following an answer as it
//! comes, and copying. Texts of users, models and tools are never markup, and no page loads anything from elsewhere.
//!
//! Not here: HTTP, sign-in and cookies (`contexture-server`), what the documents say (`contexture-api`), how the picture of a call is
//! drawn (`contexture-report`).

mod api;
mod assets;
mod document;
mod exchange;
mod figures;
mod layout;
mod policy_toml;
mod routes;
mod screens;
mod window;

pub use api::{Api, ApiError, Method};
pub use assets::{Asset, find_asset};
pub use document::Document;
pub use exchange::{Parameters, Reply};
pub use layout::{Viewer, WriteAccess};
pub use routes::{FormRequest, PageRequest, post_form, show_page};
pub use screens::failure::{failure_page, sign_in_page};
