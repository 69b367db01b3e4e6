//! What handlers take out of requests. What cannot be taken is a problem with a code.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, FailedToBufferBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use contexture::Owner;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::access::Principal;
use crate::config::AccessScope;
use crate::problem::{Code, Problem};

/// A caller who may read: whose conversations.
pub(crate) struct ReadAccess(pub(crate) Owner);

/// A caller who may write.
pub(crate) struct WriteAccess(pub(crate) Owner);

/// A caller who may see the server's figures.
pub(crate) struct AdminAccess;

fn authorize_caller(parts: &Parts, scope: AccessScope) -> Result<Owner, Problem> {
    let principal = parts.extensions.get::<Principal>();
    let principal =
        principal.ok_or_else(|| Problem::new(Code::Unauthenticated, "nobody is known to call"))?;
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

/// The path's parameters.
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

/// The query's parameters.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = axum::extract::Query::from_request_parts(parts, state).await;
        found
            .map(|query| Self(query.0))
            .map_err(|error| Problem::new(Code::BadQuery, error.body_text()))
    }
}

/// A JSON body: what it says, and its bytes.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
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

/// The body, within the limit.
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

/// Refuses bodies that do not say that they are one of these: a page of another site cannot say so unasked.
pub(crate) fn require_content_type(kinds: &[&str], headers: &HeaderMap) -> Result<(), Problem> {
    let said = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim();
    if kinds.iter().any(|known| known.eq_ignore_ascii_case(kind)) {
        return Ok(());
    }
    let kinds = kinds.join("` or `");
    let detail = format!("expected `content-type: {kinds}`, found {said:?}");
    Err(Problem::new(Code::UnsupportedMediaType, detail))
}

/// Reads JSON; text that is none and text that says something else are two problems.
pub(crate) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let code = if error.is_data() {
            Code::BadBody
        } else {
            Code::BadJson
        };
        Problem::new(code, error.to_string())
    })
}
