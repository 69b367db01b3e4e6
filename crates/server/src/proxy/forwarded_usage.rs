//! The usage that the answer to a forwarded request reports: of an embedding, say, whose row in the record of calls has tokens and,
//! where the catalogue knows its model, a price.
//!
//! The body is passed on as it comes. A copy is read behind it, once all of it has been passed on: only a JSON answer of at most
//! [`MAX_ANSWER_BYTES`], to a JSON request that named its model. Not here: answers of models, which are captured whole (`capture`).

use axum::http::HeaderMap;
use bytes::{Bytes, BytesMut};
use contexture::ir::Usage;
use contexture::models_http::decompress_to_end;
use serde::Deserialize;
use tokio::runtime::Handle;

use crate::proxy::headers;
use crate::state::call_log::CallRecorder;

/// Longest answer that is read for its usage, in bytes, as it comes and unpacked. An embedding has some 20 KiB.
const MAX_ANSWER_BYTES: usize = 512 << 10;

/// The copy of an answer, as far as it has come.
#[derive(Debug)]
pub(crate) struct UsageReader {
    headers: HeaderMap,
    body: BytesMut,
    is_too_long: bool,
}

impl UsageReader {
    /// Returns a reader for an answer with this head; `None` for one that is not read.
    pub(crate) fn for_answer(headers: &HeaderMap, call: &CallRecorder) -> Option<Self> {
        let length = headers::content_length(headers).unwrap_or(0);
        let is_short = length <= MAX_ANSWER_BYTES as u64;
        (is_short && headers::is_json(headers) && call.is_forwarded_to_model()).then(|| Self {
            headers: headers.clone(),
            body: BytesMut::new(),
            is_too_long: false,
        })
    }

    /// Takes a copy of the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.body.len().saturating_add(bytes.len()) > MAX_ANSWER_BYTES;
        match self.is_too_long {
            true => self.body = BytesMut::new(),
            false => self.body.extend_from_slice(bytes),
        }
    }

    /// Reads the usage of the whole answer into the row of its exchange, which is stored after that.
    pub(crate) fn finish(self, call: CallRecorder) {
        // Outside a runtime nothing can be stored any more.
        let (false, Ok(runtime)) = (self.is_too_long, Handle::try_current()) else {
            return;
        };
        let (headers, body) = (self.headers, self.body.freeze());
        // Not while the body is polled: the client has its answer, and nobody waits for this.
        let tasks = call.background_tasks();
        tasks.spawn_on(
            async move {
                let body = decompress_to_end(&headers, body, MAX_ANSWER_BYTES).await;
                if let Some(usage) = body.ok().as_ref().and_then(reported_usage) {
                    call.set_forwarded_usage(usage);
                }
            },
            &runtime,
        );
    }
}

/// Returns what an answer reports, by the names that OpenAI and those who follow it use; `None` where it reports nothing.
fn reported_usage(body: &Bytes) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Answer {
        usage: Reported,
    }
    #[derive(Deserialize)]
    struct Reported {
        // Embeddings say one, images the other.
        #[serde(alias = "input_tokens")]
        prompt_tokens: u64,
        #[serde(alias = "output_tokens")]
        completion_tokens: Option<u64>,
    }
    let Answer { usage } = serde_json::from_slice(body).ok()?;
    Some(Usage {
        input_tokens: Some(usage.prompt_tokens),
        // An embedding has no output that would be counted.
        output_tokens: Some(usage.completion_tokens.unwrap_or(0)),
        ..Usage::default()
    })
}
