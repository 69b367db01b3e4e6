//! Paths at which there is nothing.

use crate::problem::{Code, Problem};

/// What is not there.
pub(crate) async fn not_found() -> Problem {
    Problem::new(
        Code::NotFound,
        "there is nothing at this path; /openapi.json lists what is",
    )
}
