//! A run of items, written as items.

use contexture_ir::{Extension, Item, Message};

use super::words::{FORMAT, NAME, Place};
use super::write::{Site, write_item};
use crate::chunk::{Chunk, Dialect};
use crate::entry::{Run, side};
use crate::loss::{LossKind, Losses};

/// Whose items with a prefix before their type this format's hosts read.
const HOSTS: [&str; 2] = ["openai:", "openrouter:"];

pub(super) fn lower(dialect: &Dialect, run: &Run<'_, '_>) -> Chunk {
    let mut chunk = Chunk::default();
    let mut losses = Losses::default();
    let mut elements = Vec::new();
    for (index, entry) in run.entries.iter().enumerate() {
        let path = format!("[{index}]");
        let written = match entry.item {
            Item::Extension(extension) => write_extension(extension, &path, &mut losses),
            item => {
                let site = Site {
                    dialect,
                    place: Place::Input,
                    path: &path,
                    salt: 0,
                };
                write_item(item, entry.call_id(), &site, &mut losses)
            }
        };
        let Some(json) = written else { continue };
        elements.push(json);
        let side = side(entry.item, FORMAT).unwrap_or(run.side);
        chunk.facts.first.get_or_insert(side);
        chunk.facts.last = Some(side);
        chunk.facts.note(entry, FORMAT);
    }
    chunk.facts.elements = elements.len();
    chunk.json = elements.join(",");
    chunk.losses = losses.into_vec();
    chunk
}

/// One system or developer message that leads.
pub(super) fn instruction(
    dialect: &Dialect,
    index: usize,
    message: &Message,
    losses: &mut Losses,
) -> Option<String> {
    let path = format!("instructions[{index}]");
    let site = Site {
        dialect,
        place: Place::Input,
        path: &path,
        salt: 0,
    };
    write_item(&Item::Message(message.clone()), "", &site, losses)
}

/// This format's own items are bare words; bookkeeping is written nowhere.
pub(super) fn write_extension(item: &Extension, path: &str, losses: &mut Losses) -> Option<String> {
    let kind = item.kind.as_str();
    if kind.starts_with("ctx:") {
        return None;
    }
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
