//! The API as pages call it: within the process, on behalf of the reader, through the handlers that answer everybody.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::Response;
use contexture_inspector::{Api, ApiError, Document, Method};
use serde_json::Value;
use tower_service::Service as _;

use crate::access::Principal;
use crate::api::LAST_EVENT;

/// The routes of the API, and whoever they are called for.
pub(super) struct OwnApi<'a> {
    routes: &'a Router,
    principal: &'a Principal,
}

impl<'a> OwnApi<'a> {
    pub(super) const fn new(routes: &'a Router, principal: &'a Principal) -> Self {
        Self { routes, principal }
    }

    async fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Document, ApiError> {
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = request.body(body).map_err(|error| fault(&error))?;
        let response = self.respond_to(request).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await;
        let bytes = bytes.map_err(|error| fault(&error))?;
        let document = Document::parse(&bytes);
        match (status.is_success(), document) {
            (true, Some(document)) => Ok(document),
            (_, document) => Err(ApiError::from_problem(status.as_u16(), document.as_ref())),
        }
    }

    async fn respond_to(&self, mut request: Request) -> Response {
        // What `authenticate` leaves for handlers: scopes are checked by each of them.
        request.extensions_mut().insert(self.principal.clone());
        let response = self.routes.clone().call(request).await;
        // A router answers everything.
        let Ok(response) = response;
        response
    }

    /// Follows events as a stream, from behind the last one that was seen.
    pub(super) async fn follow(
        &self,
        path: &str,
        last: Option<&HeaderValue>,
    ) -> Result<Response, ApiError> {
        let mut request = Request::builder()
            .uri(path)
            .header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header(LAST_EVENT, last);
        }
        let request = request.body(Body::empty()).map_err(|error| fault(&error))?;
        let response = self.respond_to(request).await;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(read_problem(response).await),
        }
    }
}

async fn read_problem(response: Response) -> ApiError {
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX)
        .await
        .unwrap_or_default();
    ApiError::from_problem(status, Document::parse(&bytes).as_ref())
}

impl Api for OwnApi<'_> {
    async fn get(&self, path: &str) -> Result<Document, ApiError> {
        self.call("GET", path, None).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Document, ApiError> {
        self.call(method.as_str(), path, body).await
    }
}

/// An answer that never came. Its cause is logged, and is nobody else's business.
fn fault(error: &dyn std::error::Error) -> ApiError {
    tracing::error!(%error, "a page could not call the API");
    ApiError::from_problem(500, None)
}
