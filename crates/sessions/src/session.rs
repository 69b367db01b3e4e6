//! A session: items in a tree, and what is not an item.

use std::collections::BTreeMap;

use contexture_ir::{Audience, ContentHash, Item, Message, Origin, Raw, Role, Transcript};
use contexture_text::shorten_words;

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
    /// What it was read from.
    pub format: SessionFormat,
    /// A stable id: the log's own where it has one, else made of the file's name or the text's hash.
    pub source_id: String,
    /// What to call it: the log's own title, else the beginning of the first thing a person said.
    pub title: Option<String>,
    /// System and developer messages that lead; they are not nodes.
    pub instructions: Vec<Message>,
    /// The items; a node's parent stands before it.
    pub tree: Vec<SessionNode>,
    /// Where branches end; the one that was worked on last comes first. Empty if there is no node.
    pub heads: Vec<SessionHead>,
    /// What is not an item, verbatim: needed to write the session again.
    pub metadata: Raw,
    /// What the log says about the conversation itself; most say nothing.
    pub info: SessionInfo,
    /// Records that could not be read, with [`ReadOptions::keep_going`]. Of a file of several
    /// sessions: those before this one, and for the last one those behind it too.
    pub skipped: Vec<Skipped>,
}

/// An item in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionNode {
    /// The node before it; `None` for a beginning.
    pub parent: Option<usize>,
    /// The item.
    pub item: Item,
    /// The message it belongs to, unique on its path.
    pub message_id: Option<String>,
    /// When it was made, in milliseconds since 1970, if the log says so.
    pub created_at: Option<i64>,
    /// Who produced it.
    pub origin: Origin,
    /// Who may see it.
    pub audience: Audience,
    /// Its index among the nodes that were read; `None` for a node added since. Whoever builds a
    /// session to be written sets it for the nodes that came from the import.
    pub imported: Option<usize>,
}

/// Where a branch ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHead {
    /// What it is: `main`, `branch-6f1c02ab`, `sidechain-77d0e1f4`, `rollback-1`. It stays when the log
    /// grows, unless another branch becomes `main`.
    pub name: String,
    /// Its last node.
    pub node: usize,
}

/// A conversation's own properties, from a log that keeps conversations as we do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionInfo {
    /// The id its program knows it by.
    pub conversation: Option<String>,
    /// Whose it is.
    pub owner: Option<String>,
    /// When it was begun, in milliseconds since 1970.
    pub created_at: Option<i64>,
    /// What a program noted about it.
    pub metadata: BTreeMap<String, Raw>,
    /// All its branches, those that end in the middle of another's path and empty ones too.
    pub branches: Vec<SessionName>,
    /// Its checkpoints.
    pub checkpoints: Vec<SessionName>,
    /// What the ids of the nodes derive from, one a node, where the log may change what it said: equal
    /// as long as the node and all before it are. Empty: the index of a node is enough.
    pub node_keys: Vec<ContentHash>,
}

/// A name that points to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName {
    /// The name.
    pub name: String,
    /// Its node; `None`: before all nodes.
    pub node: Option<usize>,
    /// When it was given, in milliseconds since 1970, if the log says so.
    pub at: Option<i64>,
}

/// A record that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its line, or its place in an array, from 1.
    pub number: usize,
    /// What is wrong with it.
    pub what: String,
}

impl Session {
    /// The indices of the nodes from a beginning to `node`.
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

    /// The session up to a head as a transcript, without what models may not see.
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

/// The nodes that none follows, in order.
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

/// Who produced an item of a log, as far as the item tells.
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

/// Our own bookkeeping is for nobody.
pub(crate) fn audience_of(item: &Item) -> Audience {
    match item {
        Item::Extension(extension) if extension.kind.starts_with("ctx:") => Audience::NONE,
        _ => Audience::ALL,
    }
}

/// The head of a tree without forks: its last node, as `main`.
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

/// The beginning of the first thing a person said, on one line.
pub(crate) fn title_of(tree: &[SessionNode]) -> Option<String> {
    let said = tree
        .iter()
        .filter(|node| node.audience.user)
        .map(|node| &node.item);
    let mut texts = said
        .filter(|item| item.role() == Some(Role::User))
        .map(Item::text)
        .filter(|text| !text.trim().is_empty());
    texts.next().map(|text| shorten_words(&text, TITLE_CHARS))
}
