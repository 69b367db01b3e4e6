//! Errors over HTTP: problem details (RFC 9457) with a stable code.
//!
//! Internal errors (a damaged file, a fault) are answered with their code alone. Details go to the log, because paths and
//! addresses are nobody's business. The codes and the document are in `contexture-api`; here are HTTP status and headers.

use std::error::Error;
use std::time::Duration;

use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use contexture::EngineError;
use contexture::store::{Error as StoreError, StorageFault};
use serde_json::{Map, Value, json};

use contexture_api::ProblemDocument;
use contexture_api::operations::OperationError;
pub(crate) use contexture_api::problem::Code;
use contexture_api::problem::engine_error_members;
pub(crate) use contexture_api::problem::error_chain;

/// When to retry what may succeed later, unless more is known.
const RETRY_SOON: Duration = Duration::from_secs(1);

/// An error on its way to the caller.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: Code,
    status: StatusCode,
    detail: String,
    retryable: bool,
    retry_after: Option<Duration>,
    extra_members: Option<Box<Map<String, Value>>>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            status: status_of_code(code),
            detail: detail.into(),
            retryable: code.is_retryable(),
            retry_after: code.is_retryable().then_some(RETRY_SOON),
            extra_members: None,
        }
    }

    /// Creates a problem with the word of a library's error and the status it is answered with.
    pub(crate) fn custom(
        word: &'static str,
        status: StatusCode,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            status,
            ..Self::new(Code::Custom(word), detail)
        }
    }

    /// Adds a member for programs.
    pub(crate) fn with_member(mut self, name: &str, value: Value) -> Self {
        self.extra_members
            .get_or_insert_default()
            .insert(name.to_owned(), value);
        self
    }

    /// Adds members for programs.
    fn with_members(mut self, members: Map<String, Value>) -> Self {
        if !members.is_empty() {
            self.extra_members.get_or_insert_default().extend(members);
        }
        self
    }

    /// Replaces when to retry, rounded up to seconds.
    pub(crate) fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Replaces the code, and with it the status.
    pub(crate) fn with_code(mut self, code: Code) -> Self {
        self.code = code;
        self.status = status_of_code(code);
        self.retryable = code.is_retryable();
        self.retry_after = self.retry_after.filter(|_| code.is_retryable());
        self
    }

    pub(crate) const fn code(&self) -> Code {
        self.code
    }

    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns when to retry, where that is known.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Answers with it, and ends the connection.
    pub(crate) fn into_last_response(self) -> Response {
        let mut response = self.into_response();
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
        response
    }

    fn into_retryable(mut self) -> Self {
        self.retryable = true;
        self.with_retry_after(RETRY_SOON)
    }

    /// Converts a library's error. The details of an internal error are not shown.
    fn from_error(word: &'static str, status: StatusCode, error: &dyn Error) -> Self {
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            return Self::internal_error(word, error);
        }
        Self::custom(word, status, error_chain(error))
    }

    /// Logs an internal error, and describes it by its code alone.
    pub(crate) fn internal_error(word: &'static str, error: &dyn Error) -> Self {
        let detail = "the server failed; its log says how";
        Self::logged_error(word, StatusCode::INTERNAL_SERVER_ERROR, error, detail)
    }

    /// Logs an error whose text is nobody's business, and describes it by `detail`.
    fn logged_error(
        word: &'static str,
        status: StatusCode,
        error: &dyn Error,
        detail: &'static str,
    ) -> Self {
        tracing::error!(error = %error_chain(error), "a request failed");
        Self::custom(word, status, detail)
    }
}

/// Returns the HTTP status of a code of this API. A library's code has none of its own: [`Problem::custom`] takes it.
const fn status_of_code(code: Code) -> StatusCode {
    match code {
        Code::BadPath
        | Code::BadQuery
        | Code::BadHeader
        | Code::BadJson
        | Code::BadBody
        | Code::BadCursor => StatusCode::BAD_REQUEST,
        Code::BadMessage => StatusCode::UNPROCESSABLE_ENTITY,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::MissingScope | Code::ForeignOrigin => StatusCode::FORBIDDEN,
        Code::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        // Not 408, which would say that the client was too slow with its request.
        Code::TimedOut | Code::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        // Only writes with `if-match` answer with these codes (`api/conventions/etag.rs`); without the header the same
        // conflict is the store's, with 409 (`store_status`).
        Code::HeadMoved | Code::VersionMoved => StatusCode::PRECONDITION_FAILED,
        // This status and the next are those of the IETF draft for the `Idempotency-Key` header.
        Code::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        Code::InProgress => StatusCode::CONFLICT,
        Code::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        Code::Custom(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status;
        let word = self.code.as_str();
        let mut document = ProblemDocument::new(word, status.as_u16(), self.detail);
        if self.retryable {
            document = document.retryable();
        }
        let document =
            document.with_members(self.extra_members.map(|more| *more).unwrap_or_default());
        let body = serde_json::to_vec(&document).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        // Rounded up: a client that comes a fraction early would be refused again.
        if let Some(wait) = self.retry_after {
            headers.insert(
                RETRY_AFTER,
                HeaderValue::from(wait.as_secs_f64().ceil() as u64),
            );
        }
        // RFC 9110, 15.5.2: an answer with 401 must name a way to authenticate.
        if self.code == Code::Unauthenticated {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = store_status(&error);
        let problem = match storage_detail(&error) {
            Some(detail) => Self::logged_error(error.kind(), status, &error, detail),
            None => Self::from_error(error.kind(), status, &error),
        };
        let retryable = error.is_retryable();
        let problem = problem.with_members(engine_error_members(&EngineError::Store(error)));
        if retryable {
            problem.into_retryable()
        } else {
            problem
        }
    }
}

fn store_status(error: &StoreError) -> StatusCode {
    match error {
        StoreError::NotFound { .. } => StatusCode::NOT_FOUND,
        StoreError::Ambiguous { .. }
        | StoreError::AlreadyExists { .. }
        | StoreError::HeadMoved { .. }
        | StoreError::StateConflict { .. }
        | StoreError::VersionConflict { .. }
        | StoreError::IdConflict { .. }
        | StoreError::StaleFence { .. }
        | StoreError::BranchHeld { .. }
        | StoreError::StaleEpoch { .. }
        | StoreError::StreamEnded { .. }
        | StoreError::ChunkConflict { .. }
        | StoreError::EpochChanged { .. } => StatusCode::CONFLICT,
        StoreError::ChunksGone { .. } => StatusCode::GONE,
        StoreError::Limit { .. } | StoreError::Invalid { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        StoreError::NotOffered { .. } => StatusCode::NOT_IMPLEMENTED,
        StoreError::Busy { .. }
        | StoreError::Unavailable { .. }
        | StoreError::Interrupted { .. }
        | StoreError::OutcomeUnknown { .. }
        | StoreError::Closed => StatusCode::SERVICE_UNAVAILABLE,
        StoreError::Storage {
            fault: StorageFault::Full,
            ..
        } => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns what is said of an error whose text names the database, where its status says more than that the server failed.
fn storage_detail(error: &StoreError) -> Option<&'static str> {
    match error {
        StoreError::Unavailable { .. } => {
            Some("the database cannot be reached at the moment; nothing was stored")
        }
        StoreError::Storage {
            fault: StorageFault::Full,
            ..
        } => Some("the database has no space left; nothing was stored"),
        _ => None,
    }
}

/// Describes one member that is wrong in a body that could be read.
pub(crate) fn member_problem(member: &str, detail: &str) -> Problem {
    Problem::new(Code::BadBody, format!("`{member}`: {detail}"))
        .with_member("faults", json!([{"member": member, "detail": detail}]))
}

impl From<OperationError> for Problem {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Member { member, detail } => member_problem(&member, &detail),
            OperationError::Message(detail) => Self::new(Code::BadMessage, detail),
            OperationError::Engine(error) => error.into(),
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let status = match error {
            EngineError::Store(error) => return error.into(),
            EngineError::NoLink { .. } | EngineError::UnknownRule { .. } => StatusCode::NOT_FOUND,
            EngineError::Evicted { .. } => StatusCode::GONE,
            EngineError::ConversationExists { .. } | EngineError::BranchBusy { .. } => {
                StatusCode::CONFLICT
            }
            EngineError::CannotSearch => StatusCode::NOT_IMPLEMENTED,
            _ if error.is_fault() => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        let problem = Self::from_error(error.kind(), status, &error);
        problem.with_members(engine_error_members(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the database cannot do now says so, in words that name no file.
    #[test]
    fn faults_of_the_database_say_whether_they_pass() {
        let check = |error: StoreError, status: u16, word: &str, retryable: bool| {
            let problem = Problem::from(error);
            assert_eq!(problem.status().as_u16(), status, "{problem:?}");
            assert_eq!(problem.code().as_str(), word);
            assert_eq!(problem.retryable, retryable, "{word}");
            assert_eq!(problem.retry_after().is_some(), retryable, "{word}");
            assert!(!problem.detail().contains("secret"), "{problem:?}");
        };
        let storage = |fault| StoreError::Storage {
            path: "/secret/chats.db".into(),
            fault,
            source: None,
        };
        let unavailable = StoreError::Unavailable {
            path: "postgres://secret:5432/chats".into(),
            source: "connection refused by secret".into(),
        };
        let interrupted = StoreError::Interrupted {
            why: "it took longer than 30000 ms".to_owned(),
        };
        check(unavailable, 503, "unavailable", true);
        check(interrupted, 503, "interrupted", true);
        check(storage(StorageFault::Full), 507, "storage_full", false);
        check(storage(StorageFault::Io), 500, "storage", false);
    }
}
