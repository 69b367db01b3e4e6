//! The messages that a Codex rollout has in events alone.
//!
//! Most versions write a message twice, as an item and as an event that tells of it; some wrote only the event, and a
//! rollout that another version went on with has both kinds. A message is read from its event where no item near it, of the
//! same side, says the same. Near, because both are written within one turn, while short answers come again and again.

use contexture_ir::{Fields, Item, Message, Part, Role};
use serde_json::value::RawValue;

use crate::json::text_of;

/// How many messages away from its event an item may stand: an answer's events may all come before its items.
const NEAR: usize = 32;
/// From how many bytes on a text that another contains, or begins with, is taken for the same: clients put context around
/// what a person says, and events leave parts of an answer out.
const LONG: usize = 40;

/// Returns the message that an event reports.
pub(super) fn parse_message_event(payload: &RawValue) -> Option<Message> {
    let fields = Fields::parse(payload.get()).ok()?;
    let role = match text_of(&fields, "type")?.as_str() {
        "user_message" => Role::User,
        "agent_message" => Role::Assistant,
        _ => return None,
    };
    let text = text_of(&fields, "message").filter(|text| !text.is_empty())?;
    Some(Message::text(role, text))
}

/// Returns for each event that reports a message, in order, whether no item says it.
pub(super) fn find_event_only(
    text: &str,
    read_item: impl Fn(&str, &Fields<'_>) -> Option<Item>,
) -> Vec<bool> {
    let read = |line: &str| MessageText::read_record(line, &read_item);
    let mut texts: Vec<MessageText> = text.lines().filter_map(read).collect();
    let events: Vec<usize> = (0..texts.len())
        .filter(|at| texts.get(*at).is_some_and(|one| one.is_event))
        .collect();
    let is_alone = |event: usize| match find_item(&texts, event) {
        Some((item, exact)) => {
            // An item that says just that stands for one event only: the same may be said twice.
            if let Some(item) = texts.get_mut(item).filter(|_| exact) {
                item.is_taken = true;
            }
            false
        }
        None => true,
    };
    events.into_iter().map(is_alone).collect()
}

/// Finds the nearest item that says what an event reports, and whether it says nothing else.
fn find_item(texts: &[MessageText], event: usize) -> Option<(usize, bool)> {
    let event_text = texts.get(event)?;
    let first = event.saturating_sub(NEAR);
    let near = texts
        .iter()
        .enumerate()
        .skip(first)
        .take(event + NEAR + 1 - first);
    let mut near: Vec<(usize, &MessageText)> = near
        .filter(|(_, one)| !one.is_event && !one.is_taken && one.role == event_text.role)
        .collect();
    near.sort_by_key(|(at, _)| at.abs_diff(event));
    let exact = near.iter().find(|(_, item)| item.whole == event_text.whole);
    let item = exact.or_else(|| {
        near.iter()
            .find(|(_, item)| item.includes(&event_text.whole))
    })?;
    Some((item.0, exact.is_some()))
}

/// What a record says, without white space, which the two kinds of records break differently.
struct MessageText {
    role: Role,
    is_event: bool,
    /// Whether an event was found to tell of it.
    is_taken: bool,
    whole: String,
    parts: Vec<String>,
}

impl MessageText {
    /// Reads a record that is a message of one of the two sides.
    fn read_record(
        line: &str,
        read_item: impl Fn(&str, &Fields<'_>) -> Option<Item>,
    ) -> Option<Self> {
        let fields = Fields::parse(line).ok()?;
        let is_event = text_of(&fields, "type").as_deref() == Some("event_msg");
        let message = match is_event {
            true => parse_message_event(fields.get(&["payload"])?)?,
            false => match read_item(line, &fields)? {
                Item::Message(message) if !message.role.is_instruction() => message,
                _ => return None,
            },
        };
        let texts = message.content.iter().filter_map(Part::as_text);
        let parts: Vec<String> = texts.map(without_space).collect();
        Some(Self {
            role: message.role,
            is_event,
            is_taken: false,
            whole: parts.concat(),
            parts,
        })
    }

    /// Whether a text is a part of this, or is so but for what one of the two leaves out.
    fn includes(&self, text: &str) -> bool {
        let beginning = |text: &str| text.bytes().take(LONG).collect::<Vec<u8>>();
        self.parts.iter().any(|part| part == text)
            || text.len() >= LONG
                && (self.whole.contains(text) || beginning(&self.whole) == beginning(text))
    }
}

fn without_space(text: &str) -> String {
    text.split_whitespace().collect()
}
