//! Creating the conversation of an import, or finding what of the session it holds already.

use std::sync::Arc;

use contexture_ir::{BranchName, Raw};
use contexture_store::{
    BlobId, ConversationUpdate, Error as StoreError, Metadata, MetadataChange, NewConversation,
};

use super::dedup::StoredTree;
use super::job::ImportJob;
use crate::error::EngineError;
use crate::state::{IMPORT_KEY, ImportOrigin, node_key_base};

/// Session metadata up to this many bytes stands in the conversation's own; more is a blob.
const INLINE: usize = 8 << 10;

impl ImportJob<'_> {
    /// Makes the conversation, or finds it made. Gives the metadata's bytes if they are to be stored
    /// as a blob.
    pub(super) async fn open_or_create(&mut self) -> Result<Option<Arc<[u8]>>, EngineError> {
        let metadata = &self.session.metadata;
        let bytes: Arc<[u8]> = metadata.get().as_bytes().into();
        let inline = bytes.len() <= INLINE;
        let origin = ImportOrigin {
            format: self.session.format.as_str().to_owned(),
            source: self.session.source_id.clone(),
            nodes: self.session.tree.len(),
            metadata: inline.then(|| metadata.clone()),
            blob: (!inline).then(|| BlobId::of(self.owner, &bytes).to_string()),
        };
        let mut metadata: Metadata = self.session.info.metadata.clone();
        metadata.insert(IMPORT_KEY.to_owned(), Raw::from_value(&origin)?);
        let new = NewConversation {
            title: self.session.title.clone(),
            resource: self.resource.map(str::to_owned),
            metadata,
            ..NewConversation::new(self.id.clone(), self.created_ms)
        };
        let store = self.engine.store();
        match store.create_conversation(self.owner, new).await {
            Ok(_) => {
                self.branches.push((BranchName::main(), None));
                self.name_first_branch().await?;
            }
            Err(StoreError::AlreadyExists { .. }) => {
                self.existed = true;
                if !self.match_existing(origin).await? {
                    return Ok(None);
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok((!inline).then_some(bytes))
    }

    /// The conversation exists: what of the session is there? Says whether the session's metadata is
    /// the conversation's.
    pub(super) async fn match_existing(
        &mut self,
        mut origin: ImportOrigin,
    ) -> Result<bool, EngineError> {
        let store = self.engine.store();
        let record = store.load_conversation(self.owner, &self.id).await?;
        // A resource decides who shares state of layers, so a conversation never changes it.
        if self.resource.is_some() && self.resource != record.resource.as_deref() {
            return Err(EngineError::OtherResource {
                conversation: self.id.clone(),
                resource: record.resource.clone(),
            });
        }
        let refs = store.list_refs(self.owner, &self.id).await?;
        let mut branches: Vec<_> = refs.branches.iter().collect();
        branches.sort_by_key(|branch| !branch.active);
        let branches = branches.into_iter();
        self.branches = branches
            .map(|branch| (branch.name.clone(), branch.head))
            .collect();
        let earlier: Option<ImportOrigin> = record
            .metadata
            .get(IMPORT_KEY)
            .and_then(|raw| raw.parse_as().ok());
        let same = |earlier: &ImportOrigin| earlier.source == origin.source;
        if earlier.as_ref().is_some_and(same) {
            self.name_first_branch().await?;
        } else {
            // The same id by chance: joining two unrelated conversations would be worse than an error.
            if !self.named {
                return Err(self.conversation_exists_error());
            }
            let known = StoredTree::load(store.as_ref(), self.owner, &self.id, &refs).await?;
            self.align_with_stored(&known, earlier.is_some())?;
            let Some(earlier) = earlier
                .as_ref()
                .filter(|earlier| self.is_continuation_of(earlier))
            else {
                return Ok(false);
            };
            // It is what was imported, grown: its ids and metadata go on.
            self.key = node_key_base(&earlier.source);
            origin.source.clone_from(&earlier.source);
        }
        // A session that shrank leaves the metadata of the longer one.
        if earlier.is_some_and(|earlier| earlier.nodes < origin.nodes) {
            self.update_metadata(&origin).await?;
        }
        Ok(true)
    }

    /// Finds the session's paths in a conversation that came from elsewhere.
    pub(super) fn align_with_stored(
        &mut self,
        known: &StoredTree,
        imported: bool,
    ) -> Result<(), EngineError> {
        for head in &self.session.heads {
            let path = self.session.path_to(head.node);
            let items = path
                .iter()
                .filter_map(|index| self.session.tree.get(*index));
            let laid = known.align_path(items.map(|node| &node.item));
            self.nodes
                .extend(path.into_iter().zip(laid.nodes.iter().copied()));
            self.alignments.push(laid);
        }
        let shared = self.alignments.first().map_or(0, |laid| laid.shared);
        if shared == 0 && (known.has_text() || !imported) {
            return Err(self.conversation_exists_error());
        }
        Ok(())
    }

    /// Whether the session begins with every node of an earlier import, each in its place.
    pub(super) fn is_continuation_of(&self, earlier: &ImportOrigin) -> bool {
        let key = node_key_base(&earlier.source);
        let mut nodes = self.nodes.iter();
        earlier.format == self.session.format.as_str()
            && nodes.len() >= earlier.nodes
            && nodes.all(|(index, node)| *node == Some(self.derived_node_id(&key, *index)))
    }

    /// The metadata of a session that grew.
    pub(super) async fn update_metadata(&self, origin: &ImportOrigin) -> Result<(), EngineError> {
        let store = self.engine.store();
        if origin.blob.is_some() {
            let bytes = self.session.metadata.get().as_bytes().into();
            store.put_blob(self.owner, &self.id, bytes).await?;
        }
        let entry = (IMPORT_KEY.to_owned(), Some(Raw::from_value(origin)?));
        let update = ConversationUpdate {
            metadata: MetadataChange::Merge([entry].into()),
            ..ConversationUpdate::new(self.engine.now_ms())
        };
        store
            .update_conversation(self.owner, &self.id, update)
            .await?;
        Ok(())
    }
}
