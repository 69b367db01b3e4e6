//! A compactor's summary of a span: an earlier one of the same content, or a new one unless the compactor keeps failing.
//!
//! Not here: the manifest that goes beside it (`compact`).

use contexture_ir::{ContentHash, Item, Part};
use contexture_store::{NodeKind, NodeQuery};

use super::compact::CompactOptions;
use super::compactor::CompactRequest;
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::path::parse_node_item;
use crate::state::parse_provenance;

/// The summary of a span, and how it came about.
pub(super) struct SpanSummary {
    /// `None` where the manifest stands alone.
    pub(super) text: Option<String>,
    /// Whether it is an earlier summary of the same content.
    pub(super) reused: bool,
    /// Why the compactor made none.
    pub(super) failure: Option<String>,
}

/// Returns the instructions of the caller, if they say anything.
pub(super) fn trimmed_instructions(options: &CompactOptions) -> Option<&str> {
    let instructions = options.instructions.as_deref().map(str::trim);
    instructions.filter(|text| !text.is_empty())
}

/// Returns what a summary depends on besides the span.
pub(super) fn summary_configuration(options: &CompactOptions) -> String {
    // Instructions change what a summary says, so they belong to its identity. Hashed, as they may be long.
    match trimmed_instructions(options) {
        None => options.compactor.configuration(),
        Some(text) => format!(
            "{} {}",
            options.compactor.configuration(),
            ContentHash::of(text.as_bytes())
        ),
    }
}

/// Finds an earlier summary of the same content, or asks the compactor for one.
pub(super) async fn summarise_span(
    chat: &Conversation,
    request: CompactRequest<'_>,
    hash: ContentHash,
    configuration: &str,
    options: &CompactOptions,
) -> Result<SpanSummary, EngineError> {
    // A summary costs a model call: the same content on another branch, or after an undo, reuses it.
    let earlier = find_earlier_summary(chat, hash, configuration).await?;
    if earlier.is_some() {
        return Ok(SpanSummary {
            text: earlier,
            reused: true,
            failure: None,
        });
    }
    // A failure is no error of the compaction: the manifest alone still makes room.
    let (text, failure) = match run_compactor(chat, request, configuration, options).await {
        Ok(text) => (text, None),
        Err(why) => (None, Some(why)),
    };
    Ok(SpanSummary {
        text,
        reused: false,
        failure,
    })
}

/// Asks the compactor, unless its breaker is open.
async fn run_compactor(
    chat: &Conversation,
    request: CompactRequest<'_>,
    configuration: &str,
    options: &CompactOptions,
) -> Result<Option<String>, String> {
    // Counted per configuration of the compactor, without the instructions: it is the same provider that fails.
    let breakers = chat.engine().circuit_breakers();
    let compactor = options.compactor.configuration();
    if !breakers.can_try(&compactor, options.breaker, chat.engine().now_ms()) {
        return Err(format!(
            "left alone after {} failures",
            options.breaker.failures
        ));
    }
    debug_assert!(
        configuration.starts_with(&compactor),
        "the breaker's name is the compactor's"
    );
    match options.compactor.summarise(request).await {
        Ok(summary) => {
            breakers.record_success(&compactor);
            Ok(summary.filter(|text| !text.trim().is_empty()))
        }
        Err(error) => {
            breakers.record_failure(&compactor, chat.engine().now_ms());
            Err(error.to_string())
        }
    }
}

/// A compactor's summary of the same content, made with the same configuration, wherever it stands in
/// this conversation.
async fn find_earlier_summary(
    chat: &Conversation,
    hash: ContentHash,
    configuration: &str,
) -> Result<Option<String>, EngineError> {
    let query = NodeQuery::Kind(NodeKind::Compaction);
    let nodes = chat
        .store()
        .find_nodes(chat.owner(), chat.id(), query)
        .await?;
    // Newest first; a redacted summary may quote what was removed.
    for node in nodes.iter().rev().filter(|node| node.redacted_ms.is_none()) {
        let Item::Compaction(compaction) = parse_node_item(node)? else {
            continue;
        };
        if parse_provenance(&compaction) == Some((hash.to_string(), configuration.to_owned())) {
            return Ok(compaction
                .summary
                .first()
                .and_then(Part::as_text)
                .map(str::to_owned));
        }
    }
    Ok(None)
}
