//! A session: items in a tree, and what is not an item.

use std::collections::BTreeMap;

use contexture_ir::{Audience, ContentHash, Item, Message, Origin, Raw, Role, Transcript};
use contexture_text::one_line_title;
use contexture_wire::{Format, lift};

use crate::format::SessionFormat;

/// Options for reading a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions<'a> {
    /// Whether records that cannot be read are set aside, in [`Session::skipped`], instead of ending
    /// the reading with an error; default: they end it.
    pub keep_going: bool,
    /// The file's name: part of the id of sessions that have none of their own, and their title
    /// where nothing better is there.
    pub source_name: &'a str,
}

/// One session of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Format that the session was read from.
    pub format: SessionFormat,
    /// A stable id: the log's own where it has one, else made of the file's name or the text's hash.
    pub source_id: String,
    /// Title of the session: that of its log, else the beginning of the first text of a user.
    pub title: Option<String>,
    /// System and developer messages at the beginning; they are not nodes.
    pub instructions: Vec<Message>,
    /// Items of the session; the parent of a node comes before it.
    pub tree: Vec<SessionNode>,
    /// Ends of branches, that of the branch last worked on first. Empty if there is no node.
    pub heads: Vec<SessionHead>,
    /// Content of the log that is not an item, verbatim: needed to write the session again.
    pub metadata: Raw,
    /// Properties of the conversation, as the log gives them; most logs give none.
    pub info: SessionInfo,
    /// Records that were not understood and, with [`ReadOptions::keep_going`], those that could not be read. In a file of several sessions: those before
    /// this one, and for the last session also those after it.
    pub skipped: Vec<Skipped>,
}

/// An item at its position in the tree of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionNode {
    /// Index of the node before it; `None` for the first of a path.
    pub parent: Option<usize>,
    /// Item that the node holds.
    pub item: Item,
    /// Id of the message that the item belongs to, unique on its path; `None` if the log has none.
    pub message_id: Option<String>,
    /// Time of creation in milliseconds since 1970; `None` if the log has none.
    pub created_at: Option<i64>,
    /// Producer of the item.
    pub origin: Origin,
    /// Audience that may see the item.
    pub audience: Audience,
    /// Index of the node among those that were read; `None` for a node added since. Whoever builds a session to be
    /// written sets it for the nodes that came from the import.
    pub imported: Option<usize>,
}

/// The end of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHead {
    /// Name of the branch: `main`, `branch-6f1c02ab`, `sidechain-77d0e1f4`, `rollback-1`. It stays when the log grows,
    /// unless another branch becomes `main`.
    pub name: String,
    /// Index of the last node of the branch.
    pub node: usize,
}

/// Properties of a conversation, from a log that stores conversations as Contexture does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionInfo {
    /// Id of the conversation in the program that wrote the log.
    pub conversation: Option<String>,
    /// Owner of the conversation, as that program names it.
    pub owner: Option<String>,
    /// Time of creation in milliseconds since 1970; `None` if the log has none.
    pub created_at: Option<i64>,
    /// Metadata that the program attached, by key.
    pub metadata: BTreeMap<String, Raw>,
    /// All branches, including empty ones and those that end in the middle of another's path.
    pub branches: Vec<SessionName>,
    /// All checkpoints of the conversation.
    pub checkpoints: Vec<SessionName>,
    /// Hashes from which the ids of the nodes derive, one for each node, for logs that may change earlier content: a
    /// hash is equal as long as its node and all before it are. Empty if the index of a node is enough.
    pub node_keys: Vec<ContentHash>,
}

/// A name that points to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName {
    /// Name of the branch or checkpoint.
    pub name: String,
    /// Index of the node that it points to; `None`: before all nodes.
    pub node: Option<usize>,
    /// Time at which it was set, in milliseconds since 1970; `None` if the log has none.
    pub at: Option<i64>,
}

/// A record that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Number of its line, or of its element in an array, counted from 1.
    pub number: usize,
    /// Description of the fault.
    pub what: String,
}

impl Session {
    /// Returns the indices of the nodes from the first of a path to `node`.
    #[must_use]
    pub fn path_to(&self, node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = Some(node);
        while let Some(index) = at
            // Bounded by the number of nodes: a tree built by hand may hold a circle.
            && let Some(node) = self.tree.get(index)
            && path.len() <= self.tree.len()
        {
            path.push(index);
            at = node.parent;
        }
        path.reverse();
        path
    }

    /// Returns the nodes of the path to the first head, whoever may see them: a log that is written must be complete.
    pub(crate) fn main_path(&self) -> impl Iterator<Item = &SessionNode> {
        let path = self.heads.first().map(|head| self.path_to(head.node));
        let path = path.into_iter().flatten();
        path.filter_map(|index| self.tree.get(index))
    }

    /// Returns for each node that was read from a log of records the index of its record, blank lines not counted. Empty
    /// for other sessions.
    #[must_use]
    pub fn node_records(&self) -> Vec<usize> {
        let fields = self.metadata.fields();
        let nodes = fields.as_ref().and_then(|fields| fields.get(&["nodes"]));
        nodes
            .and_then(|nodes| serde_json::from_str(nodes.get()).ok())
            .unwrap_or_default()
    }

    /// Returns what a request asks beside its messages: model, tools, options and the members of its own format. `None`
    /// for a session that was not read from a request.
    #[must_use]
    pub fn request_settings(&self) -> Option<Transcript> {
        if !matches!(self.format, SessionFormat::Wire(_)) {
            return None;
        }
        let fields = self.metadata.fields()?;
        let is_request = fields.get(&["kind"])?.get() == r#""request""#;
        let frame = fields.get(&["frame"]).filter(|_| is_request)?;
        Some(lift(Format::Items, frame.get()).ok()?.transcript)
    }

    /// Returns the path to a head as a transcript, without items that models may not see.
    #[must_use]
    pub fn transcript(&self, head: &SessionHead) -> Transcript {
        let seen = |index: usize| self.tree.get(index).filter(|node| node.audience.model);
        let nodes = self.path_to(head.node).into_iter().filter_map(seen);
        Transcript {
            instructions: self.instructions.clone(),
            items: nodes.map(|node| node.item.clone()).collect(),
            ..Transcript::default()
        }
    }
}

/// Returns the indices of the nodes that no node follows, in order.
pub(crate) fn leaf_nodes(tree: &[SessionNode]) -> Vec<usize> {
    let mut leaf = vec![true; tree.len()];
    // A node that some other names as its parent is no leaf; one pass marks them all.
    for parent in tree.iter().filter_map(|node| node.parent) {
        if let Some(flag) = leaf.get_mut(parent) {
            *flag = false;
        }
    }
    let ends = leaf.into_iter().enumerate().filter(|(_, leaf)| *leaf);
    ends.map(|(node, _)| node).collect()
}

/// Returns the producer of an item, as far as the item tells.
pub(crate) fn origin_of(item: &Item) -> Origin {
    match item {
        Item::Message(message) => match message.role {
            Role::User => Origin::User,
            Role::Assistant => Origin::Model,
            Role::System | Role::Developer => Origin::System,
        },
        Item::FunctionCallOutput(_) => Origin::Tool,
        Item::FunctionCall(_) | Item::Reasoning(_) => Origin::Model,
        Item::Compaction(_) => Origin::System,
        // Bookkeeping of ours that was exported into another log and comes back with it.
        Item::Extension(extension) if extension.kind.starts_with("ctx:") => Origin::Import,
        Item::Extension(_) => Origin::Model,
    }
}

/// Returns the audience of an item: nobody for Contexture's own bookkeeping, else everybody.
pub(crate) fn audience_of(item: &Item) -> Audience {
    match item {
        Item::Extension(extension) if extension.kind.starts_with("ctx:") => Audience::NONE,
        _ => Audience::ALL,
    }
}

/// Returns the head of a tree without forks: its last node, as `main`.
pub(crate) fn main_head(tree: &[SessionNode]) -> Vec<SessionHead> {
    let last = tree.len().checked_sub(1);
    let head = last.map(|node| SessionHead {
        name: "main".to_owned(),
        node,
    });
    head.into_iter().collect()
}

/// The longest title of a session or a branch, in characters.
pub(crate) const TITLE_CHARS: usize = 80;

/// Returns the beginning of the first text of a user, on one line.
pub(crate) fn title_of(tree: &[SessionNode]) -> Option<String> {
    let said = tree
        .iter()
        .filter(|node| node.audience.user)
        .map(|node| &node.item);
    let mut texts = said
        .filter(|item| item.role() == Some(Role::User))
        .map(Item::text)
        .filter(|text| !text.trim().is_empty());
    texts.next().map(|text| one_line_title(&text, TITLE_CHARS))
}
