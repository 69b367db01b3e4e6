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
#[derive(Debug, Default)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

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

    /// Removes and returns the first of `names` that is present. A field written twice, or under two
    /// of the names, is an error: its meaning would depend on the reader. After an error
    /// no member is removed; the same holds for the other `take_` methods.
    pub fn take_field(&mut self, names: &[&str]) -> Result<Option<&'a RawValue>, Error> {
        let found = self.find_once(names)?;
        Ok(found.map(|(index, _)| self.0.remove(index).1))
    }

    /// Finds the only member with one of the names; returns its index and value.
    fn find_once(&self, names: &[&str]) -> Result<Option<(usize, &'a RawValue)>, Error> {
        // A scan and not a map. Objects have few members, and order and repetition must be kept.
        let mut members = self.0.iter().enumerate();
        // The camelCase and snake_case spellings of one field count as the same field here.
        let is_named = |(_, (key, _)): &(usize, &(Cow<'a, str>, _))| names.contains(&key.as_ref());
        let found = members.find(is_named);
        if let Some((_, (key, _))) = members.find(is_named) {
            return Err(Error::Duplicate {
                path: String::new(),
                field: key.to_string(),
            });
        }
        Ok(found.map(|(index, (_, value))| (index, *value)))
    }

    /// As [`Fields::take_field`], but `null` counts as absent and stays among the rest, so that it is
    /// written again as it came.
    pub fn take_present(&mut self, names: &[&str]) -> Result<Option<&'a RawValue>, Error> {
        let found = self.find_present(names)?;
        Ok(found.map(|(index, _)| self.0.remove(index).1))
    }

    /// As [`Fields::find_once`]; `None` for `null`, which stays because a provider that writes `"id": null` must get it
    /// back.
    fn find_present(&self, names: &[&str]) -> Result<Option<(usize, &'a RawValue)>, Error> {
        if self.get(names).is_some_and(|value| value.get() == "null") {
            return Ok(None);
        }
        self.find_once(names)
    }

    /// The first of `names` that is present, left where it is.
    #[must_use]
    pub fn get(&self, names: &[&str]) -> Option<&'a RawValue> {
        self.0
            .iter()
            .find(|(key, _)| names.contains(&key.as_ref()))
            .map(|(_, value)| *value)
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
        let Some((index, value)) = self.find_present(names)? else {
            return Ok(None);
        };
        let parsed = serde_json::from_str(value.get()).map_err(|_| {
            Error::unexpected_value(expected, value.get()).at_segment(first_name(names))
        })?;
        // Only now: callers that go on without a value they cannot read write the rest as it came.
        self.0.remove(index);
        Ok(Some(parsed))
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// Whether no member is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members that were not taken, kept.
    #[must_use]
    pub fn into_extra(self) -> Extra {
        Extra(
            self.0
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}

fn first_name(names: &[&'static str]) -> &'static str {
    names.first().copied().unwrap_or_default()
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

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
        deserializer.deserialize_map(Members).map(Self)
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

    /// The first member of that name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Raw> {
        self.iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// Sets a member, replacing one of that name.
    pub fn set(&mut self, key: &str, value: Raw) {
        // Replaced in place: the order of members is what a reader saw, and what hashes of the text depend on.
        match self.0.iter_mut().find(|(name, _)| &**name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.into(), value)),
        }
    }

    /// Removes every member of that name and returns the first.
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
