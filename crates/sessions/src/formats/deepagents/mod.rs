//! Chats of `@deepagents/context`: whole UI messages as rows that name their parent, branches and
//! checkpoints that name a row.
//!
//! A chat comes as one object: `chat` is its row, `messages`, `branches` and `checkpoints` are lists of
//! rows, in the order they were written, every column under its name and as it is.
//!
//! ```json
//! {"chat": {"id": "c", "userId": "ada", "metadata": null, "createdAt": 1},
//!  "messages": [{"id": "m", "parentId": null, "type": "message", "data": "{…}", "createdAt": 1}],
//!  "branches": [{"name": "main", "headMessageId": "m", "isActive": 1}], "checkpoints": []}
//! ```
//!
//! Every row becomes nodes, also those that no name reaches any more: they get a branch `loose-…`.
//! Nodes' ids derive from what was said and all before it, since the package changes rows in their
//! place. Not here: reading a database.

mod rows;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{BranchName, CheckpointName, Fields, Raw};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::rows::{
    MessageRow, RowFaults, RowLocation, integer_column, read_rows, row_location, text_column,
};
use self::tree::{ChatTree, build_tree};
use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::json::excerpt;
use crate::session::{
    ReadOptions, Session, SessionHead, SessionInfo, SessionName, SessionNode, leaf_nodes, title_of,
};

#[derive(Deserialize)]
struct ChatDocument<'a> {
    #[serde(borrow)]
    chat: &'a RawValue,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(borrow)]
    branches: Vec<&'a RawValue>,
    #[serde(borrow)]
    checkpoints: Vec<&'a RawValue>,
}

pub(crate) fn read_session(
    document: &str,
    options: &ReadOptions<'_>,
) -> Result<Session, SessionError> {
    let wrong = || SessionError::WrongShape {
        format: "deepagents",
        expected: "an object with `chat` and the lists `messages`, `branches` and `checkpoints`",
    };
    let document: ChatDocument<'_> = serde_json::from_str(document).map_err(|_| wrong())?;
    let chat = Fields::parse(document.chat.get()).map_err(|_| wrong())?;
    let id = text_column(&chat, "id").ok_or(SessionError::WrongShape {
        format: "deepagents",
        expected: "a chat with an `id`",
    })?;
    let mut faults = RowFaults {
        chat: id.clone(),
        keep_going: options.keep_going,
        skipped: Vec::new(),
    };
    // Faults are collected in one place, since every table may have them.
    let rows = read_rows(&document.messages, &mut faults)?;
    let tree = build_tree(&rows, &mut faults)?;
    let names = read_refs(&document, &rows, &tree, &mut faults)?;
    // Before the names are moved out.
    let heads = names.session_heads(&tree.nodes);
    let ChatRefs {
        branches,
        checkpoints,
        ..
    } = names;
    let created_at = integer_column(&chat, "createdAt");
    Ok(Session {
        format: SessionFormat::DeepAgents,
        // Chats of two databases may have one id; that they were begun at one time is less likely.
        source_id: format!("deepagents:{id}:{}", created_at.unwrap_or_default()),
        title: text_column(&chat, "title").or_else(|| title_of(&tree.nodes)),
        instructions: tree.instructions,
        heads,
        metadata: session_metadata(document.chat, &rows),
        info: SessionInfo {
            conversation: Some(id),
            owner: text_column(&chat, "userId"),
            created_at,
            metadata: parse_chat_metadata(&chat, &mut faults)?,
            branches,
            checkpoints,
            node_keys: tree.keys,
        },
        tree: tree.nodes,
        skipped: faults.skipped,
    })
}

/// Reads branches and checkpoints, after the tree: they point to the node a row ends with.
fn read_refs<'a>(
    document: &ChatDocument<'_>,
    rows: &'a [MessageRow],
    tree: &ChatTree,
    faults: &mut RowFaults,
) -> Result<ChatRefs<'a>, SessionError> {
    let mut names = ChatRefs::new(rows, tree);
    for (index, row) in document.branches.iter().enumerate() {
        names.read_branch(row, row_location("branch", index, row, "name"), faults)?;
    }
    for (index, row) in document.checkpoints.iter().enumerate() {
        names.read_checkpoint(row, row_location("checkpoint", index, row, "name"), faults)?;
    }
    Ok(names)
}

/// The chat's row, and the messages that their items do not give back.
fn session_metadata(chat: &RawValue, rows: &[MessageRow]) -> Raw {
    let whole = rows
        // Only rows that their items do not give back; the rest would double the size of the metadata.
        .iter()
        .filter_map(|row| Some((&row.id, row.whole.as_ref()?)));
    let whole: BTreeMap<&String, &Raw> = whole.collect();
    let messages = Raw::from_value(&whole).unwrap_or_else(|_| Raw::null());
    let json = format!(r#"{{"chat":{},"messages":{}}}"#, chat.get(), messages.get());
    Raw::parse(json).unwrap_or_else(|_| Raw::null())
}

/// What a program noted about the chat: an object, as text or as JSON.
fn parse_chat_metadata(
    chat: &Fields<'_>,
    faults: &mut RowFaults,
) -> Result<BTreeMap<String, Raw>, SessionError> {
    // SQLite stores JSON as text, PostgreSQL as JSON.
    let inner = text_column(chat, "metadata");
    let raw = chat.get(&["metadata"]).map_or("null", RawValue::get);
    let raw = inner.as_deref().unwrap_or(raw);
    if raw == "null" {
        return Ok(BTreeMap::new());
    }
    match Fields::parse(raw) {
        Ok(fields) => {
            let fields = fields.iter();
            Ok(fields
                .map(|(name, value)| (name.to_owned(), Raw::from(value)))
                .collect())
        }
        Err(_) => {
            let place = RowLocation {
                table: "chat",
                number: 1,
                name: faults.chat.clone(),
            };
            // Metadata that is wrong is a fault of the chat and does not cost its messages.
            faults.record_fault(&place, "an object as metadata", &excerpt(raw))?;
            Ok(BTreeMap::new())
        }
    }
}

/// The branches and checkpoints of a chat.
struct ChatRefs<'a> {
    /// The node that each row ends with.
    ends: BTreeMap<&'a str, Option<usize>>,
    branches: Vec<SessionName>,
    /// The index of the active one.
    active: Option<usize>,
    checkpoints: Vec<SessionName>,
}

impl<'a> ChatRefs<'a> {
    fn new(rows: &'a [MessageRow], tree: &ChatTree) -> Self {
        let ids = rows.iter().map(|row| row.id.as_str());
        Self {
            ends: ids.zip(tree.ends.iter().copied()).collect(),
            branches: Vec::new(),
            active: None,
            checkpoints: Vec::new(),
        }
    }

    /// The node of a row that a name points to; `None` if there is no such row.
    fn resolve_node(
        &self,
        row: &str,
        place: &RowLocation,
        faults: &mut RowFaults,
    ) -> Result<Option<Option<usize>>, SessionError> {
        let found = self.ends.get(row).copied();
        if found.is_none() {
            // Quoted and cut: the id is a stranger's text.
            let found = format!("{row:.60?}, which is not there");
            faults.record_fault(place, "a message of this chat", &found)?;
        }
        Ok(found)
    }

    fn read_branch(
        &mut self,
        row: &RawValue,
        place: RowLocation,
        faults: &mut RowFaults,
    ) -> Result<(), SessionError> {
        let Ok(columns) = Fields::parse(row.get()) else {
            return faults.record_fault(&place, "a branch", &excerpt(row.get()));
        };
        // Reported, not refused: a branch is renamed on import, while its messages stay reachable.
        if let Err(error) = BranchName::new(&place.name) {
            faults.record_fault(&place, "a name that is kept as it is", &error.to_string())?;
        }
        let node = match text_column(&columns, "headMessageId") {
            // A branch without a head is empty and starts before all nodes.
            None => None,
            Some(head) => match self.resolve_node(&head, &place, faults)? {
                Some(node) => node,
                // A head that is not there was reported above; a branch to nowhere is left out.
                None => return Ok(()),
            },
        };
        let active = columns.get(&["isActive"]).map(RawValue::get);
        // The first active one, should a damaged database have two.
        if self.active.is_none() && matches!(active, Some("1" | "true")) {
            self.active = Some(self.branches.len());
        }
        self.branches.push(SessionName {
            name: place.name,
            node,
            at: integer_column(&columns, "createdAt"),
        });
        Ok(())
    }

    fn read_checkpoint(
        &mut self,
        row: &RawValue,
        place: RowLocation,
        faults: &mut RowFaults,
    ) -> Result<(), SessionError> {
        let Ok(columns) = Fields::parse(row.get()) else {
            return faults.record_fault(&place, "a checkpoint", &excerpt(row.get()));
        };
        // A checkpoint has no use but its name, so one that cannot be kept is left out.
        if let Err(error) = CheckpointName::new(&place.name) {
            return faults.record_fault(&place, "the name of a checkpoint", &error.to_string());
        }
        let message = text_column(&columns, "messageId").unwrap_or_default();
        if let Some(node) = self.resolve_node(&message, &place, faults)?.flatten() {
            self.checkpoints.push(SessionName {
                name: place.name,
                node: Some(node),
                at: integer_column(&columns, "createdAt"),
            });
        }
        Ok(())
    }

    /// Where paths end: the active branch first, then others that go on elsewhere, then what has no
    /// name.
    fn session_heads(&self, tree: &[SessionNode]) -> Vec<SessionHead> {
        let active = self.active.and_then(|active| self.branches.get(active));
        let others = self.branches.iter().enumerate();
        let others = others.filter(|(index, _)| Some(*index) != self.active);
        let named = active.into_iter().chain(others.map(|(_, branch)| branch));
        let (mut heads, mut reached) = (Vec::new(), BTreeSet::new());
        // Only branches that end somewhere new are heads; the others are names within another's path.
        for branch in named {
            let Some(node) = branch.node.filter(|node| !reached.contains(node)) else {
                continue;
            };
            heads.push(SessionHead {
                name: branch.name.clone(),
                node,
            });
            let mut at = Some(node);
            // Stops at the first node that another branch reached: its ancestors were reached with it.
            while let Some(node) = at.filter(|node| reached.insert(*node)) {
                at = tree.get(node).and_then(|node| node.parent);
            }
        }
        // What no name reaches any more is kept as well: it was said, and a person may look for it.
        for leaf in leaf_nodes(tree) {
            if !reached.contains(&leaf) {
                heads.push(loose_head(tree, leaf));
            }
        }
        heads
    }
}

/// The head of a path that no name reaches.
fn loose_head(tree: &[SessionNode], leaf: usize) -> SessionHead {
    let id = tree.get(leaf).and_then(|node| node.message_id.as_deref());
    let short: String = id.unwrap_or_default().chars().take(8).collect();
    SessionHead {
        name: format!("loose-{short}"),
        node: leaf,
    }
}
