//! Secrets, taken out of what is sent and of what is stored. All else of a request stays as it was written.
//!
//! It fails closed: what cannot be read does not pass. Not here: what a secret looks like (`contexture-engine`), which of
//! them are meant (`choice`).

use axum::http::StatusCode;
use contexture::Engine;
use contexture::engine::Secrets;
use serde_json::value::RawValue;

use crate::proxy::refusal::ProxyRefusal;

/// The text of a request without these secrets; `None` if it has none of them.
///
/// # Errors
/// It is no JSON.
pub(crate) fn redact_request(
    secrets: &Secrets,
    text: &str,
) -> Result<Option<String>, ProxyRefusal> {
    if serde_json::from_str::<&RawValue>(text).is_err() {
        let message = "the request cannot be read, and secrets are taken out of requests here";
        let status = StatusCode::BAD_REQUEST;
        return Err(ProxyRefusal::new(status, "unreadable", message));
    }
    let redacted = secrets.redact(text);
    Ok((redacted != text).then(|| redacted.into_owned()))
}

/// The engine, that stores none of these secrets either.
pub(crate) fn with_added_secrets(engine: &Engine, secrets: Secrets) -> Engine {
    let mut all = engine.secrets().cloned().unwrap_or_default();
    all.patterns.extend(secrets.patterns);
    engine.clone().with_secrets(all)
}
