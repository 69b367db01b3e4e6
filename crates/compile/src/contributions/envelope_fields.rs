//! The members of a request around its array of messages, to be changed one by one.

use contexture_ir::{Fields, quote_json};

/// A member: its name and its JSON.
pub(crate) type Member = (String, String);

/// What stands before the array of messages and behind it.
#[derive(Debug)]
pub(crate) struct EnvelopeFields {
    pub(crate) front: Vec<Member>,
    /// The name of the array.
    list: Option<String>,
    pub(crate) back: Vec<Member>,
}

impl EnvelopeFields {
    /// Reads both: `before` ends with the array's bracket, `after` begins with the other. Nothing where
    /// they are no object around an array.
    pub(crate) fn parse_envelope(before: &str, after: &str) -> Option<Self> {
        // Closed provisionally so that both halves parse as objects of their own; the array between
        // them, which is most of the payload, is not touched.
        let mut front = parse_members(&format!("{before}]}}"))?;
        let rest = after.trim_start_matches([']', ',']);
        let back = parse_members(&format!("{{{rest}"))?;
        // The last member before the bracket is the array itself.
        let list = front.pop().map(|(name, _)| name);
        Some(Self { front, list, back })
    }

    /// The text before the array, its bracket included.
    pub(crate) fn opening_text(&self) -> String {
        let mut before = String::from("{");
        for member in &self.front {
            push_member(&mut before, member);
            before.push(',');
        }
        if let Some(name) = &self.list {
            before.push_str(&quote_json(name));
            before.push_str(":[");
        }
        before
    }

    /// The text behind the array, its bracket included.
    pub(crate) fn closing_text(&self) -> String {
        let mut after = String::from("]");
        for member in &self.back {
            after.push(',');
            push_member(&mut after, member);
        }
        after.push('}');
        after
    }

    /// Takes out the members of these names, in the order in which they stand.
    pub(crate) fn remove_members(&mut self, names: &[&str]) -> Vec<Member> {
        let named = |(name, _): &mut Member| names.contains(&name.as_str());
        let front = self.front.extract_if(.., named);
        front.chain(self.back.extract_if(.., named)).collect()
    }
}

/// Writes a member.
pub(crate) fn push_member(out: &mut String, (name, value): &Member) {
    out.push_str(&quote_json(name));
    out.push(':');
    out.push_str(value);
}

fn parse_members(object: &str) -> Option<Vec<Member>> {
    let fields = Fields::parse(object).ok()?;
    let members = fields.iter();
    let members = members.map(|(name, value)| (name.to_owned(), value.get().to_owned()));
    Some(members.collect())
}
