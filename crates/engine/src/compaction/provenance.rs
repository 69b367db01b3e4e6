//! What a compaction item says of how it was made: in its field `ctx:covers`, never in its text.

use contexture_compile::compaction::COVERS;
use contexture_ir::{Compaction, ContentHash, Fields, NodeId, Raw};

use crate::error::EngineError;

/// What a compaction says of how it was made.
pub(crate) fn encode_provenance(
    first: NodeId,
    last: NodeId,
    hash: ContentHash,
    by: Option<&String>,
) -> Result<Raw, EngineError> {
    let mut said = serde_json::json!({
        "first": first.to_string(),
        "last": last.to_string(),
        "content": hash.to_string(),
    });
    if let (Some(by), Some(fields)) = (by, said.as_object_mut()) {
        fields.insert("by".to_owned(), by.clone().into());
    }
    Ok(Raw::from_value(&said)?)
}

/// The content a compactor's summary is of, and the compactor's configuration.
pub(crate) fn parse_provenance(compaction: &Compaction) -> Option<(String, String)> {
    let mut fields: Fields<'_> = compaction.extra.get(COVERS)?.fields()?;
    let content = fields.take_string(&["content"]).ok()??;
    let by = fields.take_string(&["by"]).ok()??;
    Some((content, by))
}
