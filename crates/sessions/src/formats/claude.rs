//! Claude Code's log format.
//!
//! One record a line. Records of type `user` and `assistant` hold an Anthropic message; the rest
//! (summaries, snapshots, system notes) are kept but become no items. `parentUuid` links records to
//! a tree, whose leaves are branches, each named after the first record that is its own; where a log links nothing at all, its records follow each
//! other. After a compaction `logicalParentUuid` takes the link up again. Records with
//! `isSidechain`, a sub-agent's, form trees of their own. What the user is not shown (`isMeta`) is
//! for models only.

use std::collections::BTreeMap;

use contexture_ir::{Audience, Fields, Item, Raw, quote_json};
use contexture_text::one_line_title;
use contexture_wire::{Dialect, DocumentKind, Format, lift, lower};
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::json::{excerpt, text_of, timestamp_of, with_member};
use crate::kept_records::Records;
use crate::lines::{Expected, NotUnderstood, each_line, join_lines, wrong_record};
use crate::session::{
    ReadOptions, Session, SessionHead, SessionInfo, SessionNode, TITLE_CHARS, audience_of,
    leaf_nodes, origin_of, title_of,
};

const EXPECTED: Expected = Expected {
    what: "a Claude Code record",
};

/// How much of a record's uuid names its branch.
// As many digits as Git shows: enough to tell branches of one log apart, and readable.
const MARK: usize = 8;

pub(crate) fn read_session(text: &str, options: &ReadOptions<'_>) -> Result<Session, SessionError> {
    let mut reader = ClaudeReader {
        // Looked up before reading, because the first records of a linked log have no parent either.
        linked: has_parent_links(text),
        ..ClaudeReader::default()
    };
    let mut records = Records::default();
    let skipped = each_line(text, &EXPECTED, options, &mut records, |raw, records| {
        reader.read_record(raw, records)
    })?;
    // A log without a session id is known by its file.
    let session_id = reader.session_id;
    let name = session_id.unwrap_or_else(|| options.source_name.to_owned());
    Ok(Session {
        format: SessionFormat::ClaudeCode,
        source_id: format!("claude-code:{name}"),
        title: reader.title.or_else(|| title_of(&reader.tree)),
        instructions: Vec::new(),
        heads: session_heads(&reader.tree, &reader.sources, reader.last),
        tree: reader.tree,
        metadata: records.to_metadata(),
        info: SessionInfo::default(),
        skipped,
    })
}

/// Whether any record names another one as its parent.
fn has_parent_links(text: &str) -> bool {
    let linked = |line: &str| {
        let fields = Fields::parse(line).ok();
        fields.is_some_and(|fields| text_of(&fields, "parentUuid").is_some())
    };
    text.lines()
        // A search for the text spares the parse for all lines but those that may hold it.
        .any(|line| line.contains("\"parentUuid\"") && linked(line))
}

/// The record a node is from.
struct RecordSource {
    uuid: Option<String>,
    /// Whether it is a sub-agent's.
    side: bool,
}

#[derive(Default)]
struct ClaudeReader {
    /// Whether the log links its records.
    linked: bool,
    tree: Vec<SessionNode>,
    /// Where each node is from.
    sources: Vec<RecordSource>,
    /// The last node at or above each record.
    by_uuid: BTreeMap<String, Option<usize>>,
    /// The last node of the main conversation.
    last: Option<usize>,
    session_id: Option<String>,
    title: Option<String>,
}

impl ClaudeReader {
    fn read_record(&mut self, raw: &RawValue, records: &mut Records) -> Result<(), NotUnderstood> {
        let fields = Fields::parse(raw.get()).map_err(|_| wrong_record(raw.get()))?;
        let kind = text_of(&fields, "type").ok_or_else(|| wrong_record(raw.get()))?;
        // The first record that has one: later ones may be of a resumed session that was copied in.
        if self.session_id.is_none() {
            self.session_id = text_of(&fields, "sessionId");
        }
        let title = match kind.as_str() {
            "summary" => text_of(&fields, "summary"),
            "custom-title" => text_of(&fields, "customTitle"),
            "ai-title" => text_of(&fields, "aiTitle"),
            _ => None,
        };
        if let Some(title) = title {
            // The last title wins: a person renames a session after the generated summary.
            self.title = Some(one_line_title(&title, TITLE_CHARS));
        }
        let split = match kind.as_str() {
            "user" | "assistant" => split_record(raw, &fields),
            // Bookkeeping of all versions; a newer one may have other records of what was said.
            _ if fields.get(&["message"]).is_some_and(has_role) => {
                Err(format!("a record of the unknown type `{kind}`"))
            }
            _ => Ok((Vec::new(), None)),
        };
        let (items, form) = match split {
            Ok(split) => split,
            Err(found) => {
                // What follows hangs below what was above it.
                self.link_items(&fields, &kind, Vec::new());
                return Err(NotUnderstood(found));
            }
        };
        // Added also without items, for the record must be written back.
        records.add_record(raw, form, &items, fill_template);
        self.link_items(&fields, &kind, items);
        Ok(())
    }

    /// Links a record's items to their ancestors.
    fn link_items(&mut self, fields: &Fields<'_>, kind: &str, items: Vec<Item>) {
        let flag = |name: &str| fields.get(&[name]).is_some_and(|raw| raw.get() == "true");
        let side = flag("isSidechain");
        let uuid = text_of(fields, "uuid");
        let above = text_of(fields, "parentUuid").or_else(|| text_of(fields, "logicalParentUuid"));
        let mut parent = match above {
            // A parent that is no known record, or had no items above it, leaves the node a beginning.
            Some(above) => self.by_uuid.get(&above).copied().flatten(),
            // In a linked log no link means a beginning; a sub-agent's tree never hangs below the main
            // conversation.
            None if self.linked || side => None,
            None => self.last,
        };
        let created_at = timestamp_of(fields);
        let message_id = message_id_of(fields, kind).or_else(|| uuid.clone());
        let hidden = flag("isMeta") || flag("isCompactSummary");
        for item in items {
            let index = self.tree.len();
            // Shown to the model only: the program put these in, and its own interface hides them.
            let audience = if hidden {
                Audience::MODEL
            } else {
                audience_of(&item)
            };
            self.tree.push(SessionNode {
                parent,
                origin: origin_of(&item),
                item,
                message_id: message_id.clone(),
                created_at,
                audience,
                imported: Some(index),
            });
            self.sources.push(RecordSource {
                uuid: uuid.clone(),
                side,
            });
            parent = Some(index);
            // A sub-agent runs beside the main conversation and does not move its end.
            if !side {
                self.last = parent;
            }
        }
        // Registered even without items, so that children of a record that became none hang below what was
        // above it.
        if let Some(uuid) = uuid {
            self.by_uuid.insert(uuid, parent);
        }
    }
}

/// The message's own id in a record of the assistant. One answer of the model is several records with one message id;
/// they fold into one message.
fn message_id_of(fields: &Fields<'_>, kind: &str) -> Option<String> {
    if kind != "assistant" {
        return None;
    }
    let message = Fields::parse(fields.get(&["message"])?.get()).ok()?;
    text_of(&message, "id")
}

/// Whether a value is a message of somebody.
fn has_role(message: &RawValue) -> bool {
    Fields::parse(message.get()).is_ok_and(|fields| fields.get(&["role"]).is_some())
}

/// A record's items, and the record without its content.
fn split_record(raw: &RawValue, fields: &Fields<'_>) -> Result<(Vec<Item>, Option<Raw>), String> {
    let Some(message) = fields.get(&["message"]) else {
        return Err(format!(
            "a record without `message`: {}",
            excerpt(raw.get())
        ));
    };
    let wrong = |what: &str| format!("{what} in `message`: {}", excerpt(message.get()));
    let members = Fields::parse(message.get()).map_err(|_| wrong("no object"))?;
    let role = members.get(&["role"]).ok_or_else(|| wrong("no `role`"))?;
    let content = members
        .get(&["content"])
        .ok_or_else(|| wrong("no `content`"))?;
    // One message as a list, which is the form that the format's reader takes.
    let array = format!(r#"[{{"role":{},"content":{}}}]"#, role.get(), content.get());
    let lifted = lift(Format::Anthropic, &array).map_err(|error| error.to_string())?;
    // A system message within the log is part of the history, not of the instructions before it.
    let leading = lifted.transcript.instructions.into_iter().map(Item::from);
    let items: Vec<Item> = leading.chain(lifted.transcript.items).collect();
    // `null` marks the place that filling puts the content back into.
    let form = with_member(message.get(), "content", "null")
        .and_then(|message| with_member(raw.get(), "message", &message))
        .and_then(|form| Raw::parse(form).ok());
    Ok((items, form))
}

fn fill_template(form: &Raw, items: &[&Item]) -> Option<String> {
    let message = form.fields()?.get(&["message"])?.get().to_owned();
    let content = anthropic_content(items)?;
    let message = with_member(&message, "content", content.get())?;
    with_member(form.get(), "message", &message)
}

/// Items as the content of one Anthropic message.
fn anthropic_content(items: &[&Item]) -> Option<Raw> {
    let json = anthropic_messages(items);
    let list: Vec<&RawValue> = serde_json::from_str(&json).ok()?;
    // Several messages would not go back into one record; the record is then kept whole.
    let [message] = list.as_slice() else {
        return None;
    };
    let fields = Fields::parse(message.get()).ok()?;
    fields.get(&["content"]).map(Raw::from)
}

fn anthropic_messages(items: &[&Item]) -> String {
    let transcript = contexture_ir::Transcript {
        items: items.iter().map(|item| (*item).clone()).collect(),
        ..contexture_ir::Transcript::default()
    };
    let dialect = Dialect {
        // Content goes back as it was read, so a system message in mid-history must be allowed.
        mid_system: true,
        ..Dialect::of(Format::Anthropic)
    };
    lower(&dialect, DocumentKind::Messages, &transcript).json
}

/// The main conversation's end first, then every other leaf.
fn session_heads(
    tree: &[SessionNode],
    sources: &[RecordSource],
    last: Option<usize>,
) -> Vec<SessionHead> {
    let mut covered = vec![false; tree.len()];
    // Walks up until it meets a path that an earlier branch covered: the node below is the first of this
    // branch's own.
    let mut own = |leaf: usize| {
        let (mut first, mut at) = (leaf, Some(leaf));
        while let Some(node) = at
            && let Some(covered) = covered.get_mut(node)
            && !std::mem::replace(covered, true)
        {
            first = node;
            at = tree.get(node).and_then(|node| node.parent);
        }
        first
    };
    let mut heads: Vec<SessionHead> = Vec::new();
    // Covered first, so that shared ancestors belong to the main branch.
    if let Some(node) = last {
        own(node);
        let name = "main".to_owned();
        heads.push(SessionHead { name, node });
    }
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for node in leaf_nodes(tree) {
        if Some(node) == last {
            continue;
        }
        let mut name = branch_name(sources.get(own(node)));
        // The same prefix in one log is unlikely but possible; the first keeps the plain name.
        let same = names.entry(name.clone()).or_default();
        *same += 1;
        if *same > 1 {
            name = format!("{name}-{same}");
        }
        heads.push(SessionHead { name, node });
    }
    heads
}

/// Names a branch after the first record that is its own, which stays when the log grows; a number would shift.
fn branch_name(source: Option<&RecordSource>) -> String {
    let side = source.is_some_and(|source| source.side);
    let kind = if side { "sidechain" } else { "branch" };
    let uuid = source.and_then(|source| source.uuid.as_deref());
    let mark: String = uuid
        .into_iter()
        .flat_map(str::chars)
        .filter(char::is_ascii_alphanumeric)
        .take(MARK)
        .collect();
    if mark.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind}-{mark}")
    }
}

pub(crate) fn write_session(session: &Session) -> Result<String, SessionError> {
    let records = Records::from_metadata(&session.metadata)?;
    // Records come back in their order, and nodes added since follow as records of their own.
    let (filled, added) = records.fill_records(session, fill_template);
    let mut out = join_lines(filled);
    // New records are linked to each other only: a link to an imported record would need a uuid that it may not
    // have.
    let mut above = None;
    for (index, node) in added.iter().enumerate() {
        let json = anthropic_messages(&[&node.item]);
        let list: Vec<&RawValue> = serde_json::from_str(&json).unwrap_or_default();
        for message in list {
            let uuid = node
                .message_id
                .clone()
                .unwrap_or_else(|| format!("added-{index}"));
            let kind = record_kind(message.get());
            let parent: Option<String> = above.replace(uuid.clone());
            out.push_str(&format!(
                r#"{{"type":"{kind}","uuid":{},"parentUuid":{},"message":{}}}"#,
                quote_json(&uuid),
                parent.map_or_else(|| "null".to_owned(), |parent| quote_json(&parent)),
                message.get(),
            ));
            out.push('\n');
        }
    }
    Ok(out)
}

/// The type of the record that holds a message.
fn record_kind(message: &str) -> &'static str {
    // The format's own writer put the role in; two words are all it can be here.
    if message.contains(r#""role":"assistant""#) {
        "assistant"
    } else {
        "user"
    }
}
