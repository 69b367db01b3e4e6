//! Requests that are made once, however often they are sent: `idempotency-key`.
//!
//! The answer is kept with the owner's values for a day at least, and given again to whoever sends the same
//! request under the same key; another request under it is refused. While the first runs, the second is told so: a claim
//! names the process that answers, and holds for as long as that process lives. If the server dies in between, or cannot
//! tell whether the request was stored, it is made again: conversations and messages have ids that derive from the key
//! ([`OperationId`]), so what is there already is found and answered. What else a `POST` makes is made once as long as it
//! is answered.
//!
//! Answers that say "come again" are not kept, nor those to callers who may not do it, nor one too large for a value.
//! Who may not write makes nothing, and leaves no record here either.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_MATCH, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use contexture::engine::ProcessState;
use contexture::ir::{NodeId, ProcessId};
use contexture::store::{
    Error as StoreError, ExpectedVersion, KeyScope, KeyValueEntry, ListEntries, PutEntry,
};
use contexture::{Engine, Owner};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::access::Principal;
use crate::config::AccessScope;
use crate::problem::{Code, Problem};
use crate::state::App;
use crate::state::running_claims::{RunningClaim, RunningClaims};

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Under which the owner's values have the answers, by day, so that old ones come first.
const ANSWER_KEY_PREFIX: &str = "http/once/";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The longest key.
const MAX_KEY_LENGTH: usize = 255;
/// Old answers that go with each new one.
const SWEEP_BATCH: usize = 8;
/// When to come again while this process answers a request.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// What is kept of an answer's head.
const STORED_HEADERS: [HeaderName; 3] = [CONTENT_TYPE, ETAG, LOCATION];

/// The header, for the description of the API.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IdempotencyKeyParam {
    /// Any text of at most 255 visible characters: the same request under the same key is made once, and gets the same answer for
    /// a day at least.
    #[param(rename = "idempotency-key", required = false, max_length = 255)]
    _key: Option<String>,
}

/// The seed of the ids that one request makes: the same each time it is sent under one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperationId(pub(crate) [u8; 16]);

impl OperationId {
    /// Returns the id of what the request makes.
    pub(crate) fn derived_id(&self) -> String {
        NodeId::from_bytes(self.0).to_string()
    }
}

impl<S: Sync> FromRequestParts<S> for OperationId {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        // Set by the middleware if there is a key. Without one a request cannot be recognized when
        // it is sent again, so any new id will do.
        let known = parts.extensions.get().copied();
        Ok(known.unwrap_or_else(|| Self(uuid::Uuid::now_v7().into_bytes())))
    }
}

/// The stored record of a key.
#[derive(Debug, Deserialize, Serialize)]
struct IdempotencyRecord {
    /// Fingerprint of the request.
    print: String,
    /// Process that answers the request; none in records of earlier versions, which did not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<String>,
    answer: Option<ReplayableResponse>,
}

#[derive(Debug, Deserialize, Serialize)]
struct ReplayableResponse {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

/// Runs a `POST` with an idempotency key once, and replays its answer to repetitions.
pub(crate) async fn run_idempotently(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let key = request
        .headers()
        .get(&HEADER)
        .filter(|_| request.method() == Method::POST)
        .cloned();
    let principal = request.extensions().get::<Principal>();
    // Without the scope the handler refuses anyway, and a refusal must not occupy a key.
    let principal = principal.filter(|caller| caller.require_scope(AccessScope::Write).is_ok());
    let (Some(key), Some(principal)) = (key, principal.cloned()) else {
        return Ok(next.run(request).await);
    };
    let key = key
        .to_str()
        .ok()
        .filter(|key| (1..=MAX_KEY_LENGTH).contains(&key.len()));
    let key = key.ok_or_else(|| {
        let detail =
            format!("`idempotency-key`: expected 1 to {MAX_KEY_LENGTH} visible characters");
        Problem::new(Code::BadHeader, detail)
    })?;
    // A bad key was refused above, so that no body is read for it.
    let limits = &app.config().server.limits;
    let (mut parts, body) = request.into_parts();
    // Buffered here because the fingerprint covers all of it; the handler gets the same bytes.
    let body = to_bytes(body, limits.body_bytes).await;
    let body = body.map_err(|_| {
        Problem::new(
            Code::BodyTooLarge,
            "the body is larger than this server takes",
        )
    })?;
    let claims = ClaimStore {
        engine: app.engine(),
        running: app.running_claims(),
        owner: &principal.owner,
        key_hash: NodeId::derive("http once", &[key.as_bytes()]).to_string(),
    };
    let print = fingerprint(&parts, &body);
    let claim = match claims.claim_key(&print).await? {
        ClaimOutcome::Answered(answer) => return Ok(replay_response(answer)),
        ClaimOutcome::Claimed(claim) => claim,
    };
    // Ids derive from owner and key, so a request that is sent again after a crash makes the same ones.
    let owner = principal.owner.as_str().as_bytes();
    let operation = NodeId::derive("http operation", &[owner, key.as_bytes()]);
    parts.extensions.insert(OperationId(*operation.as_bytes()));
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    claims.store_response(claim, print, response).await
}

/// Returns a hash over everything that makes two requests the same.
fn fingerprint(parts: &Parts, body: &Bytes) -> String {
    let header = |name| {
        parts
            .headers
            .get(name)
            .map_or(&b""[..], HeaderValue::as_bytes)
    };
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    // Headers that change what a request does; all others may differ between a request and its retry.
    let parts = [
        path.as_bytes(),
        header(CONTENT_TYPE),
        header(IF_MATCH),
        body,
    ];
    NodeId::derive("http request", &parts).to_string()
}

fn replay_response(answer: ReplayableResponse) -> Response {
    // Never wrong in practice: the number was taken from a valid status.
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = (status, answer.body).into_response();
    let headers = response.headers_mut();
    // Text bodies come with a content type of their own; the stored one replaces it.
    headers.remove(CONTENT_TYPE);
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// The idempotency keys of an owner, stored with its values.
struct ClaimStore<'a> {
    engine: &'a Engine,
    running: &'a RunningClaims,
    owner: &'a Owner,
    key_hash: String,
}

/// A key that this request has to answer.
struct KeyClaim {
    entry_key: String,
    version: u64,
    /// Held until the answer is stored or the request is given up, whichever way its future ends.
    _running: RunningClaim,
}

enum ClaimOutcome {
    Answered(ReplayableResponse),
    Claimed(KeyClaim),
}

impl ClaimStore<'_> {
    /// Claims the key, or finds its answer.
    async fn claim_key(&self, print: &str) -> Result<ClaimOutcome, Problem> {
        let now = self.engine.now_ms();
        let (today, yesterday) = (self.entry_key(now), self.entry_key(now - DAY_MS));
        // Records are filed by the day of their first request; a repetition after midnight must still find yesterday's.
        let mut known = self.load_entry(&yesterday).await?;
        if known.is_none() {
            known = self.load_entry(&today).await?;
        }
        let (name, expect) = match known {
            None => {
                // Old answers are removed by those who add new ones, so that no background job is needed.
                self.remove_expired(now).await;
                (today, ExpectedVersion::Absent)
            }
            Some(entry) => {
                // A record that cannot be read is overwritten: refusing would block the key until
                // it expires.
                let record: Option<IdempotencyRecord> = serde_json::from_slice(&entry.value).ok();
                if let Some(record) = record {
                    if record.print != print {
                        let detail =
                            "another request was sent under this `idempotency-key`; take a new one";
                        return Err(Problem::new(Code::KeyReused, detail));
                    }
                    if let Some(answer) = record.answer {
                        return Ok(ClaimOutcome::Answered(answer));
                    }
                    self.check_abandoned(&record).await?;
                }
                (entry.key, ExpectedVersion::Version(entry.version))
            }
        };
        let running = self.running.start(self.owner, &self.key_hash);
        let running = running.ok_or_else(|| in_progress(RETRY_DELAY))?;
        // Registered before it is named: a process that nobody knows is taken for a dead one.
        let process = self.engine.register_process().await?;
        let record = IdempotencyRecord {
            print: print.to_owned(),
            process: Some(process.to_string()),
            answer: None,
        };
        match self.put_record(&name, Some(&record), expect).await {
            Ok(version) => Ok(ClaimOutcome::Claimed(KeyClaim {
                entry_key: name,
                version,
                _running: running,
            })),
            // Another request of the same key claimed it between the look and the write.
            Err(StoreError::VersionConflict { .. }) => Err(in_progress(RETRY_DELAY)),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that nobody answers a claimed request any more.
    ///
    /// # Errors
    /// The process of the claim may live.
    async fn check_abandoned(&self, record: &IdempotencyRecord) -> Result<(), Problem> {
        let process = record.process.as_deref();
        let Some(process) = process.and_then(|id| id.parse::<ProcessId>().ok()) else {
            return Ok(());
        };
        // Whether a claim of this very process was given up is known by what is running.
        if process == self.engine.register_process().await? {
            return Ok(());
        }
        match self.engine.process_state(process).await? {
            ProcessState::Dead => Ok(()),
            ProcessState::Alive { dead_in } => Err(in_progress(dead_in)),
        }
    }

    /// Stores the answer, unless the same request may get another one later.
    async fn store_response(
        &self,
        claim: KeyClaim,
        print: String,
        response: Response,
    ) -> Result<Response, Problem> {
        // Half, because a text may grow when it is written as a JSON string.
        let max_bytes = self.engine.store().limits().entry_bytes / 2;
        let status = response.status();
        let (parts, body) = response.into_parts();
        // Unlimited: handlers of the API answer from memory, so the bytes exist already.
        let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let text = std::str::from_utf8(&body)
            .ok()
            .filter(|text| text.len() <= max_bytes);
        // These depend on the moment or on the caller's rights, so a retry may be answered
        // otherwise.
        let is_temporary = status.is_server_error()
            || [
                StatusCode::TOO_MANY_REQUESTS,
                StatusCode::UNAUTHORIZED,
                StatusCode::FORBIDDEN,
            ]
            .contains(&status);
        let record = text
            .filter(|_| !is_temporary)
            .map(|text| IdempotencyRecord {
                print,
                process: None,
                answer: Some(ReplayableResponse {
                    status: status.as_u16(),
                    headers: STORED_HEADERS
                        .iter()
                        .filter_map(|name| {
                            Some((
                                name.to_string(),
                                parts.headers.get(name)?.to_str().ok()?.to_owned(),
                            ))
                        })
                        .collect(),
                    body: text.to_owned(),
                }),
            });
        // Not fatal: if another request has taken the key over it stores its own answer, and a lost one is made again.
        let stored = self
            .put_record(
                &claim.entry_key,
                record.as_ref(),
                ExpectedVersion::Version(claim.version),
            )
            .await;
        if let Err(error) = stored {
            tracing::warn!(%error, "the answer to an idempotent request was not kept");
        }
        Ok(Response::from_parts(parts, Body::from(body)))
    }

    async fn load_entry(&self, name: &str) -> Result<Option<KeyValueEntry>, Problem> {
        Ok(self
            .engine
            .store()
            .get_entry(self.owner, &KeyScope::Owner, name)
            .await?)
    }

    async fn put_record(
        &self,
        name: &str,
        record: Option<&IdempotencyRecord>,
        expect: ExpectedVersion,
    ) -> Result<u64, StoreError> {
        let value = record.map(|record| Arc::from(serde_json::to_vec(record).unwrap_or_default()));
        let put = PutEntry {
            key: name.to_owned(),
            value,
            expect,
            at_ms: self.engine.now_ms(),
        };
        self.engine
            .store()
            .put_entry(self.owner, &KeyScope::Owner, put)
            .await
    }

    /// Removes some expired answers. What cannot be removed now is tried again with the next claim.
    async fn remove_expired(&self, now: i64) {
        let list = ListEntries {
            limit: Some(SWEEP_BATCH),
            ..ListEntries::in_scope(KeyScope::Owner, ANSWER_KEY_PREFIX)
        };
        // Cleaning up must never fail the request that happens to do it.
        let Ok(page) = self.engine.store().list_entries(self.owner, list).await else {
            return;
        };
        // Yesterday's stay: a claim looks for a key under both days.
        let oldest = day_prefix(now - DAY_MS);
        for (_, entry) in page.entries {
            if entry.key.as_str() < oldest.as_str() {
                let gone = self
                    .put_record(&entry.key, None, ExpectedVersion::Version(entry.version))
                    .await;
                gone.map_or_else(|error| tracing::debug!(%error, "an old answer stays"), drop);
            }
        }
    }

    fn entry_key(&self, at_ms: i64) -> String {
        format!("{}{}", day_prefix(at_ms), self.key_hash)
    }
}

fn day_prefix(at_ms: i64) -> String {
    format!("{ANSWER_KEY_PREFIX}{:08}/", at_ms.div_euclid(DAY_MS).max(0))
}

/// `wait` is the time after which it is known whether the request was answered.
fn in_progress(wait: Duration) -> Problem {
    Problem::new(
        Code::InProgress,
        "this request is being answered; send it again in a moment",
    )
    .with_retry_after(wait)
}
