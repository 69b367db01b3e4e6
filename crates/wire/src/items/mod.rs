//! Our own document format: items as they are stored, with nothing left out.
//!
//! A bare array of items, or an object:
//!
//! ```json
//! {
//!   "model": "…",
//!   "instructions": [{"type": "message", "role": "system", "content": [{"type": "input_text", "text": "…"}]}],
//!   "items": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "…"}]}],
//!   "tools": [{"type": "function", "name": "…", "description": "…", "parameters": {}, "strict": true},
//!             {"type": "provider", "format": "anthropic", "kind": "…", "raw": {}}],
//!   "options": {"max_output_tokens": 1, "temperature": 0.5, "top_p": 1, "stop": ["…"],
//!               "tool_choice": "auto", "parallel_tool_calls": true,
//!               "response_format": {"type": "json_schema", "name": "…", "description": "…", "schema": {}, "strict": true},
//!               "reasoning": {"effort": "low", "budget_tokens": 1, "summary": "auto"}, "stream": false},
//!   "response": {"id": "…", "finish": "stop", "usage": {"input_tokens": 1, "output_tokens": 1, "extra": {}}}
//! }
//! ```
//!
//! Every field but `items` may be absent. `tool_choice` is `auto`, `none`, `required`,
//! `{"type":"function","name"}` or `{"type":"other","format","raw"}`; `response_format` has the type `text`, `json_object` or `json_schema`; `finish` is `stop`,
//! `tool_calls`, `length`, `content_filter` or `{"other": "…"}`. Other top-level fields, and other
//! fields of items, parts and function tools, are kept as they are; items of an unknown type byte
//! for byte. In a bare array leading system and developer messages are the instructions. A document
//! with `response` is a response.
//!
//! What people write by hand is read too, and written back in the one spelling that items are stored in,
//! which says the same and is therefore no loss: a `content` that is a bare string or absent becomes
//! an array of parts; a message without `type` gets it; a thought without a summary gets an empty
//! one, and an empty summary of a compaction is left out; camelCase names of known fields (`callId`,
//! `imageUrl`) become snake_case. What is written once in this spelling comes back the same.

mod read;
mod spec;
mod write;

use read::lift;
use write::lower;

pub(crate) use spec::Items;
