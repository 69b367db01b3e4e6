//! Which elements fragments become, and in which order. Writes nothing itself: a [`Sink`] does.

use std::borrow::Cow;
use std::rc::Rc;

use contexture_ir::{Fragment, FragmentData};
use indexmap::IndexMap;

use crate::pluralize::{plural, singular};
use crate::primitives::write_number;
use crate::renderer::Grouping;

/// Takes elements in document order.
pub(super) trait Sink {
    /// Opens an element at a depth (0: top level).
    fn open_element(&mut self, name: &str, depth: usize);
    /// Closes the innermost open element. One that holds nothing was never there.
    fn close_element(&mut self, name: &str, depth: usize);
    /// An element that holds a text, which may be empty.
    fn add_leaf(&mut self, name: &str, text: &str, depth: usize);
}

/// The walk over prepared fragments.
pub(super) struct Walk<'s, S> {
    sink: &'s mut S,
    grouping: Grouping,
    singulars: IndexMap<String, Rc<str>>,
    number: String,
}

impl<'s, S: Sink> Walk<'s, S> {
    pub(super) fn new(sink: &'s mut S, grouping: Grouping) -> Self {
        Self {
            sink,
            grouping,
            singulars: IndexMap::new(),
            number: String::new(),
        }
    }

    /// The whole list.
    pub(super) fn emit_list(&mut self, fragments: &[Cow<'_, Fragment>]) {
        if !self.grouping.groups_top_level() {
            return fragments
                .iter()
                .for_each(|fragment| self.emit_top_level(fragment));
        }
        let mut groups: IndexMap<&str, Vec<&Fragment>> = IndexMap::new();
        for fragment in fragments {
            groups.entry(&fragment.name).or_default().push(fragment);
        }
        for (name, members) in groups {
            self.emit_group(name, &members, 0);
        }
    }

    /// A fragment of the list. Here, and only here, an array of one item gives way to the item.
    fn emit_top_level(&mut self, fragment: &Fragment) {
        let name = &fragment.name;
        let Some(data) = fragment.data() else { return };
        // An array of one item adds no information at the top; deeper it would be confused with an object's
        // entry.
        let lone = match data {
            FragmentData::Array(items) => {
                let mut items = items.iter().filter(|item| !item.is_null());
                items
                    .next()
                    // An array within the array stays, or its items would lose their level.
                    .filter(|item| items.next().is_none() && !is_array(item))
            }
            _ => None,
        };
        match lone.unwrap_or(data) {
            FragmentData::Fragment(inner) => self.emit_lone_child(name, inner),
            other => self.emit_value(name, other, self.grouping.groups_children(), 0),
        }
    }

    /// A top-level fragment that holds one fragment and nothing else.
    fn emit_lone_child(&mut self, parent: &str, child: &Fragment) {
        self.sink.open_element(parent, 0);
        match child.data() {
            Some(FragmentData::Array(items))
                if items
                    .iter()
                    .any(|item| !item.is_null() && !item.is_fragment()) =>
            {
                self.emit_items(&child.name, items, self.grouping.groups_children(), 1);
            }
            _ => self.emit_fragment(child, 1),
        }
        self.sink.close_element(parent, 0);
    }

    fn emit_fragment(&mut self, fragment: &Fragment, depth: usize) {
        if let Some(data) = fragment.data() {
            self.emit_value(&fragment.name, data, self.grouping.groups_children(), depth);
        }
    }

    /// A value as one element of this name.
    fn emit_value(&mut self, name: &str, data: &FragmentData, grouped: bool, depth: usize) {
        match data {
            FragmentData::Null => {}
            FragmentData::Text(text) => self.sink.add_leaf(name, text, depth),
            FragmentData::Bool(value) => {
                self.sink
                    .add_leaf(name, if *value { "true" } else { "false" }, depth);
            }
            FragmentData::Number(number) => {
                // One buffer for all numbers: a table of figures would allocate for each cell.
                self.number.clear();
                write_number(&mut self.number, number);
                self.sink.add_leaf(name, &self.number, depth);
            }
            FragmentData::Array(items) => {
                self.sink.open_element(name, depth);
                if items.iter().all(FragmentData::is_fragment) {
                    // They have names of their own, and a singular costs more than a leaf.
                    self.emit_items(name, items, grouped, depth + 1);
                } else {
                    let item_name = self.singular_name(name);
                    self.emit_items(&item_name, items, grouped, depth + 1);
                }
                self.sink.close_element(name, depth);
            }
            FragmentData::Object(entries) => {
                self.sink.open_element(name, depth);
                for (key, value) in entries {
                    match value {
                        // Its own name says more than the key, which would only wrap it.
                        FragmentData::Fragment(inner) => self.emit_fragment(inner, depth + 1),
                        other => self.emit_value(key, other, false, depth + 1),
                    }
                }
                self.sink.close_element(name, depth);
            }
            FragmentData::Fragment(inner) => {
                self.sink.open_element(name, depth);
                self.emit_fragment(inner, depth + 1);
                self.sink.close_element(name, depth);
            }
        }
    }

    /// The items of an array, each under the item's name; fragments under their own.
    fn emit_items(&mut self, name: &str, items: &[FragmentData], grouped: bool, depth: usize) {
        let mut groups = if grouped {
            group_by_name(items)
        } else {
            IndexMap::new()
        };
        for item in items.iter().filter(|item| !item.is_null()) {
            match item {
                FragmentData::Fragment(inner) if grouped => {
                    let members = groups.get_mut(inner.name.as_str()).map(std::mem::take);
                    if let Some(members) = members.filter(|members| !members.is_empty()) {
                        self.emit_group(&inner.name, &members, depth);
                    }
                }
                FragmentData::Fragment(inner) => self.emit_fragment(inner, depth),
                // Rows of plain values read best as one line; a row with an object needs elements.
                FragmentData::Array(inner) if is_flat(inner) => {
                    let mut text = String::new();
                    self.join_leaves(&mut text, inner);
                    self.sink.add_leaf(name, &text, depth);
                }
                other => self.emit_value(name, other, false, depth),
            }
        }
    }

    fn emit_group(&mut self, name: &str, members: &[&Fragment], depth: usize) {
        // As in the data formats: an empty plural falls back to the name.
        let title = Some(plural(name)).filter(|title| !title.is_empty());
        let title = title.as_deref().unwrap_or(name);
        self.sink.open_element(title, depth);
        for member in members {
            self.emit_fragment(member, depth + 1);
        }
        self.sink.close_element(title, depth);
    }

    /// The leaves of nested arrays, joined by commas.
    fn join_leaves(&mut self, text: &mut String, items: &[FragmentData]) {
        for (index, item) in items.iter().filter(|item| !item.is_null()).enumerate() {
            if index > 0 {
                text.push(',');
            }
            match item {
                FragmentData::Array(inner) => self.join_leaves(text, inner),
                FragmentData::Text(leaf) => text.push_str(leaf),
                FragmentData::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
                FragmentData::Number(number) => write_number(text, number),
                _ => {}
            }
        }
    }

    /// The name of an array's items. A name without a singular (`s`) serves itself.
    fn singular_name(&mut self, name: &str) -> Rc<str> {
        // Cached, because the items of one array ask again for the same name and inflection is slow.
        if let Some(known) = self.singulars.get(name) {
            return Rc::clone(known);
        }
        let one = singular(name);
        let one: Rc<str> = if one.is_empty() {
            name.into()
        } else {
            one.into()
        };
        self.singulars.insert(name.to_owned(), Rc::clone(&one));
        one
    }
}

fn group_by_name(items: &[FragmentData]) -> IndexMap<&str, Vec<&Fragment>> {
    let mut groups: IndexMap<&str, Vec<&Fragment>> = IndexMap::new();
    for item in items {
        if let FragmentData::Fragment(inner) = item {
            groups.entry(&inner.name).or_default().push(inner);
        }
    }
    groups
}

fn is_array(data: &FragmentData) -> bool {
    matches!(data, FragmentData::Array(_))
}

/// Whether nested arrays hold nothing but leaves.
fn is_flat(items: &[FragmentData]) -> bool {
    items.iter().all(|item| match item {
        FragmentData::Array(inner) => is_flat(inner),
        other => other.is_null() || other.is_primitive(),
    })
}
