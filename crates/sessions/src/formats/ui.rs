//! The format of AI SDK UI messages: every message keeps its id where ids are unique.

use std::collections::BTreeSet;

use contexture_ir::{ContentHash, Fields, Item, Message, Raw, UiMessage, UiRole, quote_json};
use contexture_wire::ui::{FoldAudience, FoldItem, FoldOptions, fold, lift_message, validate_json};
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::json::with_member;
use crate::kept_records::Records;
use crate::session::{
    Session, SessionInfo, SessionNode, audience_of, main_head, origin_of, title_of,
};

pub(crate) fn read_session(text: &str) -> Result<Session, SessionError> {
    let wrong = || SessionError::WrongShape {
        format: "ui",
        expected: "an array of UI messages or an object with `messages`",
    };
    // An array, or an object with more than the messages: a request body of the SDK's chat.
    let (list, rest) = if text.trim_start().starts_with('[') {
        (text, None)
    } else {
        let fields = Fields::parse(text).map_err(|_| wrong())?;
        let list = fields.get(&["messages"]).ok_or_else(wrong)?;
        let rest = with_member(text, "messages", "null").and_then(|rest| Raw::parse(rest).ok());
        (list.get(), rest)
    };
    let messages = validate_json(list)?;
    let raws: Vec<&RawValue> = serde_json::from_str(list).map_err(|_| wrong())?;
    let mut reader = UiReader::default();
    reader.records.rest = rest;
    // Both lists are of the same text, so they have the same length.
    for (index, (message, raw)) in messages.iter().zip(raws).enumerate() {
        reader.read_message(index, message, raw);
    }
    Ok(reader.into_session(text))
}

#[derive(Default)]
struct UiReader {
    records: Records,
    tree: Vec<SessionNode>,
    /// Message ids that are taken.
    seen: BTreeSet<String>,
    instructions: Vec<Message>,
}

impl UiReader {
    fn read_message(&mut self, index: usize, message: &UiMessage, raw: &RawValue) {
        let mut items = lift_message(message).items;
        if self.tree.is_empty() && message.role == UiRole::System {
            // What leads is not history.
            self.instructions
                .extend(items.iter().filter_map(as_message));
            items.clear();
        }
        let form = Raw::parse(format!(r#"{{"id":{}}}"#, quote_json(&message.id))).ok();
        self.records.add_record(raw, form, &items, fill_template);
        // Ids must be unique on a path; a repeated or empty one is told apart by its place.
        let unique = !message.id.is_empty() && self.seen.insert(message.id.clone());
        let message_id = if unique {
            message.id.clone()
        } else {
            format!("{}#{index}", message.id)
        };
        for item in items {
            let node = self.tree.len();
            self.tree.push(SessionNode {
                parent: node.checked_sub(1),
                origin: origin_of(&item),
                audience: audience_of(&item),
                item,
                message_id: Some(message_id.clone()),
                created_at: None,
                imported: Some(node),
            });
        }
    }

    fn into_session(self, text: &str) -> Session {
        Session {
            format: SessionFormat::Wire(contexture_wire::Format::Ui),
            source_id: format!("ui:{}", ContentHash::of(text.as_bytes())),
            title: title_of(&self.tree),
            instructions: self.instructions,
            heads: main_head(&self.tree),
            tree: self.tree,
            metadata: self.records.to_metadata(),
            info: SessionInfo::default(),
            skipped: Vec::new(),
        }
    }
}

pub(crate) fn as_message(item: &Item) -> Option<Message> {
    match item {
        Item::Message(message) => Some(message.clone()),
        _ => None,
    }
}

// Nothing is hidden: what was read must be written again, whoever may see it.
const EVERYTHING: FoldOptions<'static> = FoldOptions {
    audience: FoldAudience::Everyone,
    include_system: true,
    extensions: contexture_wire::ui::Extensions::Hidden,
    unknown_fields: contexture_wire::ui::UnknownFields::Kept,
};

pub(crate) fn fill_template(form: &Raw, items: &[&Item]) -> Option<String> {
    let id: String = serde_json::from_str(form.fields()?.get(&["id"])?.get()).ok()?;
    let entries: Vec<FoldItem<'_>> = items
        .iter()
        .map(|item| FoldItem {
            message_id: Some(&id),
            ..FoldItem::new(item)
        })
        .collect();
    let messages: Vec<UiMessage> = fold(&entries, &EVERYTHING);
    // Items that fold into several messages do not fit one record.
    let [message] = messages.as_slice() else {
        return None;
    };
    serde_json::to_string(message).ok()
}

/// The messages of the main path, under their ids.
pub(crate) fn write_path(session: &Session) -> String {
    let leading: Vec<Item> = session
        .instructions
        .iter()
        .cloned()
        .map(Item::from)
        .collect();
    let nodes = session.main_path().map(|node| FoldItem {
        message_id: node.message_id.as_deref(),
        ..FoldItem::new(&node.item)
    });
    let entries: Vec<FoldItem<'_>> = leading.iter().map(FoldItem::new).chain(nodes).collect();
    serde_json::to_string(&fold(&entries, &EVERYTHING)).unwrap_or_default()
}

pub(crate) fn write_session(session: &Session) -> Result<String, SessionError> {
    let records = Records::from_metadata(&session.metadata)?;
    let (filled, added) = records.fill_records(session, fill_template);
    let mut messages: Vec<String> = filled
        .into_iter()
        .map(|record| record.unwrap_or_else(str::to_owned))
        .collect();
    let entries: Vec<FoldItem<'_>> = added
        .iter()
        .map(|node| FoldItem {
            message_id: node.message_id.as_deref(),
            // The audience of new nodes counts: the program may have hidden them from people.
            audience: node.audience,
            ..FoldItem::new(&node.item)
        })
        .collect();
    let more = fold(&entries, &EVERYTHING);
    messages.extend(
        more.iter()
            .filter_map(|message| serde_json::to_string(message).ok()),
    );
    let list = format!("[{}]", messages.join(","));
    let Some(rest) = &records.rest else {
        return Ok(list);
    };
    with_member(rest.get(), "messages", &list).ok_or_else(|| SessionError::Metadata {
        what: "`rest` is not an object".to_owned(),
    })
}
