//! The description of the API (OpenAPI 3.1): what belongs to all operations. Each describes itself where it is.

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde_json::Value;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr};

use crate::access::presented_key::KEY_HEADER;
use crate::api::OpenRefusals;
use crate::serve::routes;
use contexture_api::problem::Code;
use contexture_api::{DeltaDocument, EventDocument, ProblemDocument};

/// The members of the description that come before the paths.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Contexture",
        description = "Conversations that are kept, resolved and compiled.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers(
        (url = "/", description = "The server that gives this description"),
        (url = "http://127.0.0.1:8484", description = "A server on this machine, as `contexture serve` starts it"),
    ),
    tags(
        (name = "server", description = "The server itself: health, figures, this description"),
        (name = "conversations", description = "Conversations: made, listed, changed, deleted"),
        (name = "messages", description = "Messages and items of a conversation, and the texts and bytes behind them"),
        (name = "branches", description = "Branches and checkpoints: names in a conversation's tree, and going back"),
        (name = "compile", description = "What a model sees: resolved, compiled, explained, compacted"),
        (name = "memory", description = "Notes that outlast the window"),
        (name = "search", description = "Full-text search"),
        (name = "events", description = "What happened to a conversation, as a page or a stream"),
        (name = "requests", description = "Requests that were forwarded to providers, and what they cost"),
        (name = "runs", description = "Runs of agents, and their calls that wait for a decision"),
        (name = "skills", description = "Skills of the server and their files"),
        (name = "texts", description = "What needs no conversation: counting, rendering, converting, shortening"),
        (name = "transfer", description = "Export and import"),
    ),
    components(schemas(Code, DeltaDocument, EventDocument, ProblemDocument)),
    modifiers(&SecuritySchemes),
    security((), ("key" = []), ("bearer" = [])),
)]
pub(super) struct Description;

struct SecuritySchemes;

impl utoipa::Modify for SecuritySchemes {
    fn modify(&self, openapi: &mut OpenApi) {
        let components = openapi.components.get_or_insert_default();
        let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new(KEY_HEADER.as_str())));
        components.add_security_scheme("key", key);
        components.add_security_scheme(
            "bearer",
            SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)),
        );
    }
}

/// The description of the API: OpenAPI 3.1, as JSON.
#[must_use]
pub fn openapi() -> String {
    let (_, mut description) = routes::documented_router().split_for_parts();
    for item in description.paths.paths.values_mut() {
        operations(item).for_each(add_path_examples);
    }
    let mut description = serde_json::to_value(description).unwrap_or_default();
    if let Some(schemas) = description.pointer_mut("/components/schemas") {
        remove_defaults(schemas);
    }
    serde_json::to_string_pretty(&description).unwrap_or_default()
}

/// Removes default values from schemas: generators of clients take a member with one for required. What holds without a member is
/// said in its description.
fn remove_defaults(schemas: &mut Value) {
    match schemas {
        Value::Array(all) => all.iter_mut().for_each(remove_defaults),
        Value::Object(members) => {
            // Where it is a map of schemas by name, `default` is a name.
            let is_schema = ["type", "$ref", "oneOf", "anyOf", "allOf"];
            if is_schema
                .iter()
                .any(|name| members.get(*name).is_some_and(|value| !value.is_object()))
            {
                members.remove("default");
            }
            members.values_mut().for_each(remove_defaults);
        }
        _ => {}
    }
}

/// Returns this description of the API.
#[utoipa::path(
    get, path = "/openapi.json", tag = "server", security(()),
    responses(
        (status = 200, description = "OpenAPI 3.1", body = std::collections::BTreeMap<String, serde_json::Value>),
        OpenRefusals
    )
)]
pub(super) async fn describe_api() -> impl IntoResponse {
    static DESCRIPTION: LazyLock<String> = LazyLock::new(openapi);
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION.as_str())
}

/// Returns the operations of a path, with the methods that this API uses.
fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get,
        put,
        post,
        delete,
        patch,
        ..
    } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

/// Adds an example of each parameter in the path. The name in braces says what it is, so that each is written here once.
fn add_path_examples(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else {
            continue;
        };
        if parameter.parameter_in == ParameterIn::Path {
            let example = path_example(&parameter.name).map(Value::from);
            let described: Parameter = std::mem::take(parameter);
            *parameter = ParameterBuilder::from(described).example(example).build();
        }
    }
}

fn path_example(name: &str) -> Option<&'static str> {
    Some(match name {
        "conversation" => "support-42",
        "branch" => "main",
        "checkpoint" => "before-refund",
        "note" => "language",
        "rule" => "019a3c5e7b1d7f0c8e2a4b6d8f0a1c3e.5f3a91c0",
        "skill" => "pdf-forms",
        "request" | "call" => "req_019a3c5e7b1d7f0c8e2a4b6d8f0a1c3e",
        "item" | "blob" | "compaction" | "node" | "run" => "019a3c5e7b1d7f0c8e2a4b6d8f0a1c3e",
        _ => return None,
    })
}
