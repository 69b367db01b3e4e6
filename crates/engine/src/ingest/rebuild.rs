//! The index of a conversation's histories, rebuilt from its nodes.

use std::collections::BTreeSet;

use contexture_ir::{
    CHAIN_VERSION, ConversationId, HistoryHasher, Item, Owner, PathHash, ResponseId,
};
use contexture_store::{Error as StoreError, NodeKind, PathEnd, PathMark, ReadRequest};

use super::compare_tail::is_incomplete;
use super::keys::{AnswerStatus, PathKeys};
use super::passthrough::RelayedCall;
use crate::error::EngineError;
use crate::handle::{Conversation, Engine, load_conversation_info, load_path};
use crate::path::StoredPath;
use crate::refs::list_refs;

/// Makes the index of a conversation's histories again: after a change of the rule by which they are
/// hashed, and for conversations that were imported. Gives how many places it has.
pub(crate) async fn rebuild_path_index(
    engine: &Engine,
    owner: &Owner,
    id: &ConversationId,
) -> Result<usize, EngineError> {
    let record = load_conversation_info(engine, owner, id).await?;
    let Some(index) = engine.store().path_index() else {
        return Ok(0);
    };
    let keys = PathKeys::for_conversation(&record);
    let chat = Conversation::new(engine.clone(), owner.clone(), id.clone(), record.active);
    // A set, as branches share beginnings; its order also makes the rebuild deterministic.
    let mut marks = BTreeSet::new();
    for branch in list_refs(&chat).await?.branches {
        let Some(head) = branch.head else { continue };
        let path = load_path(&chat, ReadRequest::whole_path(PathEnd::Node(head))).await?;
        add_path_marks(&chat, &keys, &path, &mut marks).await?;
    }
    let marks: Vec<PathMark> = marks.into_iter().collect();
    let count = marks.len();
    let most = engine.store().limits().path_hashes;
    // The first removes what is of other rules, be it that nothing follows.
    let (first, rest) = marks.split_at(count.min(most));
    for part in std::iter::once(first).chain(rest.chunks(most.max(1))) {
        let put = index.put_paths(owner, id, CHAIN_VERSION, part.to_vec());
        put.await?;
    }
    Ok(count)
}

/// Adds the marks of a path.
async fn add_path_marks(
    chat: &Conversation,
    keys: &PathKeys,
    path: &StoredPath,
    marks: &mut BTreeSet<PathMark>,
) -> Result<(), EngineError> {
    let shown = |place: &usize| {
        let node = path.nodes.get(*place);
        node.is_some_and(|node| node.audience.user)
    };
    let shown: Vec<usize> = (0..path.nodes.len()).filter(shown).collect();
    let items: Vec<&Item> = shown
        .iter()
        .filter_map(|place| path.items.get(*place).map(|item| item.item.as_ref()))
        .collect();
    let answers = answer_spans(path);
    // From the first answer on a history is known well enough to be found without a name.
    let first = answers.first().map(|answer| answer.last);
    let mut add = |hash: PathHash, place: usize| {
        let node = path.nodes.get(place);
        marks.extend(node.map(|node| PathMark {
            version: CHAIN_VERSION,
            hash,
            node: node.id,
        }));
    };
    let answer_status = |place: usize| match first.is_some_and(|first| first <= place) {
        true => AnswerStatus::Answered,
        false => AnswerStatus::Unanswered,
    };
    for link in HistoryHasher::default().hash_items(items.iter().copied()) {
        let Some(place) = shown.get(link.items - 1).copied() else {
            continue;
        };
        // An answer is found at its last node, be that one passed over.
        let of = answers
            .iter()
            .find(|answer| (answer.first..=answer.last).contains(&place));
        let place = of.map_or(place, |answer| answer.last);
        add(keys.history_key(answer_status(place), link.hash), place);
    }
    for answer in &answers {
        if answer.cut || answer.open {
            let up_to = |end: usize| {
                let earlier = shown.iter().zip(&items);
                let earlier = earlier.take_while(|(place, _)| **place < end);
                let mut chain = HistoryHasher::default();
                earlier.for_each(|(_, item)| chain.push_item(item));
                chain.current_hash()
            };
            let question = up_to(answer.first);
            let status = match answer.cut && first == Some(answer.last) {
                true => AnswerStatus::Incomplete,
                false => AnswerStatus::Answered,
            };
            if answer.cut || question == up_to(answer.last + 1) {
                add(keys.history_key(status, question), answer.last);
            }
        }
        // The id that the provider gave is only in the record of the answer.
        for (response, last) in &answer.responses {
            let (store, owner, id) = (chat.store(), chat.owner(), chat.id());
            let call = match store.load_response(owner, id, *response).await {
                Ok(record) => RelayedCall::from_inputs(&record.inputs),
                Err(StoreError::NotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            if let Some(name) = call.and_then(|call| call.response) {
                add(keys.response_key(&name), *last);
            }
        }
    }
    Ok(())
}

/// The nodes of an answer, in several parts where calls were answered on the way.
struct AnswerSpan {
    /// The parts, and the last node of each.
    responses: Vec<(ResponseId, usize)>,
    first: usize,
    last: usize,
    cut: bool,
    /// Whether it ends with the output of a call that no client saw.
    open: bool,
}

fn answer_spans(path: &StoredPath) -> Vec<AnswerSpan> {
    let mut answers: Vec<AnswerSpan> = Vec::new();
    for (place, (node, item)) in path.nodes.iter().zip(&path.items).enumerate() {
        let next = |answer: &&mut AnswerSpan| answer.last + 1 == place;
        let answer = answers.last_mut().filter(next);
        let Some(response) = node.response else {
            let is_output = node.kind == NodeKind::FunctionCallOutput;
            // Behind the output of such a call stands what is nobody's: a compaction, say.
            let is_own =
                |answer: &&mut AnswerSpan| !node.audience.user && (is_output || answer.open);
            if let Some(answer) = answer.filter(is_own) {
                answer.last = place;
                answer.open = true;
                answer
                    .responses
                    .iter_mut()
                    .next_back()
                    .into_iter()
                    .for_each(|(_, last)| *last = place);
            }
            continue;
        };
        let cut = is_incomplete(&item.item);
        match answer {
            Some(answer) if answer.open || answer.has_response(response) => {
                answer.responses.retain(|(known, _)| *known != response);
                answer.responses.push((response, place));
                answer.last = place;
                answer.cut |= cut;
                answer.open = false;
            }
            _ => answers.push(AnswerSpan {
                responses: vec![(response, place)],
                first: place,
                last: place,
                cut,
                open: false,
            }),
        }
    }
    answers
}

impl AnswerSpan {
    fn has_response(&self, response: ResponseId) -> bool {
        self.responses.iter().any(|(known, _)| *known == response)
    }
}
