//! The rollout format of Codex.
//!
//! One record a line: `timestamp`, `type` and a `payload`. A `response_item`'s payload is an item as
//! the Responses API knows it; `session_meta` holds the session's id and base instructions; events,
//! contexts and usage are kept but become no items. A `compacted` record becomes a compaction. Fields of
//! Codex's own inside items (`internal_…`) stay with the record. Older rollouts hold items without an
//! envelope; a message that no item says is read from the event that reports it.
//!
//! An event `thread_rolled_back` takes the user's last turns back: what follows goes on before them, and
//! what was taken back is a branch of its own, `rollback-1`, `rollback-2`, … in order. Events say which
//! messages began a turn; in a rollout without such events every user message did.

use contexture_ir::{
    Audience, Compaction, Fields, Item, Message, Part, Raw, Role, TextPart, quote_json,
};
use contexture_text::one_line_title;
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::formats::codex_events::{find_event_only, parse_message_event};
use crate::json::{text_of, timestamp_of, with_member, without_members};
use crate::kept_records::Records;
use crate::lines::{Expected, NotUnderstood, each_line, join_lines, wrong_record};
use crate::session::{
    ReadOptions, Session, SessionHead, SessionInfo, SessionNode, TITLE_CHARS, audience_of,
    leaf_nodes, origin_of, title_of,
};

/// The items that stand without an envelope.
const BARE: [&str; 4] = [
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
];

const EXPECTED: Expected = Expected {
    what: "a Codex rollout record",
};

pub(crate) fn read_session(text: &str, options: &ReadOptions<'_>) -> Result<Session, SessionError> {
    let mut reader = CodexReader {
        event_only: find_event_only(text, read_message).into_iter(),
        ..CodexReader::default()
    };
    let mut records = Records::default();
    let skipped = each_line(text, &EXPECTED, options, &mut records, |raw, records| {
        reader.read_record(raw, records)
    })?;
    // Before the reader is taken apart, since heads need its tree and its end.
    let heads = reader.session_heads();
    let tree = reader.tree;
    let id = reader.id;
    let name = id.unwrap_or_else(|| options.source_name.to_owned());
    Ok(Session {
        format: SessionFormat::Codex,
        source_id: format!("codex:{name}"),
        // What the user is heard to say before is mostly said for them.
        title: reader
            .asked
            .and_then(|node| tree.get(node))
            .map(|node| one_line_title(&node.item.text(), TITLE_CHARS))
            .filter(|title| !title.is_empty())
            .or_else(|| title_of(&tree)),
        instructions: reader.instructions,
        heads,
        tree,
        metadata: records.to_metadata(),
        info: SessionInfo::default(),
        skipped,
    })
}

/// Reads the message of a record that holds an item, in an envelope or without one.
fn read_message(line: &str, record: &Fields<'_>) -> Option<Item> {
    let kind = text_of(record, "type")?;
    match record.get(&["payload"]) {
        Some(payload) if kind == "response_item" => Item::parse(payload.get()).ok(),
        None if kind == "message" => Item::parse(line).ok(),
        _ => None,
    }
}

#[derive(Default)]
struct CodexReader {
    /// For each event that reports a message, whether no item says it.
    event_only: std::vec::IntoIter<bool>,
    tree: Vec<SessionNode>,
    id: Option<String>,
    instructions: Vec<Message>,
    /// The node the next one follows.
    last: Option<usize>,
    /// The user messages before it.
    messages: Vec<Turn>,
    /// Those of them that began a turn, as the events say.
    turns: Vec<Turn>,
    /// Whether there was an event of that kind.
    told: bool,
    /// The first of those messages, whatever was taken back since.
    asked: Option<usize>,
    /// Where the turn under way began.
    began: Option<Option<usize>>,
}

/// A user message and the node that a rollback of its turn goes back to.
#[derive(Clone, Copy)]
struct Turn {
    node: usize,
    base: Option<usize>,
}

impl CodexReader {
    fn read_record(&mut self, raw: &RawValue, records: &mut Records) -> Result<(), NotUnderstood> {
        let fields = Fields::parse(raw.get()).map_err(|_| wrong_record(raw.get()))?;
        let payload = fields.get(&["payload"]);
        let Some(kind) = text_of(&fields, "type") else {
            // Such a line has the session's data at its top level and no type.
            // The first line of an older rollout.
            if text_of(&fields, "id").is_some() && text_of(&fields, "timestamp").is_some() {
                self.read_meta(&fields);
                records.add_record(raw, None, &[], fill_template);
                return Ok(());
            }
            return Err(wrong_record(raw.get()));
        };
        let split = self.split_record(raw, &kind, payload);
        let (item, form) = split.map_err(NotUnderstood)?;
        let mut items: Vec<Item> = item.into_iter().collect();
        // Later instructions are part of the history; those before the first node are not.
        if self.tree.is_empty() {
            self.take_leading(&mut items);
        }
        records.add_record(raw, form, &items, fill_template);
        let created_at = timestamp_of(&fields);
        // A message that only an event says began a turn, as one does that an event tells of.
        let begins_turn =
            kind == "event_msg" && items.iter().any(|item| item.role() == Some(Role::User));
        for item in items {
            self.push_item(item, created_at);
        }
        if begins_turn {
            self.start_turn();
        }
        Ok(())
    }

    /// Moves instructions out of the items of a record.
    fn take_leading(&mut self, items: &mut Vec<Item>) {
        let leading = items.iter().filter_map(|item| match item {
            Item::Message(message) if message.role.is_instruction() => Some(message.clone()),
            _ => None,
        });
        self.instructions.extend(leading);
        items.retain(|item| !item.role().is_some_and(Role::is_instruction));
    }

    /// Takes a record apart; records that only inform the reader have no item and are kept whole.
    fn split_record(
        &mut self,
        raw: &RawValue,
        kind: &str,
        payload: Option<&RawValue>,
    ) -> Result<SplitRecord, String> {
        // An envelope first, then items without one; unknown types become no items but stay as records.
        Ok(match (kind, payload) {
            ("session_meta", Some(payload)) => {
                if let Ok(meta) = Fields::parse(payload.get()) {
                    self.read_meta(&meta);
                }
                (None, None)
            }
            ("event_msg", Some(payload)) => {
                let message = parse_message_event(payload);
                let message = message.filter(|_| self.event_only.next().unwrap_or_default());
                // Such an event has no other use.
                if message.is_none() {
                    self.read_event(payload);
                }
                (message.map(Item::Message), None)
            }
            ("response_item", Some(payload)) => split_item(raw, payload)?,
            ("compacted", Some(payload)) => (parse_compaction(payload), None),
            (_, None) => split_bare_item(raw, kind)?,
            // Bookkeeping of all versions; a newer one may have other records of what was said.
            (_, Some(payload)) => {
                refuse_words(kind, payload)?;
                (None, None)
            }
        })
    }

    fn read_meta(&mut self, meta: &Fields<'_>) {
        // The first meta record is the session's own; a resumed session repeats those of its ancestors.
        if self.id.is_some() {
            return;
        }
        self.id = text_of(meta, "id");
        let nested = |name: &str| {
            let value = meta.get(&[name])?;
            text_of(&Fields::parse(value.get()).ok()?, "text")
        };
        // Older rollouts have the instructions as plain text.
        let text = nested("base_instructions").or_else(|| text_of(meta, "instructions"));
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.instructions.push(Message::text(Role::System, text));
        }
    }

    /// What an event says of turns.
    fn read_event(&mut self, payload: &RawValue) {
        let Ok(fields) = Fields::parse(payload.get()) else {
            return;
        };
        let of_user = |value: &RawValue| {
            Fields::parse(value.get())
                .ok()
                .and_then(|item| text_of(&item, "type"))
                .is_some_and(|kind| kind == "UserMessage")
        };
        match text_of(&fields, "type").as_deref() {
            // The state before the turn, for a rollback to return to. Several items may follow before the
            // user's message.
            Some("task_started" | "turn_started") => self.began = Some(self.last),
            Some("user_message") => self.start_turn(),
            Some("item_completed") if fields.get(&["item"]).is_some_and(of_user) => {
                self.start_turn()
            }
            Some("thread_rolled_back") => {
                let turns = fields.get(&["num_turns"]);
                self.roll_back(
                    turns
                        .and_then(|turns| turns.get().parse().ok())
                        .unwrap_or(0),
                );
            }
            _ => {}
        }
    }

    /// The newest user message began a turn.
    fn start_turn(&mut self) {
        // From here on the events decide what a turn is, and plain user messages no longer count.
        self.told = true;
        let Some(mut turn) = self.messages.last().copied() else {
            return;
        };
        let Some(newest) = self.turns.last() else {
            self.asked.get_or_insert(turn.node);
            // What stands before the first turn stays.
            self.began = None;
            self.turns.push(turn);
            return;
        };
        // An event may be repeated for a message that is a turn already.
        if newest.node < turn.node {
            turn.base = self.began.take().unwrap_or(turn.base);
            self.turns.push(turn);
        }
    }

    fn roll_back(&mut self, count: usize) {
        // In a rollout without events every user message counts as a turn.
        let turns = if self.told {
            &self.turns
        } else {
            &self.messages
        };
        // A count beyond the turns goes back to the first one.
        let kept = turns.len().saturating_sub(count);
        let Some(turn) = turns.get(kept) else {
            return;
        };
        let base = turn.base;
        self.last = base;
        self.began = None;
        // Turns after the base are gone for later rollbacks too, or a second one would count them again.
        for turns in [&mut self.messages, &mut self.turns] {
            turns.truncate(turns.partition_point(|turn| Some(turn.node) <= base));
        }
    }

    /// Where the rollout ended, and the ends that were taken back.
    fn session_heads(&self) -> Vec<SessionHead> {
        let main = self.last.map(|node| SessionHead {
            name: "main".to_owned(),
            node,
        });
        // Leaves that are not the end were taken back; nothing else forks a rollout.
        let taken_back = leaf_nodes(&self.tree)
            .into_iter()
            .filter(|node| Some(*node) != self.last);
        let taken_back = taken_back.enumerate().map(|(index, node)| SessionHead {
            name: format!("rollback-{}", index + 1),
            node,
        });
        main.into_iter().chain(taken_back).collect()
    }

    fn push_item(&mut self, item: Item, created_at: Option<i64>) {
        let (index, parent) = (self.tree.len(), self.last);
        if item.role() == Some(Role::User) {
            let base = parent;
            self.messages.push(Turn { node: index, base });
        }
        self.last = Some(index);
        // Instructions in mid-history come from the program; its users never see them.
        let hidden = item.role().is_some_and(Role::is_instruction);
        self.tree.push(SessionNode {
            parent,
            origin: origin_of(&item),
            audience: if hidden {
                Audience::MODEL
            } else {
                audience_of(&item)
            },
            message_id: item
                .id()
                // Only messages: ids of calls and reasoning would fold each into a message of its own.
                .filter(|_| item.role().is_some())
                .map(str::to_owned),
            item,
            created_at,
            imported: Some(index),
        });
    }
}

type SplitRecord = (Option<Item>, Option<Raw>);

fn is_internal(name: &str) -> bool {
    name.starts_with("internal_")
}

/// The item, and the record with only Codex's own fields left of it.
fn split_item(raw: &RawValue, payload: &RawValue) -> Result<SplitRecord, String> {
    let plain = without_members(payload.get(), is_internal).ok_or("a payload that is no object")?;
    let own = without_members(payload.get(), |name| !is_internal(name));
    let item = Item::parse(&plain)
        .or_else(|error| parse_output_object(&plain).ok_or(error))
        .map_err(|error| error.to_string())?;
    // Codex's own members go into the record, so that the item has only what the specification knows.
    let form = own
        .and_then(|own| with_member(raw.get(), "payload", &own))
        .and_then(|form| Raw::parse(form).ok());
    Ok((Some(item), form))
}

/// An output that is one object with the text in `content`, as some versions wrote it.
fn parse_output_object(payload: &str) -> Option<Item> {
    let output = Fields::parse(payload).ok()?.get(&["output"])?;
    let fields = Fields::parse(output.get()).ok()?;
    let text = fields
        .get(&["content"])
        .filter(|text| text.get().starts_with('"'));
    // An object of another shape is shown as it is written.
    let text = text.map_or_else(|| quote_json(output.get()), |text| text.get().to_owned());
    let mut payload = with_member(payload, "output", &text)?;
    if fields
        .get(&["success"])
        .is_some_and(|success| success.get() == "false")
    {
        payload = with_member(&payload, "is_error", "true")?;
    }
    Item::parse(&payload).ok()
}

/// Fails if a record of an unknown type seems to hold what somebody said: it would be missed.
fn refuse_words(kind: &str, payload: &RawValue) -> Result<(), String> {
    let fields = Fields::parse(payload.get()).unwrap_or_default();
    match fields.get(&["role", "content"]) {
        Some(_) => Err(format!("a record of the unknown type `{kind}`")),
        None => Ok(()),
    }
}

/// An item without an envelope, as older rollouts have them.
fn split_bare_item(raw: &RawValue, kind: &str) -> Result<SplitRecord, String> {
    if !BARE.contains(&kind) {
        refuse_words(kind, raw)?;
        return Ok((None, None));
    }
    let item = Item::parse(raw.get()).map_err(|error| error.to_string())?;
    // An empty object: there is no envelope to fill, and the item alone gives the record back.
    Ok((Some(item), Raw::parse("{}").ok()))
}

fn parse_compaction(payload: &RawValue) -> Option<Item> {
    let text = text_of(&Fields::parse(payload.get()).ok()?, "message")?;
    Some(Item::Compaction(Compaction {
        summary: vec![Part::SummaryText(TextPart::new(text))],
        ..Compaction::default()
    }))
}

fn fill_template(form: &Raw, items: &[&Item]) -> Option<String> {
    // One item a record; more would mean that the template is of another record.
    let [item] = items else {
        return None;
    };
    let json = item.to_json();
    let fields = form.fields()?;
    // Without an envelope the item is the record.
    let Some(own) = fields.get(&["payload"]) else {
        return Some(json);
    };
    let mut payload = json;
    // Codex's own members come back behind the item's; order within an object does not matter to the
    // comparison.
    for (name, value) in Fields::parse(own.get()).ok()?.iter() {
        payload = with_member(&payload, name, value.get())?;
    }
    with_member(form.get(), "payload", &payload)
}

pub(crate) fn write_session(session: &Session) -> Result<String, SessionError> {
    let records = Records::from_metadata(&session.metadata)?;
    let (filled, added) = records.fill_records(session, fill_template);
    let mut out = join_lines(filled);
    for node in added {
        out.push_str(&format!(
            r#"{{"type":"response_item","payload":{}}}"#,
            node.item.to_json()
        ));
        out.push('\n');
    }
    Ok(out)
}
