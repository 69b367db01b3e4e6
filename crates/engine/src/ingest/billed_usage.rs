//! What an answer's usage is billed as.

use contexture_catalogue::Usage as Billed;
use contexture_ir::Usage;
use contexture_wire::Format;
use serde::Deserialize;

/// Of what Anthropic says of writes to the cache; see its documentation of prompt caching, "1-hour cache duration".
#[derive(Deserialize)]
struct CacheWriteDetails {
    ephemeral_1h_input_tokens: Option<u64>,
}

/// Usage as it is billed: each token on one meter.
pub(super) fn billed_usage(usage: &Usage) -> Billed {
    let (read, write) = (usage.cache_read_tokens, usage.cache_write_tokens);
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    let hour = one_hour_write_tokens(usage);
    let mut billed = Billed::default();
    billed.input = usage.input_tokens.map(|input| input.saturating_sub(cached));
    billed.output = usage.output_tokens;
    billed.cache_read = read;
    billed.cache_write = write.map(|write| write.saturating_sub(hour.unwrap_or(0)));
    billed.cache_write_1h = hour;
    billed
}

/// The tokens that were written to the cache for an hour: some of those that were written.
fn one_hour_write_tokens(usage: &Usage) -> Option<u64> {
    let said = usage.extra.wire_fields(Format::Anthropic.as_str());
    let written: CacheWriteDetails =
        serde_json::from_str(said.get("cache_creation")?.get()).ok()?;
    written
        .ephemeral_1h_input_tokens
        .map(|hour| hour.min(usage.cache_write_tokens.unwrap_or(0)))
}
