//! A provider whose answers follow from the requests.
//!
//! Texts are answered with a text, outputs of tools with one that repeats them. A line of the last message that begins
//! with `upstream:` asks for something else.

mod anthropic;
mod chat;
mod dialect;
mod documents;
mod gemini;
mod order;
mod prompt;
mod reply;
mod responses;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;

use serde_json::Value;

use crate::answer::UpstreamResponse;
use crate::provider::Provider;
use crate::provider::Received;
use dialect::{Operation, ProviderApi};
use order::{Failure, ScriptDirectives};
use prompt::Prompt;
use reply::ScriptedReply;

/// Prompts that are remembered as in a provider's cache.
const REMEMBERED: usize = 64;

/// Speaks the formats of OpenAI, Anthropic and Gemini, streaming and not, with errors and lists of models in their shapes.
///
/// It is asked for what it does by lines of the last message of the person:
///
/// | Line | Does |
/// |---|---|
/// | `upstream: call weather {"city":"Paris"}` | calls the tool; with more such lines, more calls |
/// | `upstream: again 3 weather {"city":"Paris"}` | calls the tool, and again behind its output, three times in all |
/// | `upstream: words 2000` | says so many words |
/// | `upstream: status 429` | an error in the provider's shape, to be tried again at once |
/// | `upstream: status 429 once` | the same, the first time this request comes |
/// | `upstream: silence`, `… silence once` | closes the connection without an answer |
/// | `upstream: drop 300`, `… drop 300 once` | loses the connection after so many bytes of the answer |
/// | `upstream: stall 300` | sends so many bytes of the answer, then nothing |
/// | `upstream: pieces 7` | sends the answer in chunks of so many bytes |
///
/// Ids, usage and words follow from the request. What is reported as read from the cache follows from the requests
/// before: the longest beginning that one of the last of them shares with this, in blocks of 128 tokens; a token is four
/// bytes.
#[derive(Debug, Default)]
pub struct ScriptedProvider {
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// How often each request came.
    attempts: BTreeMap<u64, usize>,
    prompts: Vec<String>,
}

impl Provider for ScriptedProvider {
    fn respond_to(&self, request: &Received) -> UpstreamResponse {
        let dialect = ProviderApi::from_request(request);
        let document = request.json();
        match Operation::from_request(request) {
            Operation::Unknown => {
                documents::error_response(dialect, 404, "there is nothing at this path")
            }
            Operation::Models(None) => {
                UpstreamResponse::json(200, &documents::model_list_json(dialect))
            }
            Operation::Models(Some(name)) => {
                UpstreamResponse::json(200, &documents::model_json(dialect, name))
            }
            Operation::Count => UpstreamResponse::json(
                200,
                &documents::token_count_json(
                    dialect,
                    Prompt::from_body(dialect, &document).token_count(),
                ),
            ),
            Operation::Generate => self.generate_response(dialect, request, &document),
        }
    }
}

impl ScriptedProvider {
    fn generate_response(
        &self,
        dialect: ProviderApi,
        request: &Received,
        document: &Value,
    ) -> UpstreamResponse {
        let prompt = &Prompt::from_body(dialect, document);
        // Directives of the last message apply, and `again` of the person's message for as many rounds.
        let order = ScriptDirectives::from_message(&prompt.last_text)
            .in_round(&prompt.last_user_text, prompt.outputs);
        let key = request_key(request, document);
        let mut memory = self.memory.lock().unwrap();
        let attempt = memory.attempts.entry(key).or_default();
        // Counted before answering, because `once` depends on it.
        *attempt += 1;
        let failure = order.failure_of(*attempt);
        if let Some(Failure::Status(status)) = failure {
            // The SDKs read one or the other.
            return documents::error_response(dialect, status, "the script asks for an error")
                .with_header("retry-after", "1")
                .with_header("retry-after-ms", "20");
        }
        let cached = memory.remember_prompt(&prompt.text);
        // Unlocked before the answer is built, which may be long.
        drop(memory);
        let reply = ScriptedReply::for_prompt(prompt, &order, key, cached);
        let answer = documents::completion_response(dialect, request, &reply);
        let answer = match order.pieces {
            Some(bytes) => answer.in_pieces_of(bytes),
            None => answer,
        };
        match failure {
            Some(Failure::Silence) => UpstreamResponse::no_response(),
            Some(Failure::Drop(bytes)) => answer.dropped_at(bytes),
            Some(Failure::Stall(bytes)) => answer.stalled_at(bytes),
            Some(Failure::Status(_)) | None => answer,
        }
    }
}

impl Memory {
    /// The tokens of the prompt that are known from others; it is known from now on.
    fn remember_prompt(&mut self, prompt: &str) -> usize {
        let shared = |known: &String| {
            // Bytes are compared, for a provider's cache goes by the exact prefix.
            let pairs = known.bytes().zip(prompt.bytes());
            pairs.take_while(|(left, right)| left == right).count()
        };
        let bytes = self.prompts.iter().map(shared).max().unwrap_or(0);
        if self.prompts.len() == REMEMBERED {
            // The oldest goes first: a cache forgets.
            self.prompts.remove(0);
        }
        self.prompts.push(prompt.to_owned());
        // Four bytes a token, in whole blocks of 128 tokens, as OpenAI reports cached tokens.
        bytes / 4 / 128 * 128
    }
}

/// What stands for the request: equal requests have equal ones, in whatever order their fields are written.
fn request_key(request: &Received, document: &Value) -> u64 {
    // This hasher has fixed keys, so ids are the same in every run.
    let mut hasher = DefaultHasher::new();
    (&request.target, document).hash(&mut hasher);
    hasher.finish()
}
