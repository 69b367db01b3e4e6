//! A conversation as a transcript, and as a session in the format of another program.

use std::collections::BTreeMap;

use contexture_ir::{Item, NodeId, Raw, Transcript};
use contexture_sessions::{
    Session, SessionFormat, SessionHead, SessionInfo, SessionNode, write_session,
};
use contexture_store::{BlobId, PathEnd, ReadRequest};

use crate::append::is_state_node;
use crate::error::EngineError;
use crate::handle::{Conversation, instructions_at_position, load_info, load_path};
use crate::path::StoredPath;
use crate::refs::list_refs;
use crate::state::{IMPORT_KEY, ImportOrigin, node_key_base};

/// Loads this branch as a transcript: the leading instructions and the items that models see.
pub(crate) async fn load_transcript(chat: &Conversation) -> Result<Transcript, EngineError> {
    let path = load_path(chat, ReadRequest::whole_path(chat.current_position())).await?;
    let at = path
        .head
        .map_or_else(|| chat.current_position(), PathEnd::Node);
    let instructions = instructions_at_position(chat, at).await?;
    let seen = path
        .nodes
        .iter()
        .zip(&path.items)
        .filter(|(node, _)| node.audience.model);
    Ok(Transcript {
        instructions: instructions.messages,
        items: seen.map(|(_, one)| Item::clone(&one.item)).collect(),
        ..Transcript::default()
    })
}

/// Exports the whole conversation in a session format. The format it was imported from gives the same JSON
/// values, followed by what was stored since; a wire format gives this branch as messages.
pub(crate) async fn export_text(
    chat: &Conversation,
    format: SessionFormat,
) -> Result<String, EngineError> {
    Ok(write_session(format, &export_session(chat, format).await?)?)
}

/// Exports the whole conversation as a session that can be written as `format`.
pub(crate) async fn export_session(
    chat: &Conversation,
    format: SessionFormat,
) -> Result<Session, EngineError> {
    let record = load_info(chat).await?;
    let origin: Option<ImportOrigin> = record
        .metadata
        .get(IMPORT_KEY)
        .and_then(|raw| raw.parse_as().ok());
    // A log format needs what the import stored beside the items; a wire format is made from items alone.
    let origin = match (origin, format) {
        (Some(origin), _) => origin,
        (None, SessionFormat::Wire(_)) => ImportOrigin::not_imported(chat.id().as_str()),
        (None, _) => {
            return Err(EngineError::NotImported {
                conversation: chat.id().clone(),
            });
        }
    };
    let metadata = load_session_metadata(chat, &origin).await?;
    let (tree, heads) = load_session_tree(chat, &origin).await?;
    let instructions = instructions_at_position(chat, chat.current_position())
        .await?
        .messages;
    Ok(Session {
        format: origin.format.parse()?,
        source_id: origin.source,
        title: record.title,
        instructions,
        tree,
        heads,
        metadata,
        info: SessionInfo::default(),
        skipped: Vec::new(),
    })
}

async fn load_session_metadata(
    chat: &Conversation,
    origin: &ImportOrigin,
) -> Result<Raw, EngineError> {
    let Some(blob) = &origin.blob else {
        return Ok(origin.metadata.clone().unwrap_or_else(Raw::null));
    };
    let blob: BlobId = blob.parse()?;
    let bytes = chat
        .store()
        .read_blob(chat.owner(), chat.id(), blob)
        .await?;
    let broken = |why: &str| EngineError::StoredState {
        key: IMPORT_KEY.to_owned(),
        reason: why.to_owned(),
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| broken("not UTF-8"))?;
    Raw::parse(text).map_err(|_| broken("not JSON"))
}

/// Every node that a branch reaches, parents first; this handle's branch is the first head.
async fn load_session_tree(
    chat: &Conversation,
    origin: &ImportOrigin,
) -> Result<(Vec<SessionNode>, Vec<SessionHead>), EngineError> {
    let key = node_key_base(&origin.source);
    let imported: BTreeMap<NodeId, usize> = (0..origin.nodes)
        .map(|index| (NodeId::of_operation(&key, index), index))
        .collect();
    // The branch of this handle first, as the writer of a linear format takes the first head.
    let mut refs = list_refs(chat).await?.branches;
    let here = chat.branch();
    refs.sort_by_key(|branch| branch.name != here);
    let (mut tree, mut heads) = (Vec::new(), Vec::new());
    // What stands where; for a node that is only ours, what stands before it.
    let mut places: BTreeMap<NodeId, Option<usize>> = BTreeMap::new();
    for branch in refs {
        let Some(head) = branch.head else { continue };
        let known = |id: &NodeId| places.contains_key(id);
        let new =
            StoredPath::load_unknown(chat.store(), chat.owner(), chat.id(), head, known).await?;
        for (node, item) in new {
            let parent = node.parent.and_then(|parent| places.get(&parent).copied()?);
            // State nodes are ours alone. Their children hang on to the nearest node that the format knows.
            if is_state_node(&item) {
                places.insert(node.id, parent);
                continue;
            }
            places.insert(node.id, Some(tree.len()));
            tree.push(SessionNode {
                parent,
                item: Item::clone(&item),
                message_id: node.message_id.as_ref().map(ToString::to_string),
                created_at: Some(node.created_ms),
                origin: node.origin,
                audience: node.audience,
                imported: imported.get(&node.id).copied(),
            });
        }
        if let Some(node) = places.get(&head).copied().flatten() {
            heads.push(SessionHead {
                name: branch.name.to_string(),
                node,
            });
        }
    }
    Ok((tree, heads))
}
