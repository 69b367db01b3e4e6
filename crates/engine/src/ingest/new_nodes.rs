//! New items as nodes: which call an output answers, which message an item belongs to.

use std::borrow::Cow;

use contexture_ir::{Item, MessageId, NodeId, Role};
use contexture_store::{NewItem, PathEnd, ReadRequest};
use contexture_wire::partner_indices;

use super::renamed_calls::rename_outputs;
use super::request_history::is_model_item;
use crate::append::new_item;
use crate::error::EngineError;
use crate::handle::{Conversation, load_path};
use crate::path::{StoredPath, message_id_of};

/// Nodes read beside twice as many items as the last step has.
const BESIDE: u64 = 16;

/// Nodes read where the last step was not sent.
const UNSENT: u64 = 64;

/// New items, behind those that are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewNodes<'a> {
    /// All that was sent.
    pub(super) items: &'a [Item],
    /// How many of it are stored.
    pub(super) known: usize,
    /// The node behind which the rest goes.
    pub(super) base: Option<NodeId>,
}

impl<'a> NewNodes<'a> {
    fn new_items(&self) -> &'a [Item] {
        self.items.get(self.known..).unwrap_or_default()
    }

    /// The nodes, and what they say. Their ids follow from what was sent and where, so that the same again is known again.
    pub(super) async fn build_nodes(
        &self,
        chat: &Conversation,
    ) -> Result<(Vec<NewItem>, Cow<'a, [Item]>), EngineError> {
        let tail = self.read_tail(chat).await?;
        let mut new_items = Cow::Borrowed(self.new_items());
        for (at, output) in rename_outputs(self.items, self.known, &tail) {
            if let Some(one) = new_items.to_mut().get_mut(at - self.known) {
                *one = output;
            }
        }
        let new = &*new_items;
        let key = self.id_key(chat);
        let before = tail.items.len();
        let stored = tail.items.iter().map(|item| item.item.as_ref());
        // Paired over stored and new items together: an output may answer a call of an earlier request.
        let partners = partner_indices(stored.chain(new));
        let mut turn: Option<MessageId> = None;
        let mut nodes: Vec<NewItem> = Vec::with_capacity(new.len());
        for (index, item) in new.iter().enumerate() {
            let id = NodeId::of_operation(&key, index);
            let mut node = new_item(chat, id, item, None);
            let call = match item {
                Item::FunctionCallOutput(_) => partners.get(before + index).copied().flatten(),
                _ => None,
            };
            match call.map(|call| call.checked_sub(before).ok_or(call)) {
                Some(Ok(new)) => {
                    let call = nodes.get(new);
                    node.answers = call.map(|call| call.id);
                    turn = call.and_then(|call| call.message_id.clone()).or(turn);
                }
                // The call is stored: its output joins the message that the call belongs to.
                Some(Err(stored)) => {
                    if let Some(call) = tail.nodes.get(stored) {
                        node.answers = Some(call.id);
                        turn = Some(message_id_of(call)?);
                    }
                }
                None => {}
            }
            match item {
                // A message of the user ends the turn of the model.
                Item::Message(message) if message.role != Role::Assistant => turn = None,
                _ if is_model_item(item) && turn.is_none() => {
                    turn = Some(MessageId::of_node(id));
                }
                _ => {}
            }
            node.message_id.clone_from(&turn);
            nodes.push(node);
        }
        Ok((nodes, new_items))
    }

    /// The key from which the ids of the nodes derive.
    fn id_key(&self, chat: &Conversation) -> [u8; 16] {
        let base = self.base.as_ref().map_or(&[][..], |base| base.as_bytes());
        let owner = chat.owner().as_str().as_bytes();
        let mut parts = vec![owner, chat.id().as_str().as_bytes(), base];
        let items: Vec<String> = self.new_items().iter().map(Item::to_json).collect();
        parts.extend(items.iter().map(String::as_bytes));
        *NodeId::derive("ingest", &parts).as_bytes()
    }

    /// What outputs may answer that is stored: the end of the path, as far as the last step goes.
    async fn read_tail(&self, chat: &Conversation) -> Result<StoredPath, EngineError> {
        let is_output = |item: &Item| matches!(item, Item::FunctionCallOutput(_));
        let new = self.new_items().iter();
        let mut early = new.take_while(|item| !is_model_item(item));
        // Read only if an output comes before the first item of the model: others answer calls that are new.
        let Some(base) = self.base.filter(|_| early.any(is_output)) else {
            return Ok(StoredPath::default());
        };
        let known = self.items.iter().take(self.known).rev();
        let step = known.take_while(|item| is_model_item(item) || is_output(item));
        let count = match step.count() as u64 {
            0 => UNSENT,
            step => 2 * step + BESIDE,
        };
        load_path(chat, ReadRequest::last_nodes(PathEnd::Node(base), count)).await
    }
}
