//! `contexture show`: one message, whole.

use std::collections::HashMap;
use std::sync::Arc;

use clap::Args;
use contexture::ir::{MessageId, Output, Part};
use contexture::store::{Node, NodeQuery};
use contexture::{Conversation, Item};
use contexture_api::NodeDocument;
use owo_colors::OwoColorize as _;
use serde::Serialize;

use crate::database;
use crate::options::globals::Globals;
use crate::options::node_ref::{NodeRef, resolve_node_ref};
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{LongWords, one_line, printable_lines, wrap_words};
use crate::output::relative_time::{format_timestamp, now_ms, relative_time};
use crate::output::table::{Column, format_table};
use crate::output::terminal::{Stream, column_count, terminal_columns};
use crate::output::write;
use contexture::engine::parse_node_item;

/// Show one message, whole
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture show support-42 9f3a
  contexture show support-42 9f3a --json | jq '.items[].item.type'")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// A message's id, or the beginning of an id that `log` shows
    message: String,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation or message, or the beginning fits several.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let chat = database::open_conversation(globals, &arguments.conversation, None).await?;
    let nodes = load_nodes(&chat, &arguments.message).await?;
    if globals.json {
        write::print_json(&to_document(&nodes)?)?;
    } else {
        write::print_styled(&format_nodes(&nodes)?)?;
    }
    Ok(Exit::Done)
}

/// The nodes to show, oldest first: those of the message up to the place.
async fn load_nodes(chat: &Conversation, name: &str) -> Outcome<Vec<Arc<Node>>> {
    let (last, nodes) = match resolve_node_ref(chat, name).await? {
        NodeRef::Message(_, mut nodes) => {
            nodes.sort_by_key(|node| node.depth);
            let Some(last) = nodes.last().map(Arc::clone) else {
                return Ok(nodes);
            };
            (last, nodes)
        }
        NodeRef::Node(node) => {
            let Some(message) = node.message_id.clone() else {
                return Ok(vec![node]);
            };
            (node, load_message_nodes(chat, message).await?)
        }
    };
    // A message may have gone on differently on two branches: only what leads to the last node is
    // shown.
    let by_id: HashMap<_, _> = nodes.iter().map(|node| (node.id, node)).collect();
    let mut path = vec![Arc::clone(&last)];
    let mut parent = last.parent;
    while let Some(node) = parent.and_then(|parent| by_id.get(&parent)) {
        path.push(Arc::clone(node));
        parent = node.parent;
    }
    path.reverse();
    Ok(path)
}

async fn load_message_nodes(chat: &Conversation, message: MessageId) -> Outcome<Vec<Arc<Node>>> {
    let store = chat.engine().store();
    let query = NodeQuery::Message(message);
    store
        .find_nodes(chat.owner(), chat.id(), query)
        .await
        .map_err(Failure::from)
}

#[derive(Serialize)]
struct MessageItemsDocument {
    message: Option<String>,
    items: Vec<NodeDocument>,
}

fn to_document(nodes: &[Arc<Node>]) -> Outcome<MessageItemsDocument> {
    let items = nodes.iter().map(|node| NodeDocument::try_from(&**node));
    Ok(MessageItemsDocument {
        message: nodes
            .first()
            .map(|node| node.effective_message_id().into_owned()),
        items: items.collect::<Result<_, _>>()?,
    })
}

/// The line above an item: what it is, its node and its time.
const COLUMNS: [Column; 3] = [
    Column::words("", 8).with_paint(|heading| heading.bold().to_string()),
    Column::id("").with_paint(|node| node.magenta().to_string()),
    Column::word("").with_paint(|when| when.dimmed().to_string()),
];

fn format_nodes(nodes: &[Arc<Node>]) -> Outcome<String> {
    let mut out = String::new();
    let now = now_ms();
    for (at, node) in nodes.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let item = parse_node_item(node)?;
        let when = format!(
            "{} ({})",
            format_timestamp(node.created_ms),
            relative_time(node.created_ms, now)
        );
        let row = vec![item_heading(&item), node.id.to_string(), when];
        out.push_str(&format_table(
            &COLUMNS,
            &[row],
            column_count(Stream::Output),
        ));
        let body = item_body(&item);
        if !body.is_empty() {
            out.push_str(&fit_body(&item, &printable_lines(&body)));
            if !body.ends_with('\n') {
                out.push('\n');
            }
        }
    }
    Ok(out)
}

/// What a person wrote or reads, wrapped to the terminal. Code in it, and what calls and outputs hold, is copied and so
/// stays as it is.
fn fit_body(item: &Item, body: &str) -> String {
    let Some(columns) = terminal_columns(Stream::Output) else {
        return body.to_owned();
    };
    if !matches!(item, Item::Message(_) | Item::Compaction(_)) {
        return body.to_owned();
    }
    let mut in_code = false;
    let fit = |line: &str| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        match in_code || is_fence {
            true => line.to_owned(),
            false => wrap_words(line, columns, 0, LongWords::Break),
        }
    };
    body.split_inclusive('\n').map(fit).collect()
}

fn item_heading(item: &Item) -> String {
    match item {
        Item::Message(message) => message.role.as_str().to_owned(),
        Item::FunctionCall(call) => format!(
            "call {} ({})",
            one_line(&call.name),
            one_line(&call.call_id)
        ),
        Item::FunctionCallOutput(output) => {
            let failed = if output.is_error == Some(true) {
                ", failed"
            } else {
                ""
            };
            format!("output ({}{failed})", one_line(&output.call_id))
        }
        other => one_line(other.kind()),
    }
}

fn item_body(item: &Item) -> String {
    match item {
        Item::Message(message) => format_parts(&message.content),
        Item::FunctionCall(call) => call.arguments.clone(),
        Item::FunctionCallOutput(output) => match &output.output {
            Output::Text(text) => text.clone(),
            Output::Parts(content) => format_parts(content),
        },
        Item::Extension(extension) => extension.raw.get().to_owned(),
        other => other.text(),
    }
}

/// Texts as they are, everything else by its kind.
fn format_parts(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match part.as_text() {
        Some(text) => text.to_owned(),
        None => format!("[{}]", one_line(part.kind())),
    });
    texts.collect::<Vec<_>>().join("\n")
}
