//! What an answer costs: its usage split into the meters that providers bill.

use contexture_catalogue::{Cost, Usage as Billed};
use contexture_ir::{Transcript, Usage};
use contexture_wire::long_cache_write;

use super::types::Ingested;
use crate::handle::Engine;

impl Ingested {
    /// Returns what an answer with this usage costs, as far as the catalogue has prices; `None` for an unknown
    /// model.
    #[must_use]
    pub fn answer_cost(&self, answer: &Transcript) -> Option<Cost> {
        answer_cost(self.chat.engine(), answer)
    }
}

/// Returns what an answer with this usage costs, as far as the catalogue has prices.
pub(crate) fn answer_cost(engine: &Engine, answer: &Transcript) -> Option<Cost> {
    let usage = answer.response.as_ref()?.usage.as_ref()?;
    let model = engine.catalogue().resolve(answer.model.as_deref()?);
    Some(model.ok()?.prices.cost(&billed_usage(usage)))
}

/// Usage as it is billed: each token on one meter.
fn billed_usage(usage: &Usage) -> Billed {
    let (read, write) = (usage.cache_read_tokens, usage.cache_write_tokens);
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    let hour = one_hour_write_tokens(usage);
    let mut billed = Billed::default();
    // Input is reported with what the cache read and wrote, which are billed at other prices.
    billed.input = usage.input_tokens.map(|input| input.saturating_sub(cached));
    billed.output = usage.output_tokens;
    billed.cache_read = read;
    billed.cache_write = write.map(|write| write.saturating_sub(hour.unwrap_or(0)));
    billed.cache_write_1h = hour;
    billed
}

/// The tokens that were written to the cache for an hour: some of those that were written.
fn one_hour_write_tokens(usage: &Usage) -> Option<u64> {
    // What is said can exceed the count of all writes only by mistake.
    long_cache_write(usage).map(|hour| hour.min(usage.cache_write_tokens.unwrap_or(0)))
}
