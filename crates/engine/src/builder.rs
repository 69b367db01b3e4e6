//! Naming a conversation before it is opened: owner, title, resource, metadata, branch.

use std::collections::BTreeMap;

use contexture_ir::{BranchName, ConversationId, Owner, Raw};
use contexture_store::{ConversationUpdate, Error as StoreError, MetadataChange, NewConversation};

use crate::error::EngineError;
use crate::handle::{Conversation, Engine};

/// A conversation's name and what it should have; see [`Engine::conversation`].
#[derive(Debug)]
pub struct ConversationBuilder {
    engine: Engine,
    id: String,
    owner: Option<String>,
    title: Option<String>,
    resource: Option<String>,
    metadata: BTreeMap<String, Raw>,
    branch: Option<String>,
}

impl ConversationBuilder {
    pub(crate) fn new(engine: Engine, id: &str) -> Self {
        Self {
            engine,
            id: id.to_owned(),
            owner: None,
            title: None,
            resource: None,
            metadata: BTreeMap::new(),
            branch: None,
        }
    }

    /// Whose it is; default `local`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let engine = Engine::in_memory();
    /// let chat = engine.conversation("support-42").owner("acme/ada").open().await?;
    /// // Another owner's conversation of the same id is another conversation.
    /// let other = engine.conversation("support-42").owner("acme/bob").open_existing().await;
    /// assert!(other.is_err());
    /// # assert_eq!(chat.owner().as_str(), "acme/ada");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Its title, if it is made.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let engine = Engine::in_memory();
    /// engine.conversation("support-42").title("Refunds").open().await?;
    /// // It is there already, so the title stays.
    /// let chat = engine.conversation("support-42").title("Gloves").open().await?;
    /// assert_eq!(chat.info().await?.title.as_deref(), Some("Refunds"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The subject, an end user say, if it is made.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let engine = Engine::in_memory();
    /// let chat = engine.conversation("support-42").resource("customer-7").open().await?;
    /// assert_eq!(chat.info().await?.resource.as_deref(), Some("customer-7"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Metadata, merged key by key over what is stored.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_ir::Raw;
    /// # use contexture_engine::Engine;
    /// # let engine = Engine::in_memory();
    ///
    /// engine.conversation("c").metadata("stage", Raw::string("draft")).open().await?;
    /// let chat = engine.conversation("c").metadata("team", Raw::string("refunds")).open().await?;
    /// assert_eq!(chat.info().await?.metadata.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: Raw) -> Self {
        self.metadata.insert(key.into(), value);
        self
    }

    /// The branch to work on; default: the active one.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let engine = Engine::in_memory();
    /// let chat = engine.conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// chat.create_branch("experiment").await?;
    /// let other = engine.conversation("c").branch("experiment").open().await?;
    /// assert_eq!(other.branch().as_str(), "experiment");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn branch(mut self, branch: impl Into<String>) -> Self {
        self.branch = Some(branch.into());
        self
    }

    /// Opens the conversation, making it if the owner has none of this id.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let engine = Engine::in_memory();
    /// // The first call creates the conversation, the second finds it.
    /// let chat = engine.conversation("support-42").open().await?;
    /// let again = engine.conversation("support-42").open().await?;
    /// assert_eq!(chat.info().await?, again.info().await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A name that breaks its rule, an unknown branch, or the store's.
    pub async fn open(self) -> Result<Conversation, EngineError> {
        let (owner, id) = self.parse_names()?;
        let new = NewConversation {
            title: self.title.clone(),
            resource: self.resource.clone(),
            metadata: self.metadata.clone(),
            ..NewConversation::new(id.clone(), self.engine.now_ms())
        };
        match self.engine.store().create_conversation(&owner, new).await {
            Ok(_) => {}
            // Title and resource are for a new conversation only; metadata is merged into an old one.
            Err(StoreError::AlreadyExists { .. }) => self.merge_metadata(&owner, &id).await?,
            Err(error) => return Err(error.into()),
        }
        self.open_handle(owner, id).await
    }

    /// Opens the conversation only if it exists.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// let engine = Engine::in_memory();
    /// let error = engine.conversation("typo").open_existing().await.unwrap_err();
    /// assert_eq!(error.kind(), "not_found");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's `NotFound` if the owner has none of this id, and as [`Self::open`].
    pub async fn open_existing(self) -> Result<Conversation, EngineError> {
        let (owner, id) = self.parse_names()?;
        self.engine.store().load_conversation(&owner, &id).await?;
        self.merge_metadata(&owner, &id).await?;
        self.open_handle(owner, id).await
    }

    fn parse_names(&self) -> Result<(Owner, ConversationId), EngineError> {
        let owner = match &self.owner {
            Some(owner) => Owner::new(owner)?,
            None => Owner::local(),
        };
        Ok((owner, ConversationId::new(&self.id)?))
    }

    async fn merge_metadata(&self, owner: &Owner, id: &ConversationId) -> Result<(), EngineError> {
        if self.metadata.is_empty() {
            return Ok(());
        }
        let merged = self
            .metadata
            .iter()
            .map(|(key, value)| (key.clone(), Some(value.clone())));
        let update = ConversationUpdate {
            metadata: MetadataChange::Merge(merged.collect()),
            ..ConversationUpdate::new(self.engine.now_ms())
        };
        self.engine
            .store()
            .update_conversation(owner, id, update)
            .await?;
        Ok(())
    }

    async fn open_handle(
        self,
        owner: Owner,
        id: ConversationId,
    ) -> Result<Conversation, EngineError> {
        // The active branch is read once: the handle stays on it if somebody switches later.
        let refs = self.engine.store().list_refs(&owner, &id).await?;
        let branch = match &self.branch {
            Some(name) => {
                let name = BranchName::new(name)?;
                let known = refs.find_branch(&name).is_some();
                if !known {
                    let what = contexture_store::EntityKind::Branch;
                    return Err(StoreError::not_found(what, name).into());
                }
                name
            }
            None => refs
                .active_branch()
                .map_or_else(BranchName::main, |branch| branch.name.clone()),
        };
        Ok(Conversation::new(self.engine, owner, id, branch))
    }
}
