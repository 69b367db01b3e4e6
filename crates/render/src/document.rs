//! Fragments as one document of plain data: what the JSON, YAML, TOML and TOON renderers write.
//!
//! # The normal form
//!
//! A fragment is an object with one entry, its name and its data: `{"hint": "…"}`. The list is one
//! object of all its fragments where their names differ, in order; where a name repeats, it is an
//! array of such objects. With [`DocumentShape::Tagged`] a fragment is `{"name": …, "data": …}` and the list
//! an array of these, which [`parse_fragments`](contexture_ir::parse_fragments) reads back.
//!
//! Grouped fragments are one entry, the plural of their name, whose value is the array of their data.

use std::borrow::Cow;

use contexture_ir::{Fragment, FragmentData};
use indexmap::IndexMap;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Number, Value};

use crate::pluralize::plural;
use crate::prepare::prepare_fragments;
use crate::renderer::Grouping;
use crate::renderer::RenderError;

/// Options of the document that the data formats write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataOptions {
    /// Whether fragments of one name are gathered under its plural.
    pub group_fragments: Grouping,
    /// How a fragment looks as data.
    pub shape: DocumentShape,
}

/// How a fragment looks as data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentShape {
    /// `{"hint": "…"}`: short, and what a reader expects. A fragment inside data looks like an object
    /// with one key.
    #[default]
    Keyed,
    /// `{"name": "hint", "data": "…"}`: says which objects are fragments.
    Tagged,
}

impl DataOptions {
    /// The document as JSON: exactly what JSON and YAML output parses to. TOML and TOON output parse
    /// to the same document without its nulls.
    pub fn document(&self, fragments: &[Fragment]) -> Result<Value, RenderError> {
        let prepared = prepare_fragments(fragments)?;
        serde_json::to_value(DataValue::new(&prepared, self, Nulls::Keep))
            .map_err(|source| RenderError::format("json", source))
    }
}

/// Whether nulls are part of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// Nulls are part of it.
    Keep,
    /// Items, entries and fragments of null are left out: for TOML and TOON.
    #[cfg(feature = "all-formats")]
    Drop,
}

/// A document that borrows from the fragments.
#[derive(Clone, Debug)]
pub(crate) enum DataValue<'a> {
    Null,
    Bool(bool),
    Number(&'a Number),
    Text(Cow<'a, str>),
    Array(Vec<DataValue<'a>>),
    Object(Vec<(Cow<'a, str>, DataValue<'a>)>),
}

impl<'a> DataValue<'a> {
    /// The document of prepared fragments: always an object or an array.
    pub(crate) fn new(
        fragments: &'a [Cow<'_, Fragment>],
        options: &DataOptions,
        nulls: Nulls,
    ) -> Self {
        let writer = DataValueBuilder { options, nulls };
        // Filtered here and not in `prepare`, because JSON and YAML keep nulls.
        let shown = fragments
            .iter()
            .map(AsRef::as_ref)
            .filter(|fragment: &&Fragment| {
                nulls == Nulls::Keep || !fragment.data().is_none_or(FragmentData::is_null)
            });
        let entries = if options.group_fragments.groups_top_level() {
            let groups = group_by_name(shown);
            groups
                .into_iter()
                .map(|(name, members)| writer.group_entry(name, &members))
                .collect()
        } else {
            shown
                .map(|fragment| writer.fragment_entry(fragment))
                .collect()
        };
        writer.build_list(entries)
    }
}

struct DataValueBuilder<'o> {
    options: &'o DataOptions,
    nulls: Nulls,
}

type NamedValue<'a> = (Cow<'a, str>, DataValue<'a>);

impl DataValueBuilder<'_> {
    fn build_list<'a>(&self, entries: Vec<NamedValue<'a>>) -> DataValue<'a> {
        // A map finds repeated names without caring for the order; two entries of one key would lose one of
        // them.
        let names: IndexMap<&str, ()> = entries.iter().map(|(name, _)| (&**name, ())).collect();
        if self.options.shape == DocumentShape::Keyed && names.len() == entries.len() {
            return DataValue::Object(entries);
        }
        DataValue::Array(
            entries
                .into_iter()
                .map(|entry| self.entry_object(entry))
                .collect(),
        )
    }

    fn entry_object<'a>(&self, (name, data): NamedValue<'a>) -> DataValue<'a> {
        DataValue::Object(match self.options.shape {
            DocumentShape::Keyed => vec![(name, data)],
            DocumentShape::Tagged => {
                vec![
                    (Cow::Borrowed("name"), DataValue::Text(name)),
                    (Cow::Borrowed("data"), data),
                ]
            }
        })
    }

    fn fragment_entry<'a>(&self, fragment: &'a Fragment) -> NamedValue<'a> {
        let data = fragment
            .data()
            .map_or(DataValue::Null, |data| self.fragment_data(data));
        (Cow::Borrowed(fragment.name.as_str()), data)
    }

    fn group_entry<'a>(&self, name: &'a str, members: &[&'a Fragment]) -> NamedValue<'a> {
        // The plural of an unusual name may be empty; an empty key would be worse than a repeated one.
        let title = Some(plural(name)).filter(|title| !title.is_empty());
        let members = members.iter().map(|member| self.fragment_entry(member));
        let data = match self.options.shape {
            DocumentShape::Keyed => members.map(|(_, data)| data).collect(),
            DocumentShape::Tagged => members.map(|entry| self.entry_object(entry)).collect(),
        };
        (
            title.map_or(Cow::Borrowed(name), Cow::Owned),
            DataValue::Array(data),
        )
    }

    /// The data of a fragment: the one place where an array's fragments are grouped.
    fn fragment_data<'a>(&self, data: &'a FragmentData) -> DataValue<'a> {
        match data {
            FragmentData::Array(items) if self.options.group_fragments.groups_children() => {
                self.grouped_array(items)
            }
            other => self.data_value(other),
        }
    }

    fn grouped_array<'a>(&self, items: &'a [FragmentData]) -> DataValue<'a> {
        // Grouped before the loop, since a group stands where its first member stood.
        let mut groups = group_by_name(
            items
                .iter()
                .filter(|item| self.is_included(item))
                .filter_map(as_fragment),
        );
        let mut shown = Vec::new();
        for item in items.iter().filter(|item| self.is_included(item)) {
            match item {
                FragmentData::Fragment(inner) => {
                    if let Some((name, members)) = take_group(&mut groups, &inner.name) {
                        // The first fragment of a name takes the whole group; later ones find it empty.
                        shown.push(self.entry_object(self.group_entry(name, &members)));
                    }
                }
                other => shown.push(self.data_value(other)),
            }
        }
        DataValue::Array(shown)
    }

    fn data_value<'a>(&self, data: &'a FragmentData) -> DataValue<'a> {
        match data {
            FragmentData::Null => DataValue::Null,
            FragmentData::Bool(value) => DataValue::Bool(*value),
            FragmentData::Number(number) => DataValue::Number(number),
            FragmentData::Text(text) => DataValue::Text(Cow::Borrowed(text)),
            FragmentData::Array(items) => DataValue::Array(
                items
                    .iter()
                    .filter(|item| self.is_included(item))
                    .map(|item| self.data_value(item))
                    .collect(),
            ),
            FragmentData::Object(entries) => DataValue::Object(
                entries
                    .iter()
                    .filter(|(_, value)| self.is_included(value))
                    .map(|(key, value)| (Cow::Borrowed(key.as_str()), self.data_value(value)))
                    .collect(),
            ),
            FragmentData::Fragment(inner) => self.entry_object(self.fragment_entry(inner)),
        }
    }

    fn is_included(&self, data: &FragmentData) -> bool {
        self.nulls == Nulls::Keep || !data.is_null()
    }
}

fn as_fragment(data: &FragmentData) -> Option<&Fragment> {
    match data {
        FragmentData::Fragment(inner) => Some(inner),
        _ => None,
    }
}

/// The group of this name, the first time it is asked for. Emptied rather than removed, so that many
/// groups cost no more than their members.
fn take_group<'a>(
    groups: &mut IndexMap<&'a str, Vec<&'a Fragment>>,
    name: &str,
) -> Option<(&'a str, Vec<&'a Fragment>)> {
    let (_, title, members) = groups.get_full_mut(name)?;
    let members = std::mem::take(members);
    (!members.is_empty()).then_some((*title, members))
}

fn group_by_name<'a>(
    fragments: impl Iterator<Item = &'a Fragment>,
) -> IndexMap<&'a str, Vec<&'a Fragment>> {
    let mut groups: IndexMap<&str, Vec<&Fragment>> = IndexMap::new();
    for fragment in fragments {
        groups.entry(&fragment.name).or_default().push(fragment);
    }
    groups
}

impl Serialize for DataValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                entries
                    .iter()
                    .try_for_each(|(key, value)| map.serialize_entry(&**key, value))?;
                map.end()
            }
        }
    }
}
