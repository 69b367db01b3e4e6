//! Redaction: secrets are taken out of what is sent and of what is stored. All else of a request stays as written.
//!
//! It fails closed: a body that cannot be read is refused.
//!
//! Not here: what a secret looks like (`contexture-engine`), which kinds are redacted (`route::policy`).

use axum::http::StatusCode;
use contexture::Engine;
use contexture::engine::Secrets;
use serde_json::value::RawValue;

use crate::proxy::refusal::ProxyRefusal;

/// Returns the text of a request without these secrets; `None` if it has none of them.
///
/// # Errors
/// It is no JSON.
pub(crate) fn redact_request(
    secrets: &Secrets,
    text: &str,
) -> Result<Option<String>, ProxyRefusal> {
    // A body that is not JSON may hide a secret in an encoding that the patterns do not see.
    if serde_json::from_str::<&RawValue>(text).is_err() {
        let message = "the request cannot be read, and secrets are taken out of requests here";
        let status = StatusCode::BAD_REQUEST;
        return Err(ProxyRefusal::new(status, "unreadable", message));
    }
    let redacted = secrets.redact(text);
    // Unchanged text is not sent anew: the client's bytes, compressed or not, go out as they came.
    Ok((redacted != text).then(|| redacted.into_owned()))
}

/// Returns the engine with these secrets added to its own, so that none of them is stored.
pub(crate) fn with_added_secrets(engine: &Engine, secrets: Secrets) -> Engine {
    let mut all = engine.secrets().cloned().unwrap_or_default();
    // The engine's own patterns come first and stay in force: a policy can only add to them.
    all.patterns.extend(secrets.patterns);
    engine.clone().with_secrets(all)
}
