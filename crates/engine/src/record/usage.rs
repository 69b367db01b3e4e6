//! Usage summed over a conversation, in its metadata.

use contexture_ir::{Raw, Usage};
use contexture_store::{ConversationUpdate, Error as StoreError, MetadataChange};
use serde_json::{Map, Value};

use crate::error::EngineError;
use crate::handle::{Conversation, load_info};

/// The metadata entry that holds the sums.
const KEY: &str = "usage";

/// How often a concurrent update is met with another attempt.
const ATTEMPTS: usize = 64;

/// The sums as they are stored, each with the places where the AI SDK keeps it: an imported chat has it there until something
/// is added. Some versions write a figure twice, so the first that is there counts.
const FIGURES: [(&str, Figure, &[&[&str]]); 6] = [
    (
        "input_tokens",
        |usage| usage.input_tokens,
        &[&["inputTokens"]],
    ),
    (
        "output_tokens",
        |usage| usage.output_tokens,
        &[&["outputTokens"]],
    ),
    (
        "total_tokens",
        |usage| usage.total_tokens,
        &[&["totalTokens"]],
    ),
    (
        "cache_read_tokens",
        |usage| usage.cache_read_tokens,
        &[
            &["cachedInputTokens"],
            &["inputTokenDetails", "cacheReadTokens"],
        ],
    ),
    (
        "cache_write_tokens",
        |usage| usage.cache_write_tokens,
        &[&["inputTokenDetails", "cacheWriteTokens"]],
    ),
    (
        "reasoning_tokens",
        |usage| usage.reasoning_tokens,
        &[
            &["reasoningTokens"],
            &["outputTokenDetails", "reasoningTokens"],
        ],
    ),
];

type Figure = fn(&Usage) -> Option<u64>;

type Sums = Map<String, Value>;

/// Adds the usage of a call to the conversation's sums, stored in its metadata under `usage`. A figure that
/// was never reported stays absent.
///
/// # Errors
/// [`EngineError::NotUsage`] if the application keeps something else there: it is not overwritten.
pub(crate) async fn track_usage(chat: &Conversation, usage: &Usage) -> Result<(), EngineError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let record = load_info(chat).await?;
        let sum = add_usage(record.metadata.get(KEY), usage)?;
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

fn add_usage(before: Option<&Raw>, usage: &Usage) -> Result<Raw, EngineError> {
    let mut sums: Sums = match before {
        Some(raw) => raw.parse_as().map_err(|_| not_usage(raw.get()))?,
        None => Map::new(),
    };
    for (name, figure, imported) in FIGURES {
        let stored = take_figure(&mut sums, &[name])?;
        let mut earlier = None;
        for place in imported {
            let found = take_figure(&mut sums, place)?;
            earlier = earlier.or(found);
        }
        let parts = [stored, earlier, figure(usage)].into_iter().flatten();
        // An absent figure is not zero: a sum that nobody reported must stay absent.
        if let Some(sum) = parts.reduce(u64::saturating_add) {
            sums.insert(name.to_owned(), sum.into());
        }
    }
    Ok(Raw::from_value(&sums)?)
}

/// Takes a figure out of an object, or out of an object in it.
fn take_figure(sums: &mut Sums, place: &[&str]) -> Result<Option<u64>, EngineError> {
    let found = match place {
        [name] => sums.remove(*name),
        [outer, inner] => {
            let object = sums.get_mut(*outer).and_then(Value::as_object_mut);
            object.and_then(|object| object.remove(*inner))
        }
        _ => None,
    };
    match found {
        None | Some(Value::Null) => Ok(None),
        Some(found) => match found.as_u64() {
            Some(figure) => Ok(Some(figure)),
            None => Err(not_usage(&found.to_string())),
        },
    }
}

fn not_usage(found: &str) -> EngineError {
    EngineError::NotUsage {
        found: found.chars().take(40).collect(),
    }
}
