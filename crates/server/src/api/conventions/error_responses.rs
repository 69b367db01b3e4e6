//! The error responses that every route may give, for the OpenAPI description.

use std::collections::BTreeMap;

use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema as _};

use contexture_api::ProblemDocument;

/// Error responses of routes that need no key.
pub(crate) struct OpenRefusals;

/// Error responses of routes that read.
pub(crate) struct ReadRefusals;

/// Error responses of routes that write.
pub(crate) struct WriteRefusals;

// These texts are part of the published description.
const OPEN: [(&str, &str); 3] = [
    (
        "400",
        "The path, the query, a header or the body is not what it should be",
    ),
    ("431", "The head of the request is too large"),
    ("500", "The server failed"),
];

const READ: [(&str, &str); 8] = [
    ("401", "No key, or one that is not known"),
    (
        "403",
        "The key may not do this, or a page of another site asks",
    ),
    ("404", "It is not there, or not yours"),
    ("406", "Nothing of what `accept` says is given here"),
    ("422", "It cannot be done with what is there"),
    ("429", "Too many requests"),
    ("501", "This store does not offer it"),
    ("503", "Too busy, or not in time: come again"),
];

const WRITE: [(&str, &str); 5] = [
    (
        "409",
        "Something else is there already, or somebody was faster",
    ),
    ("412", "It is not any more what `if-match` says"),
    ("413", "The body is too large"),
    ("415", "The body does not say that it is JSON"),
    ("507", "The database has no space left"),
];

fn problem_responses<'a>(
    all: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
) -> BTreeMap<String, RefOr<Response>> {
    let problem = || {
        let schema = Ref::from_schema_name(ProblemDocument::name());
        ContentBuilder::new().schema(Some(schema)).build()
    };
    let response = |description: &str| {
        let builder = ResponseBuilder::new().description(description);
        RefOr::T(
            builder
                .content("application/problem+json", problem())
                .build(),
        )
    };
    all.into_iter()
        .map(|(status, description)| ((*status).to_owned(), response(description)))
        .collect()
}

impl IntoResponses for OpenRefusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem_responses(&OPEN)
    }
}

impl IntoResponses for ReadRefusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem_responses(OPEN.iter().chain(&READ))
    }
}

impl IntoResponses for WriteRefusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problem_responses(OPEN.iter().chain(&READ).chain(&WRITE))
    }
}
