//! Making the conversation, or meeting it: what of the session is there already?

use std::sync::Arc;

use contexture_ir::{BranchName, Raw};
use contexture_store::{
    BlobId, ConversationUpdate, Error as StoreError, Metadata, MetadataChange, NewConversation,
};

use super::job::Import;
use crate::error::EngineError;
use crate::known::Known;
use crate::origin::{KEY, Origin, key_of};

/// Session metadata up to this many bytes stands in the conversation's own; more is a blob.
const INLINE: usize = 8 << 10;

impl Import<'_> {
    /// Makes the conversation, or finds it made. Gives the metadata's bytes if they are to be stored
    /// as a blob.
    pub(super) async fn create(&mut self) -> Result<Option<Arc<[u8]>>, EngineError> {
        let metadata = &self.session.metadata;
        let bytes: Arc<[u8]> = metadata.get().as_bytes().into();
        let inline = bytes.len() <= INLINE;
        let origin = Origin {
            format: self.session.format.as_str().to_owned(),
            source: self.session.source_id.clone(),
            nodes: self.session.tree.len(),
            metadata: inline.then(|| metadata.clone()),
            blob: (!inline).then(|| BlobId::of(self.owner, &bytes).to_string()),
        };
        let mut metadata: Metadata = self.session.about.metadata.clone();
        metadata.insert(KEY.to_owned(), Raw::from_value(&origin)?);
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
                self.name_first().await?;
            }
            Err(StoreError::AlreadyExists { .. }) => {
                self.existed = true;
                if !self.meet(origin).await? {
                    return Ok(None);
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok((!inline).then_some(bytes))
    }

    /// The conversation exists: what of the session is there? Says whether the session's metadata is
    /// the conversation's.
    pub(super) async fn meet(&mut self, mut origin: Origin) -> Result<bool, EngineError> {
        let store = self.engine.store();
        let record = store.conversation(self.owner, &self.id).await?;
        if self.resource.is_some() && self.resource != record.resource.as_deref() {
            return Err(EngineError::OtherResource {
                conversation: self.id.clone(),
                resource: record.resource.clone(),
            });
        }
        let refs = store.refs(self.owner, &self.id).await?;
        let mut branches: Vec<_> = refs.branches.iter().collect();
        branches.sort_by_key(|branch| !branch.active);
        let branches = branches.into_iter();
        self.branches = branches
            .map(|branch| (branch.name.clone(), branch.head))
            .collect();
        let earlier: Option<Origin> = record.metadata.get(KEY).and_then(|raw| raw.to().ok());
        let same = |earlier: &Origin| earlier.source == origin.source;
        if earlier.as_ref().is_some_and(same) {
            self.name_first().await?;
        } else {
            if !self.named {
                return Err(self.exists());
            }
            let known = Known::load(store.as_ref(), self.owner, &self.id, &refs).await?;
            self.lay(&known, earlier.is_some())?;
            let Some(earlier) = earlier.as_ref().filter(|earlier| self.continues(earlier)) else {
                return Ok(false);
            };
            // It is what was imported, grown: its ids and metadata go on.
            self.key = key_of(&earlier.source);
            origin.source.clone_from(&earlier.source);
        }
        if earlier.is_some_and(|earlier| earlier.nodes < origin.nodes) {
            self.refresh(&origin).await?;
        }
        Ok(true)
    }

    /// Finds the session's paths in a conversation that came from elsewhere.
    pub(super) fn lay(&mut self, known: &Known, imported: bool) -> Result<(), EngineError> {
        for head in &self.session.heads {
            let path = self.session.path(head.node);
            let items = path
                .iter()
                .filter_map(|index| self.session.tree.get(*index));
            let laid = known.lay(items.map(|node| &node.item));
            self.nodes
                .extend(path.into_iter().zip(laid.nodes.iter().copied()));
            self.laid.push(laid);
        }
        let shared = self.laid.first().map_or(0, |laid| laid.shared);
        if shared == 0 && (known.speaks() || !imported) {
            return Err(self.exists());
        }
        Ok(())
    }

    /// Whether the session begins with every node of an earlier import, each in its place.
    pub(super) fn continues(&self, earlier: &Origin) -> bool {
        let key = key_of(&earlier.source);
        let mut nodes = self.nodes.iter();
        earlier.format == self.session.format.as_str()
            && nodes.len() >= earlier.nodes
            && nodes.all(|(index, node)| *node == Some(self.derived(&key, *index)))
    }

    /// The metadata of a session that grew.
    pub(super) async fn refresh(&self, origin: &Origin) -> Result<(), EngineError> {
        let store = self.engine.store();
        if origin.blob.is_some() {
            let bytes = self.session.metadata.get().as_bytes().into();
            store.put_blob(self.owner, &self.id, bytes).await?;
        }
        let entry = (KEY.to_owned(), Some(Raw::from_value(origin)?));
        let update = ConversationUpdate {
            metadata: MetadataChange::Merge([entry].into()),
            ..ConversationUpdate::at(self.engine.now_ms())
        };
        store
            .update_conversation(self.owner, &self.id, update)
            .await?;
        Ok(())
    }
}
