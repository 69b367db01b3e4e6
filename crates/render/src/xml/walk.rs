//! Which elements fragments become, and in which order. Writes nothing itself: a [`Sink`] does.

use std::borrow::Cow;
use std::rc::Rc;

use contexture_ir::{Fragment, FragmentData};
use indexmap::IndexMap;

use crate::number::write_number;
use crate::renderer::Grouping;
use crate::words::{plural, singular};

/// Takes elements in document order.
pub(super) trait Sink {
    /// Opens an element at a depth (0: top level).
    fn open(&mut self, name: &str, depth: usize);
    /// Closes the innermost open element. One that holds nothing was never there.
    fn close(&mut self, name: &str, depth: usize);
    /// An element that holds a text, which may be empty.
    fn leaf(&mut self, name: &str, text: &str, depth: usize);
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
    pub(super) fn list(&mut self, fragments: &[Cow<'_, Fragment>]) {
        if !self.grouping.of_list() {
            return fragments.iter().for_each(|fragment| self.top(fragment));
        }
        let mut groups: IndexMap<&str, Vec<&Fragment>> = IndexMap::new();
        for fragment in fragments {
            groups.entry(&fragment.name).or_default().push(fragment);
        }
        for (name, members) in groups {
            self.group(name, &members, 0);
        }
    }

    /// A fragment of the list. Here, and only here, an array of one item gives way to the item.
    fn top(&mut self, fragment: &Fragment) {
        let name = &fragment.name;
        let Some(data) = fragment.data() else { return };
        let lone = match data {
            FragmentData::Array(items) => {
                let mut items = items.iter().filter(|item| !item.is_null());
                items
                    .next()
                    .filter(|item| items.next().is_none() && !is_array(item))
            }
            _ => None,
        };
        match lone.unwrap_or(data) {
            FragmentData::Fragment(inner) => self.under(name, inner),
            other => self.value(name, other, self.grouping.of_children(), 0),
        }
    }

    /// A top-level fragment that holds one fragment and nothing else.
    fn under(&mut self, parent: &str, child: &Fragment) {
        self.sink.open(parent, 0);
        match child.data() {
            Some(FragmentData::Array(items))
                if items
                    .iter()
                    .any(|item| !item.is_null() && !item.is_fragment()) =>
            {
                self.items(&child.name, items, self.grouping.of_children(), 1);
            }
            _ => self.fragment(child, 1),
        }
        self.sink.close(parent, 0);
    }

    fn fragment(&mut self, fragment: &Fragment, depth: usize) {
        if let Some(data) = fragment.data() {
            self.value(&fragment.name, data, self.grouping.of_children(), depth);
        }
    }

    /// A value as one element of this name.
    fn value(&mut self, name: &str, data: &FragmentData, grouped: bool, depth: usize) {
        match data {
            FragmentData::Null => {}
            FragmentData::Text(text) => self.sink.leaf(name, text, depth),
            FragmentData::Bool(value) => {
                self.sink
                    .leaf(name, if *value { "true" } else { "false" }, depth);
            }
            FragmentData::Number(number) => {
                self.number.clear();
                write_number(&mut self.number, number);
                self.sink.leaf(name, &self.number, depth);
            }
            FragmentData::Array(items) => {
                self.sink.open(name, depth);
                if items.iter().all(FragmentData::is_fragment) {
                    // They have names of their own, and a singular costs more than a leaf.
                    self.items(name, items, grouped, depth + 1);
                } else {
                    let item_name = self.singular(name);
                    self.items(&item_name, items, grouped, depth + 1);
                }
                self.sink.close(name, depth);
            }
            FragmentData::Object(entries) => {
                self.sink.open(name, depth);
                for (key, value) in entries {
                    match value {
                        FragmentData::Fragment(inner) => self.fragment(inner, depth + 1),
                        other => self.value(key, other, false, depth + 1),
                    }
                }
                self.sink.close(name, depth);
            }
            FragmentData::Fragment(inner) => {
                self.sink.open(name, depth);
                self.fragment(inner, depth + 1);
                self.sink.close(name, depth);
            }
        }
    }

    /// The items of an array, each under the item's name; fragments under their own.
    fn items(&mut self, name: &str, items: &[FragmentData], grouped: bool, depth: usize) {
        let mut groups = if grouped {
            groups(items)
        } else {
            IndexMap::new()
        };
        for item in items.iter().filter(|item| !item.is_null()) {
            match item {
                FragmentData::Fragment(inner) if grouped => {
                    let members = groups.get_mut(inner.name.as_str()).map(std::mem::take);
                    if let Some(members) = members.filter(|members| !members.is_empty()) {
                        self.group(&inner.name, &members, depth);
                    }
                }
                FragmentData::Fragment(inner) => self.fragment(inner, depth),
                FragmentData::Array(inner) if is_flat(inner) => {
                    let mut text = String::new();
                    self.join(&mut text, inner);
                    self.sink.leaf(name, &text, depth);
                }
                other => self.value(name, other, false, depth),
            }
        }
    }

    fn group(&mut self, name: &str, members: &[&Fragment], depth: usize) {
        let title = Some(plural(name)).filter(|title| !title.is_empty());
        let title = title.as_deref().unwrap_or(name);
        self.sink.open(title, depth);
        for member in members {
            self.fragment(member, depth + 1);
        }
        self.sink.close(title, depth);
    }

    /// The leaves of nested arrays, joined by commas.
    fn join(&mut self, text: &mut String, items: &[FragmentData]) {
        for (index, item) in items.iter().filter(|item| !item.is_null()).enumerate() {
            if index > 0 {
                text.push(',');
            }
            match item {
                FragmentData::Array(inner) => self.join(text, inner),
                FragmentData::Text(leaf) => text.push_str(leaf),
                FragmentData::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
                FragmentData::Number(number) => write_number(text, number),
                _ => {}
            }
        }
    }

    /// The name of an array's items. A name without a singular (`s`) serves itself.
    fn singular(&mut self, name: &str) -> Rc<str> {
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

fn groups(items: &[FragmentData]) -> IndexMap<&str, Vec<&Fragment>> {
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
