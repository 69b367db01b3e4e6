//! JSON kept as it was written.
//!
//! What we do not understand we do not parse: [`Raw`] is one value's text, [`Fields`] an object cut
//! into its members, [`Extra`] the members that no typed field claimed. A parsed `Value` would
//! collapse repeated keys and round large numbers.
//!
//! Not here: reading a value's meaning ([`crate::hash::canonical_json`]).
// A `serde_json::Value` would collapse repeated keys and round large numbers: histories would change by being
// stored.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::error::Error;

/// One JSON value, byte for byte as it was written. Equality is equality of the text.
#[derive(Clone)]
pub struct Raw(Box<RawValue>);

impl Raw {
    /// Checks that `text` is one JSON value and keeps it.
    pub fn parse(text: impl Into<String>) -> Result<Self, Error> {
        RawValue::from_string(text.into())
            .map(Self)
            .map_err(Error::invalid_json)
    }

    /// The text of any serialisable value.
    pub fn from_value(value: &impl Serialize) -> Result<Self, Error> {
        serde_json::value::to_raw_value(value)
            .map(Self)
            .map_err(Error::invalid_json)
    }

    /// A JSON string holding `text`.
    #[must_use]
    pub fn string(text: &str) -> Self {
        // A quoted string is always JSON; `null` stands in so that this cannot panic.
        Self::parse(quote_json(text)).unwrap_or_else(|_| Self::null())
    }

    /// The value `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// The JSON as text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Parses the text as `T`; fails with the parser's account.
    pub fn parse_as<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_str(self.get()).map_err(Error::invalid_json)
    }

    /// The value's members, if it is an object.
    #[must_use]
    pub fn fields(&self) -> Option<Fields<'_>> {
        Fields::parse(self.get()).ok()
    }

    /// The string inside, if the value is a string.
    #[must_use]
    pub fn as_string(&self) -> Option<String> {
        // Looks at the first byte, so that large objects are not parsed only to be refused.
        if self.get().starts_with('"') {
            self.parse_as().ok()
        } else {
            None
        }
    }
}

/// Returns where a slice stands in the text that it was cut from, in bytes; `None` if it was cut from another.
///
/// Parsers that do not copy ([`Fields`](crate::Fields), `RawValue`) give slices, so their places need not be carried along.
///
/// ```
/// use contexture_ir::slice_range;
///
/// let text = "ab ab";
/// assert_eq!(slice_range(text, &text[3..]), Some(3..5));
/// ```
#[must_use]
pub fn slice_range(text: &str, slice: &str) -> Option<Range<usize>> {
    // Addresses only: a search could find an equal text that stands before it.
    let start = slice.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let range = start..start.checked_add(slice.len())?;
    text.get(range.clone()).map(|_| range)
}

/// `text` as a JSON string, quotes included.
#[must_use]
pub fn quote_json(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Raw {}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl From<&RawValue> for Raw {
    fn from(value: &RawValue) -> Self {
        Self(value.to_owned())
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

/// An object cut into its members, in order, repeated keys included; the values stay text.
///
/// Of a member that is written twice the last one counts, as for most readers of JSON; what was written before stays data
/// ([`REPEATED`]). One member in two spellings is an error, because readers differ in which of them they know.
#[derive(Debug, Default)]
pub struct Fields<'a> {
    members: Vec<Member<'a>>,
    /// Earlier members of the names that were taken.
    repeated: Vec<Member<'a>>,
}

type Member<'a> = (Cow<'a, str>, &'a RawValue);

/// A member that was found by one of its names.
struct FoundMember<'a> {
    index: usize,
    value: &'a RawValue,
    /// Whether no other member has one of the names.
    is_only: bool,
}

impl<'a> Fields<'a> {
    /// Cuts `text`; fails if it is not a JSON object.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        match serde_json::from_str(text) {
            Ok(fields) => Ok(fields),
            // serde reports a wrong type as a data error: valid JSON, but no object. Anything else is not JSON
            // at all.
            Err(error) if error.is_data() => Err(Error::unexpected_value("an object", text)),
            Err(error) => Err(Error::invalid_json(error)),
        }
    }

    /// Removes and returns the member that has one of `names`. A member under two of the names is an error: its meaning
    /// would depend on the reader. After an error no member is removed; the same holds for the other `take_` methods.
    pub fn take_field(&mut self, names: &[&str]) -> Result<Option<&'a RawValue>, Error> {
        let found = self.find_member(names)?;
        Ok(found.map(|found| self.remove_member(&found, names)))
    }

    /// Finds the member with one of the names: the last one of its spelling. `null` in one spelling gives way to a value
    /// in another.
    fn find_member(&self, names: &[&str]) -> Result<Option<FoundMember<'a>>, Error> {
        // A scan and not a map. Objects have few members, and order and repetition must be kept.
        let members = self.members.iter().enumerate();
        let mut members = members.filter(|(_, (key, _))| names.contains(&key.as_ref()));
        let Some(mut last) = members.next() else {
            return Ok(None);
        };
        let mut is_only = true;
        for member in members {
            is_only = false;
            let ((_, (before, old)), (_, (key, value))) = (last, member);
            if before == key || is_null(old) {
                last = member;
            } else if !is_null(value) {
                return Err(Error::Duplicate {
                    path: String::new(),
                    field: key.to_string(),
                });
            }
        }
        let (index, (_, value)) = last;
        Ok(Some(FoundMember {
            index,
            value,
            is_only,
        }))
    }

    /// Removes a member with all others of its names, which are kept apart. A `null` in another spelling says nothing.
    fn remove_member(&mut self, found: &FoundMember<'a>, names: &[&str]) -> &'a RawValue {
        let (name, value) = self.members.remove(found.index);
        if !found.is_only {
            let others = self
                .members
                .extract_if(.., |(key, _)| names.contains(&key.as_ref()));
            let data = others.filter(|(key, value)| *key == name || !is_null(value));
            self.repeated.extend(data);
        }
        value
    }

    /// As [`Fields::take_field`], but `null` counts as absent and stays among the rest, so that it is
    /// written again as it came.
    pub fn take_present(&mut self, names: &[&str]) -> Result<Option<&'a RawValue>, Error> {
        let found = self.find_present(names)?;
        Ok(found.map(|found| self.remove_member(&found, names)))
    }

    /// As [`Fields::find_member`]; `None` for `null`, which stays because a provider that writes `"id": null` must get it
    /// back. In another spelling than the first it goes: no provider knows that name.
    fn find_present(&mut self, names: &[&str]) -> Result<Option<FoundMember<'a>>, Error> {
        let found = self.find_member(names)?;
        if !found.as_ref().is_some_and(|found| is_null(found.value)) {
            return Ok(found);
        }
        if let [_, others @ ..] = names
            && !others.is_empty()
        {
            self.members
                .retain(|(key, _)| !others.contains(&key.as_ref()));
        }
        Ok(None)
    }

    /// The first of `names` that is present, left where it is; of a repeated one the last.
    #[must_use]
    pub fn get(&self, names: &[&str]) -> Option<&'a RawValue> {
        let mut members = self.members.iter();
        let (name, _) = members.find(|(key, _)| names.contains(&key.as_ref()))?;
        let mut same = self.members.iter().rev();
        same.find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// A string field; absent and `null` give `None`.
    pub fn take_string(&mut self, names: &[&'static str]) -> Result<Option<String>, Error> {
        self.take_as(names, "a string")
    }

    /// A string field that must be there.
    pub fn need_string(&mut self, names: &[&'static str]) -> Result<String, Error> {
        self.take_string(names)?.ok_or(Error::Missing {
            path: String::new(),
            field: first_name(names),
        })
    }

    /// A field of any type; absent and `null` give `None`, another type is an error.
    pub fn take_as<T: Deserialize<'a>>(
        &mut self,
        names: &[&'static str],
        expected: &'static str,
    ) -> Result<Option<T>, Error> {
        let Some(found) = self.find_present(names)? else {
            return Ok(None);
        };
        let text = found.value.get();
        match serde_json::from_str(text) {
            Ok(parsed) => {
                // Only now: callers that go on without a value they cannot read write the rest as it came.
                self.remove_member(&found, names);
                Ok(Some(parsed))
            }
            // Legal JSON that no number type holds is data, not a fault.
            Err(_) if is_beyond_f64(text) => Ok(None),
            Err(_) => Err(Error::unexpected_value(expected, text).at_segment(first_name(names))),
        }
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.members
            .iter()
            .map(|(key, value)| (key.as_ref(), *value))
    }

    /// Whether no member is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.repeated.is_empty()
    }

    /// The members that were not taken, kept; earlier ones of those that were, under [`REPEATED`].
    #[must_use]
    pub fn into_extra(self) -> Extra {
        let mut extra = Extra::from_members(self.members);
        if !self.repeated.is_empty()
            && let Ok(repeated) = Raw::from_value(&Extra::from_members(self.repeated))
        {
            extra.0.push((REPEATED.into(), repeated));
        }
        extra
    }
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// Whether a JSON text is a number that is too large for any number type.
#[must_use]
pub fn is_beyond_f64(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && serde_json::from_str::<f64>(text).is_err()
}

fn first_name(names: &[&'static str]) -> &'static str {
    names.first().copied().unwrap_or_default()
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Vec<Member<'de>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                // Six is about what an item has; most documents never grow the list.
                let mut members = Vec::with_capacity(map.size_hint().unwrap_or(6));
                while let Some(FieldName(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(members)
            }
        }
        let members = deserializer.deserialize_map(Members)?;
        Ok(Self {
            members,
            repeated: Vec::new(),
        })
    }
}

/// A key that borrows from the input unless it holds an escape.
// Keys are borrowed in the usual case: cutting an object then allocates once, for the list.
struct FieldName<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for FieldName<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Text).map(Self)
    }
}

/// The key under which [`Extra`] keeps what only one wire format understands.
// Named like an extension type, so that it cannot collide with a field of the specification.
const WIRE: &str = "ctx:wire";

/// The key under which [`Extra`] keeps the earlier values of members that were written twice: the last one counts, and no
/// provider is sent the others.
pub const REPEATED: &str = "ctx:repeated";

/// The key under which an item keeps the bytes of an answer that are not UTF-8, as `{"base64": "…"}`: in its texts U+FFFD
/// stands for them. No provider is sent it.
pub const DAMAGED: &str = "ctx:damaged";

/// Members that no typed field claimed, verbatim and in order.
///
/// One member is ours: `ctx:wire` holds, by format name, the fields of one wire format that have no
/// counterpart in an item (a cache mark, a thought signature, a shape that another writer may choose
/// differently), so that lowering to the same format gives back what came. Other formats do not see
/// them and say so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra(Vec<(Box<str>, Raw)>);

impl Extra {
    /// A list of no fields.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members in order, `ctx:wire` included.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// The members in order without `ctx:wire`: the fields of the item's own format.
    pub fn own_members(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.iter().filter(|(key, _)| *key != WIRE)
    }

    /// The member of that name; of several the last.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Raw> {
        let mut members = self.0.iter().rev();
        members
            .find(|(name, _)| &**name == key)
            .map(|(_, value)| value)
    }

    /// Sets a member, replacing one of that name.
    pub fn set(&mut self, key: &str, value: Raw) {
        // Replaced in place: the order of members is what a reader saw, and what hashes of the text depend on.
        match self.0.iter_mut().rev().find(|(name, _)| &**name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.into(), value)),
        }
    }

    /// Removes every member of that name and returns the last.
    pub fn remove(&mut self, key: &str) -> Option<Raw> {
        let found = self.get(key).cloned();
        self.0.retain(|(name, _)| &**name != key);
        found
    }

    /// Adds members behind those that are there.
    pub fn extend(&mut self, other: Extra) {
        self.0.extend(other.0);
    }

    /// The fields kept for one wire format; empty if there are none.
    #[must_use]
    pub fn wire_fields(&self, format: &str) -> Extra {
        self.wire_fields_by_format()
            .into_iter()
            .find(|(name, _)| name == format)
            .map(|(_, e)| e)
            .unwrap_or_default()
    }

    /// The fields kept for wire formats, by format name.
    #[must_use]
    pub fn wire_fields_by_format(&self) -> Vec<(String, Extra)> {
        let Some(fields) = self.get(WIRE).and_then(Raw::fields) else {
            return Vec::new();
        };
        fields
            // A member that is no object is skipped: another version may keep something else there.
            .iter()
            .filter_map(|(name, value)| {
                Some((
                    name.to_owned(),
                    Fields::parse(value.get()).ok()?.into_extra(),
                ))
            })
            .collect()
    }

    /// Keeps `fields` for one wire format, replacing what was kept for it; nothing if empty.
    pub fn set_wire_fields(&mut self, format: &str, fields: Extra) {
        let mut wires = self.wire_fields_by_format();
        wires.retain(|(name, _)| name != format);
        // Empty fields remove the entry, so that an item without extras stays equal to one that never had any.
        if !fields.is_empty() {
            wires.push((format.to_owned(), fields));
        }
        let all = Extra(
            wires
                .into_iter()
                .filter_map(|(k, v)| Some((k.into(), Raw::from_value(&v).ok()?)))
                .collect(),
        );
        if all.is_empty() {
            self.remove(WIRE);
        } else if let Ok(raw) = Raw::from_value(&all) {
            self.set(WIRE, raw);
        }
    }

    fn from_members(members: Vec<Member<'_>>) -> Self {
        let members = members.into_iter();
        Self(
            members
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }

    pub(crate) fn write_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        // Members keep their order; equal items must be equal bytes.
        self.0
            .iter()
            .try_for_each(|(key, value)| map.serialize_entry(key, value))
    }
}

impl FromIterator<(String, Raw)> for Extra {
    fn from_iter<I: IntoIterator<Item = (String, Raw)>>(members: I) -> Self {
        Self(
            members
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.write_members(&mut map)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let fields = Fields::parse(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(fields.into_extra())
    }
}
