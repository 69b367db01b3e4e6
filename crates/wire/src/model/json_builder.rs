//! A JSON object whose members arrive in pieces.
//!
//! Members keep the order in which they first came; what is not grown stays the text it was. Every
//! operation costs what it adds.

use crate::model::json::json_array;
use contexture_ir::{Fields, Raw, quote_json};
use indexmap::IndexMap;
use serde_json::value::RawValue;

/// How deep objects are merged; deeper ones are replaced whole.
const DEPTH: usize = 8;

/// An object being put together.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonBuilder(IndexMap<String, MemberValue>);

#[derive(Clone, Debug)]
enum MemberValue {
    Json(Raw),
    Text(String),
    List(Vec<String>),
    Object(JsonBuilder),
}

impl JsonBuilder {
    /// The members of an object; none of anything else.
    pub(crate) fn from_object(text: &str) -> Self {
        let mut draft = Self::default();
        draft.set_members(text, |_| true);
        draft
    }

    /// Sets the members that `wanted` names.
    pub(crate) fn set_members(&mut self, text: &str, wanted: impl Fn(&str) -> bool) {
        let fields = Fields::parse(text).unwrap_or_default();
        for (key, value) in fields.iter().filter(|(key, _)| wanted(key)) {
            self.set(key, value);
        }
    }

    pub(crate) fn set(&mut self, key: &str, value: &RawValue) {
        self.insert_member(key, MemberValue::Json(value.into()));
    }

    /// Sets a member unless the value says nothing and there is one already.
    pub(crate) fn set_unless_empty(&mut self, key: &str, value: &RawValue) {
        if !matches!(value.get(), "null" | "\"\"") || !self.0.contains_key(key) {
            self.set(key, value);
        }
    }

    pub(crate) fn set_raw(&mut self, key: &str, value: Raw) {
        self.insert_member(key, MemberValue::Json(value));
    }

    pub(crate) fn set_string(&mut self, key: &str, text: &str) {
        self.insert_member(key, MemberValue::Text(text.to_owned()));
    }

    pub(crate) fn contains_key(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// A member that is still the JSON it came as.
    pub(crate) fn get_raw(&self, key: &str) -> Option<&Raw> {
        match self.0.get(key)? {
            MemberValue::Json(raw) => Some(raw),
            _ => None,
        }
    }

    /// A member that was made an object.
    pub(crate) fn get_object(&self, key: &str) -> Option<&Self> {
        match self.0.get(key)? {
            MemberValue::Object(object) => Some(object),
            _ => None,
        }
    }

    /// A string member.
    pub(crate) fn get_string(&self, key: &str) -> Option<String> {
        match self.0.get(key)? {
            MemberValue::Json(raw) => raw.as_string(),
            MemberValue::Text(text) => Some(text.clone()),
            MemberValue::List(_) | MemberValue::Object(_) => None,
        }
    }

    /// Adds to a string member; whatever else stood there gives way.
    pub(crate) fn append_text(&mut self, key: &str, more: &str) {
        if let MemberValue::Text(text) = self.growable_member(key, |old| {
            MemberValue::Text(old.and_then(Raw::as_string).unwrap_or_default())
        }) {
            text.push_str(more);
        } else {
            self.set_string(key, more);
        }
    }

    /// Completes a string member to `whole` and returns what was missing; a member that says something
    /// else is replaced.
    pub(crate) fn complete_text(&mut self, key: &str, whole: &str) -> String {
        let now = self.get_string(key).unwrap_or_default();
        // Some hosts send no differences but the text so far; what is new is the rest of it.
        let missing = whole.strip_prefix(now.as_str()).unwrap_or_default();
        self.set_string(key, whole);
        missing.to_owned()
    }

    /// Adds an element to an array member.
    pub(crate) fn push_element(&mut self, key: &str, json: &str) {
        let list = self.growable_member(key, |old| {
            let old: Vec<&RawValue> = old.and_then(|old| old.parse_as().ok()).unwrap_or_default();
            MemberValue::List(old.iter().map(|value| value.get().to_owned()).collect())
        });
        if let MemberValue::List(list) = list {
            list.push(json.to_owned());
        }
    }

    /// Edits a member that is an object; it is made one if it is not.
    pub(crate) fn edit_object(&mut self, key: &str, edit: impl FnOnce(&mut Self)) {
        let entry = self.0.entry(key.to_owned());
        let member = entry.or_insert_with(|| MemberValue::Json(Raw::null()));
        if let MemberValue::Json(raw) = member {
            // Parsed only when it grows; a member that never does keeps its text.
            *member = MemberValue::Object(Self::from_object(raw.get()));
        }
        if !matches!(member, MemberValue::Object(_)) {
            *member = MemberValue::Object(Self::default());
        }
        if let MemberValue::Object(object) = member {
            edit(object);
        }
    }

    /// Merges a difference into a member as SDKs do: strings and arrays grow, objects are merged, the rest
    /// is replaced; `null` says nothing where there is something.
    pub(crate) fn merge_delta(&mut self, key: &str, value: &RawValue) {
        self.merge_delta_at_depth(key, value, 0);
    }

    fn merge_delta_at_depth(&mut self, key: &str, value: &RawValue, depth: usize) {
        match value.get().as_bytes().first() {
            // Identifiers and types are repeated whole in every difference; only text grows.
            Some(b'"') if !matches!(key, "type" | "id" | "index" | "format" | "role") => {
                let text: String = serde_json::from_str(value.get()).unwrap_or_default();
                self.append_text(key, &text);
            }
            Some(b'[') => {
                let values: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
                // An empty array is still a member; without this it would be lost.
                if values.is_empty() && !self.contains_key(key) {
                    self.set(key, value);
                }
                values
                    .iter()
                    .for_each(|value| self.push_element(key, value.get()));
            }
            // Bounded, because the depth comes from the network.
            Some(b'{') if depth < DEPTH => {
                let fields = Fields::parse(value.get()).unwrap_or_default();
                self.edit_object(key, |object| {
                    for (key, value) in fields.iter() {
                        object.merge_delta_at_depth(key, value, depth + 1);
                    }
                });
            }
            // Numbers, booleans and `null`: the newest value counts, and `null` says nothing.
            _ => self.set_unless_empty(key, value),
        }
    }

    pub(crate) fn to_json(&self) -> String {
        let mut text = "{".to_owned();
        for (key, member) in &self.0 {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&quote_json(key));
            text.push(':');
            text.push_str(&member.to_json());
        }
        text.push('}');
        text
    }

    fn insert_member(&mut self, key: &str, member: MemberValue) {
        match self.0.get_mut(key) {
            Some(old) => *old = member,
            None => {
                self.0.insert(key.to_owned(), member);
            }
        }
    }

    /// A member made able to grow by `make`, which is given the JSON it was.
    fn growable_member(
        &mut self,
        key: &str,
        make: impl FnOnce(Option<&Raw>) -> MemberValue,
    ) -> &mut MemberValue {
        let entry = self.0.entry(key.to_owned());
        let member = entry.or_insert_with(|| MemberValue::Json(Raw::null()));
        if let MemberValue::Json(raw) = member {
            *member = make(Some(raw));
        }
        member
    }
}

impl MemberValue {
    fn to_json(&self) -> String {
        match self {
            Self::Json(raw) => raw.get().to_owned(),
            Self::Text(text) => quote_json(text),
            Self::List(values) => json_array(values),
            Self::Object(draft) => draft.to_json(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn members_grow_in_the_order_they_came() {
        let mut draft = JsonBuilder::from_object(r#"{"b":1e400,"a":"x","l":[1]}"#);
        draft.append_text("a", "y");
        draft.append_text("new", "\"");
        draft.push_element("l", "{}");
        draft.edit_object("o", |inner| inner.set_string("in", "side"));
        draft.set_unless_empty("b", &raw("null"));
        assert_eq!(
            draft.to_json(),
            r#"{"b":1e400,"a":"xy","l":[1,{}],"new":"\"","o":{"in":"side"}}"#
        );
        assert_eq!(draft.complete_text("a", "xyz"), "z");
        assert_eq!(draft.complete_text("a", "other"), "");
        assert_eq!(draft.get_string("a").as_deref(), Some("other"));
    }

    #[test]
    fn differences_merge() {
        let mut draft = JsonBuilder::default();
        for delta in [
            r#"{"t":"a","id":"1","l":[1],"n":1,"deep":{"t":"a"}}"#,
            r#"{"t":"b","id":"2","l":[2],"n":2,"deep":{"t":"b","x":null}}"#,
            r#"{"t":null,"l":[],"n":null,"deep":"text"}"#,
        ] {
            let fields = Fields::parse(delta).unwrap();
            fields
                .iter()
                .for_each(|(key, value)| draft.merge_delta(key, value));
        }
        assert_eq!(
            draft.to_json(),
            r#"{"t":"ab","id":"2","l":[1,2],"n":2,"deep":"text"}"#
        );
    }
}
