//! Several rounds as one answer: what the formats' merging shares.

use std::collections::BTreeMap;

use contexture_ir::Fields;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::proxy::RequestMember;
use crate::proxy::json_edit::set_member;

/// Reports whether a request asks for a single answer, by the members of all providers: compatible hosts take members of
/// others too.
pub(crate) fn is_single_answer(member: RequestMember<'_, '_>) -> bool {
    let value = |raw: &RawValue| -> Option<Value> { serde_json::from_str(raw.get()).ok() };
    let config = member("generationConfig").or_else(|| member("generation_config"));
    let config = config.and_then(|config| Fields::parse(config.get()).ok());
    let candidates = config.as_ref().and_then(|config| {
        let count = config.get(&["candidateCount", "candidate_count"])?;
        value(count)
    });
    let is_many = |count: Option<Value>| count.and_then(|count| count.as_u64()) > Some(1);
    !is_many(member("n").and_then(value))
        && !is_many(candidates)
        && member("background").is_none_or(|background| background.get() != "true")
}

/// Joins the texts of all rounds in a member, if there are any.
pub(crate) fn join_texts<'a>(
    message: &mut Value,
    name: &str,
    texts: impl Iterator<Item = &'a Value>,
) {
    let texts: Vec<&str> = texts.filter_map(Value::as_str).collect();
    if !texts.is_empty() {
        set_member(message, name, texts.concat());
    }
}

/// Collects the elements of a list over all rounds that the client may see.
pub(crate) fn collect_elements(
    rounds: &[Value],
    list: &str,
    is_shown: impl Fn(&Value) -> bool,
) -> Value {
    let lists = rounds
        .iter()
        .filter_map(|round| round.pointer(list)?.as_array());
    lists
        .flatten()
        .filter(|element| is_shown(element))
        .cloned()
        .collect()
}

/// The client's indexes of what a streamed answer numbers anew in each round: one sequence without gaps over all rounds,
/// without the calls of server tools.
#[derive(Debug, Default)]
pub(crate) struct ClientIndexes {
    /// Elements that the client has got, over all rounds.
    sent_count: u64,
    /// The client's index of each element of this round; `None` for those it does not see.
    of_round: BTreeMap<u64, Option<u64>>,
}

impl ClientIndexes {
    /// Begins an element and returns its index for the client; `None` if the client does not see it.
    pub(crate) fn begin(&mut self, index: u64, is_shown: bool) -> Option<u64> {
        let client_index = is_shown.then_some(self.sent_count);
        self.sent_count += u64::from(is_shown);
        self.of_round.insert(index, client_index);
        client_index
    }

    /// Returns the index of an element that has begun; `None` also for one that has not.
    pub(crate) fn get(&self, index: u64) -> Option<u64> {
        self.of_round.get(&index).copied().flatten()
    }

    /// Returns the index of an element, which begins here if it is new.
    pub(crate) fn get_or_begin(
        &mut self,
        index: u64,
        is_shown: impl FnOnce() -> bool,
    ) -> Option<u64> {
        match self.of_round.get(&index) {
            Some(client_index) => *client_index,
            None => self.begin(index, is_shown()),
        }
    }

    /// Begins the next round, whose elements are numbered from 0 again.
    pub(crate) fn begin_next_round(&mut self) {
        self.of_round.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_answer_is_read_in_every_spelling() {
        for (body, expected) in [
            ("{}", true),
            (r#"{"n":1}"#, true),
            (r#"{"n":2}"#, false),
            (r#"{"background":true}"#, false),
            (r#"{"background":false,"n":null}"#, true),
            (r#"{"generationConfig":{"candidateCount":1}}"#, true),
            (r#"{"generation_config":{"candidate_count":3}}"#, false),
        ] {
            let fields = Fields::parse(body).unwrap();
            let member = |name: &str| fields.get(&[name]).filter(|raw| raw.get() != "null");
            assert_eq!(is_single_answer(&member), expected, "{body}");
        }
    }
}
