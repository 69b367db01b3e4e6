//! The index of a conversation's histories, made again from its nodes.

use std::collections::BTreeSet;

use contexture_ir::{CHAIN_VERSION, Chain, ConversationId, Item, Owner, PathHash, ResponseId};
use contexture_store::{At, Error as StoreError, NodeKind, PathMark, ReadRequest};

use super::copy::is_cut;
use super::keys::{Keys, Standing};
use super::relayed::Call;
use crate::conversation::Conversation;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::path::Path;

impl Engine {
    /// Makes the index of a conversation's histories again: after a change of the rule by which they are
    /// hashed, and for conversations that were imported. Gives how many places it has.
    ///
    /// Reads all paths. What is there of the same rule stays. What was redacted cannot be hashed again,
    /// neither can the copy of a cut answer that a client has: they cost a new conversation if they are
    /// missing. Does nothing where the store has no index.
    ///
    /// # Errors
    /// `NotFound`, or the store's.
    pub async fn rebuild_paths(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<usize, EngineError> {
        let record = self.record(owner, id).await?;
        let Some(index) = self.store().paths() else {
            return Ok(0);
        };
        let keys = Keys::of_conversation(&record);
        let chat = Conversation::new(self.clone(), owner.clone(), id.clone(), record.active);
        let mut marks = BTreeSet::new();
        for branch in chat.refs().await?.branches {
            let Some(head) = branch.head else { continue };
            let path = chat.path(ReadRequest::whole(At::Node(head))).await?;
            mark(&chat, &keys, &path, &mut marks).await?;
        }
        let marks: Vec<PathMark> = marks.into_iter().collect();
        let count = marks.len();
        let most = self.store().limits().path_hashes;
        // The first removes what is of other rules, be it that nothing follows.
        let (first, rest) = marks.split_at(count.min(most));
        for part in std::iter::once(first).chain(rest.chunks(most.max(1))) {
            let put = index.put_paths(owner, id, CHAIN_VERSION, part.to_vec());
            put.await?;
        }
        Ok(count)
    }
}

/// Adds the marks of a path.
async fn mark(
    chat: &Conversation,
    keys: &Keys,
    path: &Path,
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
    let answers = answers(path);
    let first = answers.first().map(|answer| answer.last);
    let mut add = |hash: PathHash, place: usize| {
        let node = path.nodes.get(place);
        marks.extend(node.map(|node| PathMark {
            version: CHAIN_VERSION,
            hash,
            node: node.id,
        }));
    };
    let standing = |place: usize| match first.is_some_and(|first| first <= place) {
        true => Standing::Answered,
        false => Standing::Said,
    };
    for link in Chain::default().extend(items.iter().copied()) {
        let Some(place) = shown.get(link.items - 1).copied() else {
            continue;
        };
        // An answer is found at its last node, be that one passed over.
        let of = answers
            .iter()
            .find(|answer| (answer.first..=answer.last).contains(&place));
        let place = of.map_or(place, |answer| answer.last);
        add(keys.path(standing(place), link.hash), place);
    }
    for answer in &answers {
        if answer.cut || answer.open {
            let up_to = |end: usize| {
                let said = shown.iter().zip(&items);
                let said = said.take_while(|(place, _)| **place < end);
                let mut chain = Chain::default();
                said.for_each(|(_, item)| chain.push(item));
                chain.hash()
            };
            let asked = up_to(answer.first);
            let standing = match answer.cut && first == Some(answer.last) {
                true => Standing::Cut,
                false => Standing::Answered,
            };
            if answer.cut || asked == up_to(answer.last + 1) {
                add(keys.path(standing, asked), answer.last);
            }
        }
        for (response, last) in &answer.responses {
            let (store, owner, id) = (chat.store(), chat.owner(), chat.id());
            let kept = match store.response(owner, id, *response).await {
                Ok(record) => Call::read(&record.inputs),
                Err(StoreError::NotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            if let Some(name) = kept.and_then(|call| call.response) {
                add(keys.response(&name), *last);
            }
        }
    }
    Ok(())
}

/// The nodes of an answer, in several parts where calls were answered on the way.
struct Answer {
    /// The parts, and the last node of each.
    responses: Vec<(ResponseId, usize)>,
    first: usize,
    last: usize,
    cut: bool,
    /// Whether it ends with the output of a call that no client saw.
    open: bool,
}

fn answers(path: &Path) -> Vec<Answer> {
    let mut answers: Vec<Answer> = Vec::new();
    for (place, (node, item)) in path.nodes.iter().zip(&path.items).enumerate() {
        let next = |answer: &&mut Answer| answer.last + 1 == place;
        let answer = answers.last_mut().filter(next);
        let Some(response) = node.response else {
            let is_output = node.kind == NodeKind::FunctionCallOutput;
            // Behind the output of such a call stands what is nobody's: a compaction, say.
            let is_own = |answer: &&mut Answer| !node.audience.user && (is_output || answer.open);
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
        let cut = is_cut(&item.item);
        match answer {
            Some(answer) if answer.open || answer.is_of(response) => {
                answer.responses.retain(|(known, _)| *known != response);
                answer.responses.push((response, place));
                answer.last = place;
                answer.cut |= cut;
                answer.open = false;
            }
            _ => answers.push(Answer {
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

impl Answer {
    fn is_of(&self, response: ResponseId) -> bool {
        self.responses.iter().any(|(known, _)| *known == response)
    }
}
