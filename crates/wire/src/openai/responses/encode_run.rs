//! A run of items, written as items.

use contexture_ir::{Extension, Item, Message};

use super::encode::{EncodeContext, encode_item};
use super::spec::{ItemDirection, NAME, STRUCTURE};
use crate::model::chunk::{Chunk, Dialect};
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::RoleRun;

/// Whose items with a prefix before their type this format's hosts read.
const HOSTS: [&str; 2] = ["openai:", "openrouter:"];

pub(super) fn encode_run(dialect: &Dialect, run: &RoleRun<'_, '_>) -> Chunk {
    let (mut chunk, mut losses) = (Chunk::default(), Losses::default());
    let mut elements = Vec::new();
    for (index, entry) in run.entries.iter().enumerate() {
        let path = format!("[{index}]");
        let written = match entry.item {
            Item::Extension(extension) => encode_extension(extension, &path, &mut losses),
            item => {
                let site = EncodeContext {
                    dialect,
                    direction: ItemDirection::Input,
                    path: &path,
                    salt: 0,
                };
                encode_item(item, entry.call_id(), &site, &mut losses)
            }
        };
        let Some(json) = written else { continue };
        elements.push(json);
        // An item without a side of its own stands with its run.
        let side = STRUCTURE.side(entry.item).unwrap_or(run.side);
        chunk.facts.first.get_or_insert(side);
        chunk.facts.last = Some(side);
        chunk.facts.record_call_id(entry, &STRUCTURE);
    }
    chunk.facts.elements = elements.len();
    chunk.json = elements.join(",");
    chunk.losses = losses.into_vec();
    chunk
}

/// One system or developer message that leads.
pub(super) fn encode_instruction(
    dialect: &Dialect,
    index: usize,
    message: &Message,
    losses: &mut Losses,
) -> Option<String> {
    let path = format!("instructions[{index}]");
    let site = EncodeContext {
        dialect,
        direction: ItemDirection::Input,
        path: &path,
        salt: 0,
    };
    encode_item(&Item::Message(message.clone()), "", &site, losses)
}

/// This format's own items are bare words; bookkeeping is written nowhere.
pub(super) fn encode_extension(
    item: &Extension,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    let kind = item.kind.as_str();
    // An item of ours, which no provider is sent; leaving it out is no loss to report.
    if kind.starts_with("ctx:") {
        return None;
    }
    // A bare word is a type of this format; a prefix names the host that made it.
    if kind.contains(':') && !HOSTS.iter().any(|host| kind.starts_with(host)) {
        losses.push(
            path,
            LossKind::Item,
            format!("{NAME} has no word for `{kind}`"),
        );
        return None;
    }
    Some(item.raw.get().to_owned())
}
