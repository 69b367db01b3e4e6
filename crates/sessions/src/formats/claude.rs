//! Claude Code's log.
//!
//! One record a line. Records of type `user` and `assistant` hold an Anthropic message; the rest
//! (summaries, snapshots, system notes) are kept but become no items. `parentUuid` links records to
//! a tree, whose leaves are branches, each named after the first record that is its own; where a log links nothing at all, its records follow each
//! other. After a compaction `logicalParentUuid` takes the link up again. Records with
//! `isSidechain`, a sub-agent's, form trees of their own. What the user is not shown (`isMeta`) is
//! for models only.

use std::collections::BTreeMap;

use contexture_ir::{Audience, Fields, Item, Raw, quote_json};
use contexture_text::shorten_words;
use contexture_wire::{Dialect, DocumentKind, Format, lift, lower};
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::json::{excerpt, text_of, with_member};
use crate::kept_records::Records;
use crate::lines::{Expected, each_line, join_lines, wrong_record};
use crate::session::{
    ReadOptions, Session, SessionHead, SessionInfo, SessionNode, TITLE_CHARS, audience_of,
    leaf_nodes, origin_of, title_of,
};

const EXPECTED: Expected = Expected {
    what: "a Claude Code record",
};

/// How much of a record's uuid names its branch.
const MARK: usize = 8;

pub(crate) fn read_session(text: &str, options: &ReadOptions<'_>) -> Result<Session, SessionError> {
    let mut reader = ClaudeReader {
        linked: has_parent_links(text),
        ..ClaudeReader::default()
    };
    let mut records = Records::default();
    let skipped = each_line(text, &EXPECTED, options, &mut records, |raw, records| {
        reader.read_record(raw, records)
    })?;
    let ClaudeReader {
        tree,
        sources,
        session_id,
        title,
        last,
        ..
    } = reader;
    let name = session_id.unwrap_or_else(|| options.source_name.to_owned());
    Ok(Session {
        format: SessionFormat::ClaudeCode,
        source_id: format!("claude-code:{name}"),
        title: title.or_else(|| title_of(&tree)),
        instructions: Vec::new(),
        heads: session_heads(&tree, &sources, last),
        tree,
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
    fn read_record(&mut self, raw: &RawValue, records: &mut Records) -> Result<(), String> {
        let fields = Fields::parse(raw.get()).map_err(|_| wrong_record(raw.get()))?;
        let kind = text_of(&fields, "type").ok_or_else(|| wrong_record(raw.get()))?;
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
            self.title = Some(shorten_words(&title, TITLE_CHARS));
        }
        let (items, form) = match kind.as_str() {
            "user" | "assistant" => split_record(raw, &fields)?,
            _ => (Vec::new(), None),
        };
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
            Some(above) => self.by_uuid.get(&above).copied().flatten(),
            None if self.linked || side => None,
            None => self.last,
        };
        let created_at = text_of(fields, "timestamp")
            .and_then(|text| text.parse::<jiff::Timestamp>().ok())
            .map(jiff::Timestamp::as_millisecond);
        let message_id = match kind {
            "assistant" => fields
                .get(&["message"])
                .and_then(|raw| text_of(&Fields::parse(raw.get()).ok()?, "id"))
                .or_else(|| uuid.clone()),
            _ => uuid.clone(),
        };
        for item in items {
            let index = self.tree.len();
            let audience = if flag("isMeta") || flag("isCompactSummary") {
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
            if !side {
                self.last = parent;
            }
        }
        if let Some(uuid) = uuid {
            self.by_uuid.insert(uuid, parent);
        }
    }
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
    let array = format!(r#"[{{"role":{},"content":{}}}]"#, role.get(), content.get());
    let lifted = lift(Format::Anthropic, &array).map_err(|error| error.to_string())?;
    let leading = lifted.transcript.instructions.into_iter().map(Item::from);
    let items: Vec<Item> = leading.chain(lifted.transcript.items).collect();
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
        let source = sources.get(own(node));
        let side = source.is_some_and(|source| source.side);
        let uuid = source.and_then(|source| source.uuid.as_deref());
        let mut name = if side { "sidechain" } else { "branch" }.to_owned();
        let mark = uuid.into_iter().flat_map(str::chars);
        let mark: String = mark
            .filter(char::is_ascii_alphanumeric)
            .take(MARK)
            .collect();
        if !mark.is_empty() {
            name = format!("{name}-{mark}");
        }
        let same = names.entry(name.clone()).or_default();
        *same += 1;
        if *same > 1 {
            name = format!("{name}-{same}");
        }
        heads.push(SessionHead { name, node });
    }
    heads
}

pub(crate) fn write_session(session: &Session) -> Result<String, SessionError> {
    let records = Records::from_metadata(&session.metadata)?;
    let (filled, added) = records.fill_records(session, fill_template);
    let mut out = join_lines(filled);
    let mut above = None;
    for (index, node) in added.iter().enumerate() {
        let json = anthropic_messages(&[&node.item]);
        let list: Vec<&RawValue> = serde_json::from_str(&json).unwrap_or_default();
        for message in list {
            let uuid = node
                .message_id
                .clone()
                .unwrap_or_else(|| format!("added-{index}"));
            let kind = if message.get().contains(r#""role":"assistant""#) {
                "assistant"
            } else {
                "user"
            };
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
