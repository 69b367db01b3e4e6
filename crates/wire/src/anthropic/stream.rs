//! Streamed answers: `message_start`, content blocks that open, grow and close, `message_delta`,
//! `message_stop`.

use std::collections::BTreeMap;

use contexture_ir::{Fields, Raw};

use super::response;
use crate::draft::Draft;
use crate::json::{array, as_object};
use crate::stream::{Heard, PieceKind, StreamEvent, failure, place, string};
use crate::unfinished::{self, INCOMPLETE, MARK};

/// An answer being streamed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    message: Draft,
    blocks: BTreeMap<u64, Block>,
    stopped: bool,
}

#[derive(Clone, Debug)]
struct Block {
    draft: Draft,
    /// The text of a tool's input, as far as it came.
    input: String,
    open: bool,
    piece: usize,
}

impl Stream {
    pub(crate) fn push(&mut self, data: &str, said: &mut Vec<StreamEvent>) -> Heard {
        let fields = Fields::parse(data).unwrap_or_default();
        let heard = match string(&fields, "type").as_deref() {
            Some("message_start") => self.start(&fields, said),
            Some("content_block_start") => self.open(&fields, said),
            Some("content_block_delta") => self.grow(&fields, said),
            Some("content_block_stop") => self.close(&fields, said),
            Some("message_delta") => self.change(&fields, said),
            Some("message_stop") => {
                self.stopped = true;
                let word = self.message.string("stop_reason");
                let finish = word.as_deref().map(response::finish_from);
                said.push(StreamEvent::Finished { finish });
                Some(())
            }
            Some("ping") => Some(()),
            Some("error") => fields
                .get(&["error"])
                .map(|error| said.push(StreamEvent::Failed(failure(error)))),
            _ => None,
        };
        heard.map_or(Heard::Nothing, |()| Heard::Something)
    }

    /// Whether the provider ended it: relays may swallow the last event, but not the reason.
    pub(crate) fn ended(&self) -> bool {
        let closed = || self.blocks.values().all(|block| !block.open);
        self.stopped || (self.message.string("stop_reason").is_some() && closed())
    }

    pub(crate) fn body(&self) -> String {
        let mut message = self.message.clone();
        if !message.has("role") {
            message.set_string("type", "message");
            message.set_string("role", "assistant");
        }
        let blocks = array(self.blocks.values().map(Block::json));
        if let Ok(blocks) = Raw::parse(blocks) {
            message.set_raw("content", blocks);
        }
        if !self.ended() {
            message.set_string("stop_reason", INCOMPLETE);
        }
        message.json()
    }

    fn start(&mut self, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) -> Option<()> {
        let message = Draft::of(fields.get(&["message"])?.get());
        let id = message.string("id");
        let again = self.message.has("role") && self.blocks.is_empty();
        if again && id == self.message.string("id") {
            return Some(());
        }
        said.push(StreamEvent::Started {
            id,
            model: message.string("model"),
        });
        *self = Self {
            message,
            ..Self::default()
        };
        self.tell_usage(said);
        Some(())
    }

    fn open(&mut self, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) -> Option<()> {
        let index = place(fields, "index")?;
        let draft = Draft::of(fields.get(&["content_block"])?.get());
        if self.blocks.contains_key(&index) {
            return None;
        }
        let piece = self.blocks.len();
        let kind = match draft.string("type").unwrap_or_default().as_str() {
            "text" => PieceKind::Message,
            "thinking" | "redacted_thinking" => PieceKind::Reasoning,
            "tool_use" => PieceKind::Call {
                id: draft.string("id"),
                name: draft.string("name"),
            },
            other => PieceKind::Other(other.to_owned()),
        };
        said.push(StreamEvent::ItemAdded { piece, kind });
        let block = Block {
            draft,
            input: String::new(),
            open: true,
            piece,
        };
        self.blocks.insert(index, block);
        Some(())
    }

    fn grow(&mut self, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) -> Option<()> {
        let block = self.blocks.get_mut(&place(fields, "index")?)?;
        let delta = Fields::parse(fields.get(&["delta"])?.get()).ok()?;
        if !block.open {
            return None;
        }
        let piece = block.piece;
        match string(&delta, "type")?.as_str() {
            "text_delta" => {
                let delta = string(&delta, "text")?;
                block.draft.append("text", &delta);
                said.push(StreamEvent::TextDelta { piece, delta });
            }
            "thinking_delta" => {
                let delta = string(&delta, "thinking")?;
                block.draft.append("thinking", &delta);
                said.push(StreamEvent::ReasoningDelta { piece, delta });
            }
            "input_json_delta" => {
                let delta = string(&delta, "partial_json")?;
                block.input.push_str(&delta);
                said.push(StreamEvent::ArgumentsDelta { piece, delta });
            }
            "citations_delta" => {
                let citation = delta.get(&["citation"])?;
                block.draft.push("citations", citation.get());
            }
            // Signatures, compactions, and what there will be: a member of the block's own name grows.
            _ => {
                let members = delta.iter().filter(|(key, _)| *key != "type");
                members.for_each(|(key, value)| block.draft.merge(key, value));
            }
        }
        Some(())
    }

    fn close(&mut self, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) -> Option<()> {
        let block = self.blocks.get_mut(&place(fields, "index")?)?;
        if std::mem::take(&mut block.open) {
            said.push(StreamEvent::ItemDone { piece: block.piece });
        }
        Some(())
    }

    fn change(&mut self, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) -> Option<()> {
        for (key, value) in fields.iter() {
            match key {
                "type" => {}
                "delta" => self.message.set_all(value.get(), |_| true),
                "usage" => {
                    let figures = Fields::parse(value.get()).unwrap_or_default();
                    self.message.object("usage", |usage| {
                        figures
                            .iter()
                            .for_each(|(key, value)| usage.fill(key, value));
                    });
                }
                _ => self.message.set(key, value),
            }
        }
        self.tell_usage(said);
        Some(())
    }

    fn tell_usage(&self, said: &mut Vec<StreamEvent>) {
        let usage = self.message.raw("usage").cloned();
        let grown = || Raw::parse(self.message.inner("usage")?.json()).ok();
        if let Some(usage) = usage.or_else(grown)
            && let Ok(usage) = usage.to().and_then(response::usage)
        {
            said.push(StreamEvent::Usage(usage));
        }
    }
}

impl Block {
    fn json(&self) -> String {
        let mut draft = self.draft.clone();
        let whole = self.input.is_empty() || as_object(&self.input).is_some();
        if !self.input.is_empty()
            && whole
            && let Ok(input) = Raw::parse(self.input.as_str())
        {
            draft.set_raw("input", input);
        }
        if !whole {
            draft.set_raw(MARK, Raw::string(&self.input));
        } else if self.open {
            draft.set_raw(MARK, unfinished::mark());
        }
        draft.json()
    }
}
