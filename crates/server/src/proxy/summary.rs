//! Summaries by a model behind a client's requests: whom the policy of a request may ask, and with whose key.
//!
//! A question goes where the client's request went, with the head that this had: the configured key, or the client's own where the
//! policy says so. That key stays in memory until the question is answered. Nothing here is on the way of a request: the question
//! follows the answer, in the background.
//!
//! Not here: when a summary is due, what is asked, and how the answer is used (`contexture-engine`).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use axum::http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use bytes::Bytes;
use contexture::compile::Target;
use contexture::engine::{BackgroundSummary, ModelCompactor, SummaryModel, SummaryPayer};
use contexture::ir::{ConversationId, Owner};
use contexture::models::{Model, ModelError, ModelRequest, ModelResponse};
use contexture::models_http::{PassthroughRequest, Upstream, UpstreamError, decompress_to_end};
use contexture::store::CallNames;
use contexture::store::rules::call_name;
use contexture::wire::{CallPath, HttpProfile, ResponseMode, StreamFailure};
use contexture_api::policy::{CompactConfig, PolicyConfig, SummaryCredentials};
use futures_util::StreamExt as _;

use crate::access::Principal;
use crate::proxy::auth::{OutgoingHead, insert_upstream_key};
use crate::state::App;
use crate::state::call_log::RequestId;
use crate::state::spending::{SpendRefusal, check_caller, check_conversation};
use crate::state::upstreams::ConfiguredUpstream;

/// Longest answer to a question, in bytes.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// The request whose conversation may get a summary.
pub(crate) struct SummaryCaller<'a> {
    pub(crate) app: &'a App,
    pub(crate) principal: &'a Principal,
    /// Name of the policy; empty for none.
    pub(crate) policy: &'a str,
    /// Where it goes.
    pub(crate) upstream: &'a ConfiguredUpstream,
    /// Its path there.
    pub(crate) path: &'a str,
    /// Its head as it goes out.
    pub(crate) head: &'a OutgoingHead,
}

impl SummaryCaller<'_> {
    /// Returns who writes summaries under a policy; `None` if it wants none, or if there is no key that it may ask with.
    pub(crate) fn summary_for(&self, policy: &PolicyConfig) -> Option<BackgroundSummary> {
        if policy.compact != Some(CompactConfig::Summary) {
            return None;
        }
        let may_use_client = policy.summary_credentials == SummaryCredentials::Client;
        let has_key = self.upstream.key.is_some() || may_use_client;
        let own = has_key.then(|| Arc::new(self.own_model()));
        let name = policy.summary_upstream.as_deref();
        let other = policy.summary_model.as_deref().and_then(|model| {
            let upstream = match name {
                Some(name) => self.app.upstreams().find_by_name(name)?,
                None => self.upstream,
            };
            self.other_model(upstream, model, has_key)
        });
        let summary = match (own, other) {
            (Some(own), Some(other)) => {
                BackgroundSummary::by_own_model(own).or_by_other_model(other)
            }
            (Some(own), None) => BackgroundSummary::by_own_model(own),
            (None, Some(other)) => BackgroundSummary::by_other_model(other),
            (None, None) => return None,
        };
        let payer = Payer {
            app: self.app.clone(),
            principal: self.principal.clone(),
            policy: call_name(self.policy),
            own_upstream: call_name(&self.upstream.name),
            other_upstream: call_name(name.unwrap_or(&self.upstream.name)),
        };
        Some(summary.paid_by(Arc::new(payer)))
    }

    /// The conversation's own model, asked as the client asks it.
    fn own_model(&self) -> UpstreamModel {
        let profile = self.upstream.format.http_profile();
        UpstreamModel {
            host: self.upstream.host.clone(),
            path: whole_answer_path(profile, self.path, self.head.query.as_deref()),
            headers: question_headers(&self.head.headers),
        }
    }

    /// Another model, with the key of its upstream; at the request's own upstream with what the request is sent with.
    fn other_model(
        &self,
        upstream: &ConfiguredUpstream,
        model: &str,
        has_key: bool,
    ) -> Option<ModelCompactor> {
        let profile = upstream.format.http_profile()?;
        let mut headers = match upstream.name == self.upstream.name && has_key {
            true => question_headers(&self.head.headers),
            false => {
                let mut headers = HeaderMap::new();
                insert_upstream_key(&mut headers, upstream.format, upstream.key.as_ref()?).ok()?;
                headers
            }
        };
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        if let Some((name, value)) = profile.version_header {
            let name = HeaderName::from_static(name);
            headers
                .entry(name)
                .or_insert(HeaderValue::from_static(value));
        }
        let steps = profile.path.call_steps(model, ResponseMode::Whole);
        let format = upstream.format.formats().next()?;
        let asked = UpstreamModel {
            host: upstream.host.clone(),
            path: format!("/{}", steps.join("/")),
            headers,
        };
        Some(ModelCompactor::new(
            Arc::new(asked),
            Target::new(format, model),
        ))
    }
}

/// Returns the headers of a request, for another body whose answer is wanted whole.
fn question_headers(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.remove(CONTENT_ENCODING);
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers
}

/// Returns the path of a request, with its query, for an answer that is no stream.
fn whole_answer_path(profile: Option<&HttpProfile>, path: &str, query: Option<&str>) -> String {
    let mut whole_path = path.to_owned();
    let mut query = query.unwrap_or_default().to_owned();
    if let Some(CallPath::Model {
        whole,
        stream,
        stream_query,
        ..
    }) = profile.map(|profile| profile.path)
        && let Some(front) = path.strip_suffix(stream)
    {
        whole_path = format!("{front}{whole}");
        let others = query.split('&').filter(|pair| *pair != stream_query);
        query = others.collect::<Vec<_>>().join("&");
    }
    match query.is_empty() {
        true => whole_path,
        false => format!("{whole_path}?{query}"),
    }
}

/// The caller whose requests get summaries: its limits hold for their questions, which are recorded under its names.
struct Payer {
    app: App,
    principal: Principal,
    policy: String,
    own_upstream: String,
    other_upstream: String,
}

impl fmt::Debug for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payer").finish_non_exhaustive()
    }
}

#[async_trait]
impl SummaryPayer for Payer {
    fn names(&self, asked: SummaryModel) -> CallNames {
        let upstream = match asked {
            SummaryModel::Own => &self.own_upstream,
            SummaryModel::Other => &self.other_upstream,
        };
        let key = self.principal.key.as_deref().unwrap_or_default();
        CallNames {
            upstream: upstream.clone(),
            key: call_name(key),
            policy: self.policy.clone(),
            ..CallNames::default()
        }
    }

    async fn may_ask(&self, owner: &Owner, conversation: &ConversationId) -> Result<(), String> {
        let now = RequestId::new();
        check_caller(&self.app, &self.principal, now)
            .await
            .map_err(SpendRefusal::into_reason)?;
        check_conversation(&self.app, owner, conversation, now)
            .await
            .map_err(SpendRefusal::into_reason)
    }
}

/// A model behind an upstream, asked with the head of a request that was passed on.
#[derive(Clone)]
struct UpstreamModel {
    host: Upstream,
    path: String,
    headers: HeaderMap,
}

impl fmt::Debug for UpstreamModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither path nor headers: both may have a key in them.
        f.debug_struct("UpstreamModel").finish_non_exhaustive()
    }
}

#[async_trait]
impl Model for UpstreamModel {
    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError> {
        let ModelRequest { model, payload, .. } = request;
        let unreachable = |error: UpstreamError| ModelError::Unreachable {
            model: model.clone(),
            reason: error.to_string(),
        };
        let question = PassthroughRequest {
            method: Method::POST,
            path: self.path.clone(),
            headers: self.headers.clone(),
            body: Bytes::from(payload),
        };
        let mut answer = self.host.send(question).await.map_err(unreachable)?;
        let malformed = |reason: String| ModelError::Malformed {
            model: model.clone(),
            reason,
        };
        let mut bytes = Vec::new();
        while let Some(piece) = answer.body.next().await {
            bytes.extend_from_slice(&piece.map_err(unreachable)?);
            if bytes.len() > MAX_ANSWER_BYTES {
                return Err(malformed(format!(
                    "it is longer than {MAX_ANSWER_BYTES} bytes"
                )));
            }
        }
        let bytes = decompress_to_end(&answer.headers, bytes.into(), MAX_ANSWER_BYTES).await;
        let bytes = bytes.map_err(|error| malformed(error.to_string()))?;
        let body = String::from_utf8_lossy(&bytes).into_owned();
        if answer.status.is_success() {
            return Ok(ModelResponse::new(body));
        }
        // What the provider says is not repeated: it may quote the request.
        let failure = StreamFailure {
            message: format!("the provider answered {}", answer.status),
            ..StreamFailure::from_body(&body)
        };
        let status = Some(answer.status.as_u16());
        Err(ModelError::from_failure(&model, &failure, status, None))
    }
}

#[cfg(test)]
mod tests {
    use contexture::Format;

    use super::*;

    #[test]
    fn question_goes_where_whole_answers_come_from() {
        let path = |format: Format, path: &str, query: Option<&str>| {
            whole_answer_path(format.spec().http(), path, query)
        };
        let gemini = "/v1beta/models/gemini-3.1-pro:streamGenerateContent";
        assert_eq!(
            path(Format::Gemini, gemini, Some("alt=sse&key=k")),
            "/v1beta/models/gemini-3.1-pro:generateContent?key=k"
        );
        assert_eq!(
            path(Format::Bedrock, "/model/m/converse-stream", None),
            "/model/m/converse"
        );
        let whole = "/model/m/converse";
        assert_eq!(path(Format::Bedrock, whole, None), whole);
        assert_eq!(
            path(Format::Anthropic, "/v1/messages", Some("beta=true")),
            "/v1/messages?beta=true"
        );
    }
}
