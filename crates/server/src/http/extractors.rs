//! Extractors: the parts of a request that handlers take. What cannot be extracted is answered as a problem with a code.

use axum::RequestExt as _;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, FailedToBufferBody};
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use contexture::Owner;
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use crate::access::Principal;
use crate::config::AccessScope;
use crate::http::body_faults::{body_problem, in_words_of_json};
use crate::problem::{Code, Problem};

/// A caller with the scope `read`, and whose conversations it sees.
pub(crate) struct ReadAccess(pub(crate) Owner);

/// A caller with the scope `write`, and whose conversations it changes.
pub(crate) struct WriteAccess(pub(crate) Owner);

/// A caller with the scope `admin`.
pub(crate) struct AdminAccess;

/// Returns who calls. Missing only if a route was added outside `authenticate`: refused, so that such a mistake opens nothing.
pub(crate) fn find_principal(extensions: &Extensions) -> Result<&Principal, Problem> {
    let principal = extensions.get();
    principal.ok_or_else(|| Problem::new(Code::Unauthenticated, "nobody is known to call"))
}

/// Returns the conversation that the path of a request names.
pub(crate) async fn find_conversation_name(request: &mut Request) -> Option<String> {
    let parameters = request.extract_parts::<RawPathParams>().await.ok()?;
    let mut parameters = parameters.iter();
    let conversation = parameters.find(|(name, _)| *name == "conversation");
    conversation.map(|(_, id)| id.to_owned())
}

fn authorize_caller(parts: &Parts, scope: AccessScope) -> Result<Owner, Problem> {
    let principal = find_principal(&parts.extensions)?;
    principal.require_scope(scope)?;
    Ok(principal.owner.clone())
}

impl<S: Sync> FromRequestParts<S> for ReadAccess {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        authorize_caller(parts, AccessScope::Read).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for WriteAccess {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        authorize_caller(parts, AccessScope::Write).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for AdminAccess {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        authorize_caller(parts, AccessScope::Admin).map(|_| Self)
    }
}

/// The parameters of the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = axum::extract::Path::from_request_parts(parts, state).await;
        found
            .map(|path| Self(path.0))
            .map_err(|error| Problem::new(Code::BadPath, error.body_text()))
    }
}

/// The parameters of the query.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = axum::extract::Query::from_request_parts(parts, state).await;
        found.map(|query| Self(query.0)).map_err(|error| {
            let text = error.body_text();
            let text = text
                .split_once("query string: ")
                .map_or(&*text, |(_, text)| text);
            Problem::new(Code::BadQuery, in_words_of_json(text))
        })
    }
}

/// A JSON body.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned + ToSchema, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        require_content_type(&["application/json"], request.headers())?;
        let bytes = read_body(request, state).await?;
        parse_json(&bytes).map(Self)
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

/// Reads a body within the limit of its route.
pub(crate) async fn read_body<S: Send + Sync>(
    request: Request,
    state: &S,
) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state)
        .await
        .map_err(|error| match error {
            BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) => {
                Problem::new(
                    Code::BodyTooLarge,
                    "the body is larger than this server takes",
                )
            }
            error if error.status() == StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
                Code::BodyTooLarge,
                "the body is larger than this server takes",
            ),
            _ => Problem::new(Code::BadBody, "the body ended before its end"),
        })
}

/// Refuses bodies of other content types than these.
pub(crate) fn require_content_type(kinds: &[&str], headers: &HeaderMap) -> Result<(), Problem> {
    // Also a guard against cross-site requests: a page of another site cannot send JSON without a preflight request.
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if kinds.iter().any(|known| known.eq_ignore_ascii_case(kind)) {
        return Ok(());
    }
    let kinds = kinds.join("` or `");
    let detail = format!("expected `content-type: {kinds}`, found {content_type:?}");
    Err(Problem::new(Code::UnsupportedMediaType, detail))
}

/// Parses JSON. Text that is not JSON, and JSON of another shape, have different codes.
fn parse_json<T: DeserializeOwned + ToSchema>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| match error.is_data() {
        true => body_problem::<T>(bytes, &error),
        false => Problem::new(Code::BadJson, error.to_string()),
    })
}
