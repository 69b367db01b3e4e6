//! Usage summed over a conversation, in its metadata.

use contexture_ir::{Raw, Usage};
use contexture_store::{ConversationUpdate, Error as StoreError, MetadataChange};

use crate::error::EngineError;
use crate::handle::{Conversation, load_info};

/// The metadata entry that holds the sums.
const KEY: &str = "usage";

/// How often a concurrent update is met with another attempt.
const ATTEMPTS: usize = 64;

/// Adds the usage of a call to the conversation's sums, stored in its metadata under `usage`. A figure that
/// was never reported stays absent.
pub(crate) async fn track_usage(chat: &Conversation, usage: &Usage) -> Result<(), EngineError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let record = load_info(chat).await?;
        let sum = add_usage(record.metadata.get(KEY), usage);
        let update = ConversationUpdate {
            metadata: MetadataChange::Merge([(KEY.to_owned(), Some(sum))].into()),
            // Read, add, compare and set: two calls that end at once are both counted.
            expect_version: Some(record.version),
            ..ConversationUpdate::new(chat.engine().now_ms())
        };
        match chat
            .store()
            .update_conversation(chat.owner(), chat.id(), update)
            .await
        {
            Ok(_) => return Ok(()),
            Err(StoreError::VersionConflict { .. }) if attempt < ATTEMPTS => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn add_usage(before: Option<&Raw>, usage: &Usage) -> Raw {
    let mut sum: serde_json::Map<String, serde_json::Value> = before
        .and_then(|raw| raw.parse_as().ok())
        .unwrap_or_default();
    let figures = [
        ("input_tokens", usage.input_tokens),
        ("output_tokens", usage.output_tokens),
        ("total_tokens", usage.total_tokens),
        ("cache_read_tokens", usage.cache_read_tokens),
        ("cache_write_tokens", usage.cache_write_tokens),
        ("reasoning_tokens", usage.reasoning_tokens),
    ];
    for (name, figure) in figures {
        // An absent figure is not zero: a sum that nobody reported must stay absent.
        if let Some(figure) = figure {
            let known = sum
                .get(name)
                .and_then(serde_json::Value::as_u64)
                .unwrap_or(0);
            sum.insert(name.to_owned(), known.saturating_add(figure).into());
        }
    }
    Raw::from_value(&sum).unwrap_or_else(|_| Raw::null())
}
