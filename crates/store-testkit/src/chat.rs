//! A conversation under test.

use std::sync::Arc;

use contexture_ir::{BranchName, ConversationId, Item, Message, NodeId, Owner, Role};
use contexture_store::{
    Activation, AppendPoint, AppendRequest, Appended, Branch, BranchLabel, ClaimOver, Conversation,
    Error, EventKind, KeyScope, ListEntries, NewBranch, NewConversation, NewItem, Node, NodeQuery,
    PathEnd, ReadRequest, RefChange, RefChanged, StateRequest, Store, load_graph,
};

/// A conversation under test: the store, its owner and id, and short helpers.
#[derive(Clone, Debug)]
pub struct Chat {
    /// Store under test.
    pub store: Arc<dyn Store>,
    /// Owner of the conversation.
    pub owner: Owner,
    /// Id of the conversation.
    pub id: ConversationId,
}

/// Time of every call unless the time matters, in milliseconds since the Unix epoch.
pub const NOW: i64 = 1_700_000_000_000;

/// Returns a node id derived from a word.
#[must_use]
pub fn node(word: &str) -> NodeId {
    NodeId::derive("testkit", &[word.as_bytes()])
}

/// Returns a user message with the text `word`, whose id is derived from the word.
#[must_use]
pub fn item(word: &str) -> NewItem {
    message_item(Role::User, word)
}

/// Returns a message with the text `word`, whose id is derived from the word.
#[must_use]
pub fn message_item(role: Role, word: &str) -> NewItem {
    let item = Item::Message(Message::text(role, word));
    NewItem::new(node(word), &item, item.to_json(), NOW)
}

/// Returns a user message with this JSON, whose id is derived from `word`.
#[must_use]
pub fn raw_item(word: &str, json: &str) -> NewItem {
    NewItem {
        json: json.into(),
        ..item(word)
    }
}

/// Returns a branch name; panics if it is none.
#[must_use]
pub fn branch(name: &str) -> BranchName {
    BranchName::new(name).unwrap()
}

/// Returns the end of the path of a branch.
#[must_use]
pub fn branch_end(name: &str) -> PathEnd {
    PathEnd::Branch(branch(name))
}

/// Returns a claim of a branch by nobody in particular, whoever claimed it before.
#[must_use]
pub fn claim_of(name: &str) -> RefChange {
    RefChange::Claim {
        branch: branch(name),
        over: ClaimOver::Anybody,
        holder: None,
    }
}

/// Returns a request for a new branch at the node of the word `base`.
#[must_use]
pub fn new_branch(base: Option<&str>, label: BranchLabel, activate: Activation) -> NewBranch {
    NewBranch {
        base: base.map(node),
        label,
        activate,
    }
}

impl Chat {
    /// Creates the conversation `chat` of the owner `ada`.
    pub async fn start(store: Arc<dyn Store>) -> Self {
        Self::start_as(store, "ada", "chat").await
    }

    /// Creates an empty conversation.
    pub async fn start_as(store: Arc<dyn Store>, owner: &str, id: &str) -> Self {
        let chat = Self {
            store,
            owner: Owner::new(owner).unwrap(),
            id: ConversationId::new(id).unwrap(),
        };
        let new = NewConversation::new(chat.id.clone(), NOW);
        chat.store
            .create_conversation(&chat.owner, new)
            .await
            .unwrap();
        chat
    }

    /// Appends what the request says to this conversation.
    pub async fn append_request(&self, request: AppendRequest) -> Result<Appended, Error> {
        self.store
            .append_items(&self.owner, &self.id, request)
            .await
    }

    /// Appends items at the tip of a branch.
    pub async fn append_to_tip(&self, name: &str, items: Vec<NewItem>) -> Result<Appended, Error> {
        self.append_request(AppendRequest::new(Self::at_tip(name), items, NOW))
            .await
    }

    /// Appends one user message per word at the tip of a branch, all at once.
    pub async fn append_messages(&self, name: &str, words: &[&str]) -> Appended {
        let items = words.iter().map(|word| item(word)).collect();
        self.append_to_tip(name, items).await.unwrap()
    }

    /// Returns the tip of a branch as the point to append at.
    #[must_use]
    pub fn at_tip(name: &str) -> AppendPoint {
        AppendPoint::Tip {
            branch: branch(name),
        }
    }

    /// Returns an expected head of a branch as the point to append at.
    #[must_use]
    pub fn at_head(name: &str, head: Option<&str>) -> AppendPoint {
        AppendPoint::Head {
            branch: branch(name),
            head: head.map(node),
        }
    }

    /// Reads all nodes of a path.
    pub async fn path_nodes(&self, at: PathEnd) -> Vec<Arc<Node>> {
        let page = self.read_path(ReadRequest::whole_path(at)).await.unwrap();
        // The whole path in one page, as it was asked for without a limit.
        assert_eq!(page.next, None);
        assert_eq!(page.depth, page.nodes.len() as u64);
        page.nodes
    }

    /// Reads a part of a path of this conversation.
    pub async fn read_path(
        &self,
        request: ReadRequest,
    ) -> Result<contexture_store::PathPage, Error> {
        self.store.read_path(&self.owner, &self.id, request).await
    }

    /// Checks that a branch's path consists of the nodes made from these words.
    pub async fn expect_path(&self, name: &str, words: &[&str]) {
        let path = self.path_nodes(branch_end(name)).await;
        let got: Vec<NodeId> = path.iter().map(|node| node.id).collect();
        let wanted: Vec<NodeId> = words.iter().map(|word| node(word)).collect();
        assert_eq!(got, wanted, "{name} should be {words:?}");
        // Depths and parents as well: the ids alone could be right on a path that is linked
        // wrongly.
        let mut parent = None;
        for (depth, node) in (1..).zip(&path) {
            assert_eq!((node.depth, node.parent), (depth, parent), "{name}");
            parent = Some(node.id);
        }
        let shown = self.branch_record(name).await;
        assert_eq!((shown.head, shown.nodes), (parent, words.len() as u64));
    }

    /// Reads the record of a branch; panics if there is none.
    pub async fn branch_record(&self, name: &str) -> Branch {
        let refs = self.store.list_refs(&self.owner, &self.id).await.unwrap();
        refs.find_branch(&branch(name)).unwrap().clone()
    }

    /// Returns the names of all branches, in order of creation.
    pub(crate) async fn branch_names(&self) -> Vec<String> {
        let refs = self.store.list_refs(&self.owner, &self.id).await.unwrap();
        let names = refs.branches.iter();
        names.map(|branch| branch.name.to_string()).collect()
    }

    /// Changes a branch or a checkpoint.
    pub async fn change_ref(&self, change: RefChange) -> Result<RefChanged, Error> {
        self.store
            .change_ref(&self.owner, &self.id, change, NOW)
            .await
    }

    /// Creates an automatically named branch at the node of `word` and returns its name.
    pub async fn rewind(&self, from: &str, word: &str, activate: Activation) -> String {
        let label = BranchLabel::After(branch(from));
        let new = new_branch(Some(word), label, activate);
        match self.change_ref(RefChange::CreateBranch(new)).await.unwrap() {
            RefChanged::Branch(branch) => branch.name.to_string(),
            other => panic!("a branch was asked for: {other:?}"),
        }
    }

    /// Reads the state at the end of a path, as keys, schema versions and values as text.
    pub async fn state_values(&self, at: PathEnd) -> Vec<(String, u32, String)> {
        let request = StateRequest::all_entries(at);
        let state = self.store.read_state(&self.owner, &self.id, request);
        let state = state.await.unwrap();
        let root = state.root.iter();
        root.map(|(key, entry)| {
            let value = state.loaded_value(key).unwrap();
            let text = String::from_utf8_lossy(value).into_owned();
            (key.to_string(), entry.version, text)
        })
        .collect()
    }

    /// Reads the kinds of all events, in order.
    pub async fn event_kinds(&self) -> Vec<EventKind> {
        let events = self.store.list_events(&self.owner, &self.id, 0, usize::MAX);
        let events = events.await.unwrap();
        // Numbered from 1 without a gap: readers go on after the last number that they know.
        for (seq, event) in (1..).zip(&events) {
            assert_eq!(event.seq, seq);
        }
        events.into_iter().map(|event| event.kind).collect()
    }

    /// Returns everything that readers see of the conversation but its events, as text: two
    /// conversations that look alike to every reader give the same text.
    pub async fn snapshot_text(&self) -> String {
        let (store, owner, id) = (&*self.store, &self.owner, &self.id);
        let mut text = String::new();
        let mut show = |shown: &dyn std::fmt::Debug| {
            text.push_str(&format!("{shown:?}\n"));
        };
        let record = store.load_conversation(owner, id).await.unwrap();
        show(&Conversation {
            events: 0,
            ..record
        });
        let tree = load_graph(store, owner, id).await.unwrap();
        show(&tree.refs);
        for one in &tree.nodes {
            let nodes = store
                .find_nodes(owner, id, NodeQuery::Id(one.id))
                .await
                .unwrap();
            show(&nodes);
            for response in nodes.iter().filter_map(|node| node.response) {
                show(&store.load_response(owner, id, response).await.ok());
            }
            let request = StateRequest::all_entries(PathEnd::Node(one.id));
            show(&store.read_state(owner, id, request).await.unwrap());
        }
        let list = ListEntries::in_scope(KeyScope::Conversation(id.clone()), "");
        show(&store.list_entries(owner, list).await.unwrap());
        text
    }
}
