//! A JSON object whose members arrive in pieces.
//!
//! Members keep the order in which they first came; what is not grown stays the text it was. Every
//! operation costs what it adds.

use contexture_ir::{Fields, Raw, quote};
use indexmap::IndexMap;
use serde_json::value::RawValue;

use crate::json::array;

/// How deep objects are merged; deeper ones are replaced whole.
const DEPTH: usize = 8;

/// An object being put together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft(IndexMap<String, Member>);

#[derive(Clone, Debug)]
enum Member {
    Json(Raw),
    Text(String),
    List(Vec<String>),
    Object(Draft),
}

impl Draft {
    /// The members of an object; none of anything else.
    pub(crate) fn of(text: &str) -> Self {
        let mut draft = Self::default();
        draft.set_all(text, |_| true);
        draft
    }

    /// Sets the members that `wanted` names.
    pub(crate) fn set_all(&mut self, text: &str, wanted: impl Fn(&str) -> bool) {
        let fields = Fields::parse(text).unwrap_or_default();
        for (key, value) in fields.iter().filter(|(key, _)| wanted(key)) {
            self.set(key, value);
        }
    }

    pub(crate) fn set(&mut self, key: &str, value: &RawValue) {
        self.put(key, Member::Json(value.into()));
    }

    /// Sets a member unless the value says nothing and there is one already.
    pub(crate) fn fill(&mut self, key: &str, value: &RawValue) {
        if !matches!(value.get(), "null" | "\"\"") || !self.0.contains_key(key) {
            self.set(key, value);
        }
    }

    pub(crate) fn set_raw(&mut self, key: &str, value: Raw) {
        self.put(key, Member::Json(value));
    }

    pub(crate) fn set_string(&mut self, key: &str, text: &str) {
        self.put(key, Member::Text(text.to_owned()));
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// A member that is still the JSON it came as.
    pub(crate) fn raw(&self, key: &str) -> Option<&Raw> {
        match self.0.get(key)? {
            Member::Json(raw) => Some(raw),
            _ => None,
        }
    }

    /// A member that was made an object.
    pub(crate) fn inner(&self, key: &str) -> Option<&Self> {
        match self.0.get(key)? {
            Member::Object(object) => Some(object),
            _ => None,
        }
    }

    /// A string member.
    pub(crate) fn string(&self, key: &str) -> Option<String> {
        match self.0.get(key)? {
            Member::Json(raw) => raw.as_string(),
            Member::Text(text) => Some(text.clone()),
            Member::List(_) | Member::Object(_) => None,
        }
    }

    /// Adds to a string member; whatever else stood there gives way.
    pub(crate) fn append(&mut self, key: &str, more: &str) {
        if let Member::Text(text) = self.grown(key, |old| {
            Member::Text(old.and_then(Raw::as_string).unwrap_or_default())
        }) {
            text.push_str(more);
        } else {
            self.set_string(key, more);
        }
    }

    /// Completes a string member to `whole` and returns what was missing; a member that says something
    /// else is replaced.
    pub(crate) fn complete(&mut self, key: &str, whole: &str) -> String {
        let now = self.string(key).unwrap_or_default();
        let missing = whole.strip_prefix(now.as_str()).unwrap_or_default();
        self.set_string(key, whole);
        missing.to_owned()
    }

    /// Adds an element to an array member.
    pub(crate) fn push(&mut self, key: &str, json: &str) {
        let list = self.grown(key, |old| {
            let old: Vec<&RawValue> = old.and_then(|old| old.to().ok()).unwrap_or_default();
            Member::List(old.iter().map(|value| value.get().to_owned()).collect())
        });
        if let Member::List(list) = list {
            list.push(json.to_owned());
        }
    }

    /// Edits a member that is an object; it is made one if it is not.
    pub(crate) fn object(&mut self, key: &str, edit: impl FnOnce(&mut Self)) {
        let entry = self.0.entry(key.to_owned());
        let member = entry.or_insert_with(|| Member::Json(Raw::null()));
        if let Member::Json(raw) = member {
            *member = Member::Object(Self::of(raw.get()));
        }
        if !matches!(member, Member::Object(_)) {
            *member = Member::Object(Self::default());
        }
        if let Member::Object(object) = member {
            edit(object);
        }
    }

    /// Merges a difference into a member as SDKs do: strings and arrays grow, objects are merged, the rest
    /// is replaced; `null` says nothing where there is something.
    pub(crate) fn merge(&mut self, key: &str, value: &RawValue) {
        self.merge_at(key, value, 0);
    }

    fn merge_at(&mut self, key: &str, value: &RawValue, depth: usize) {
        match value.get().as_bytes().first() {
            Some(b'"') if !matches!(key, "type" | "id" | "index" | "format" | "role") => {
                let text: String = serde_json::from_str(value.get()).unwrap_or_default();
                self.append(key, &text);
            }
            Some(b'[') => {
                let values: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
                if values.is_empty() && !self.has(key) {
                    self.set(key, value);
                }
                values.iter().for_each(|value| self.push(key, value.get()));
            }
            Some(b'{') if depth < DEPTH => {
                let fields = Fields::parse(value.get()).unwrap_or_default();
                self.object(key, |object| {
                    for (key, value) in fields.iter() {
                        object.merge_at(key, value, depth + 1);
                    }
                });
            }
            _ => self.fill(key, value),
        }
    }

    pub(crate) fn json(&self) -> String {
        let mut text = "{".to_owned();
        for (key, member) in &self.0 {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&quote(key));
            text.push(':');
            text.push_str(&member.json());
        }
        text.push('}');
        text
    }

    fn put(&mut self, key: &str, member: Member) {
        match self.0.get_mut(key) {
            Some(old) => *old = member,
            None => {
                self.0.insert(key.to_owned(), member);
            }
        }
    }

    /// A member made able to grow by `make`, which is given the JSON it was.
    fn grown(&mut self, key: &str, make: impl FnOnce(Option<&Raw>) -> Member) -> &mut Member {
        let entry = self.0.entry(key.to_owned());
        let member = entry.or_insert_with(|| Member::Json(Raw::null()));
        if let Member::Json(raw) = member {
            *member = make(Some(raw));
        }
        member
    }
}

impl Member {
    fn json(&self) -> String {
        match self {
            Self::Json(raw) => raw.get().to_owned(),
            Self::Text(text) => quote(text),
            Self::List(values) => array(values),
            Self::Object(draft) => draft.json(),
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
        let mut draft = Draft::of(r#"{"b":1e400,"a":"x","l":[1]}"#);
        draft.append("a", "y");
        draft.append("new", "\"");
        draft.push("l", "{}");
        draft.object("o", |inner| inner.set_string("in", "side"));
        draft.fill("b", &raw("null"));
        assert_eq!(
            draft.json(),
            r#"{"b":1e400,"a":"xy","l":[1,{}],"new":"\"","o":{"in":"side"}}"#
        );
        assert_eq!(draft.complete("a", "xyz"), "z");
        assert_eq!(draft.complete("a", "other"), "");
        assert_eq!(draft.string("a").as_deref(), Some("other"));
    }

    #[test]
    fn differences_merge() {
        let mut draft = Draft::default();
        for delta in [
            r#"{"t":"a","id":"1","l":[1],"n":1,"deep":{"t":"a"}}"#,
            r#"{"t":"b","id":"2","l":[2],"n":2,"deep":{"t":"b","x":null}}"#,
            r#"{"t":null,"l":[],"n":null,"deep":"text"}"#,
        ] {
            let fields = Fields::parse(delta).unwrap();
            fields
                .iter()
                .for_each(|(key, value)| draft.merge(key, value));
        }
        assert_eq!(
            draft.json(),
            r#"{"t":"ab","id":"2","l":[1,2],"n":2,"deep":"text"}"#
        );
    }
}
