//! A run of items, written as items.

use contexture_ir::{Item, Message};

use super::encode::{EncodeContext, encode_item};
use super::extension::encode_extension;
use super::spec::{ItemDirection, STRUCTURE};
use crate::model::chunk::{Chunk, Dialect};
use crate::model::loss::Losses;
use crate::model::paired_item::RoleRun;

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
