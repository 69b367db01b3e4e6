//! The path of a compile: its items, and by what a compile knows again the path of the one before.

use std::ops::Deref;

use contexture_ir::{ContentHash, NodeId, Origin};

use crate::input::request::PathItem;

/// How many items one hash is over.
const GROUP: usize = 64;

/// Items of a path that grows at its end.
///
/// It knows its own beginnings: a compile with the same [`Scratch`](crate::Scratch) that comes after more items were added
/// looks at those, and not at the items that an earlier compile has seen. A plain list of items gives the same payload, but
/// each of its items is looked at.
///
/// ```
/// use contexture_compile::{GrowingPath, PathItem};
/// use contexture_ir::{Item, Message, Role};
///
/// let mut path = GrowingPath::default();
/// path.push(PathItem::new(Item::from(Message::text(Role::User, "Hello"))));
/// assert_eq!(path.len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct GrowingPath {
    items: Vec<PathItem>,
    /// For each full group the hash over it and all groups before it.
    groups: Vec<ContentHash>,
}

impl GrowingPath {
    /// Adds an item at the end.
    pub fn push(&mut self, item: PathItem) {
        self.items.push(item);
        if !self.items.len().is_multiple_of(GROUP) {
            return;
        }
        let mut bytes = Vec::with_capacity(GROUP * 36);
        if let Some(before) = self.groups.last() {
            bytes.extend_from_slice(before.as_bytes());
        }
        let group = self.items.get(self.items.len() - GROUP..);
        for item in group.unwrap_or_default() {
            ItemIdentity::of(item).write(&mut bytes);
        }
        self.groups.push(ContentHash::of(&bytes));
    }
}

impl Deref for GrowingPath {
    type Target = [PathItem];

    fn deref(&self) -> &[PathItem] {
        &self.items
    }
}

impl Extend<PathItem> for GrowingPath {
    fn extend<I: IntoIterator<Item = PathItem>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl FromIterator<PathItem> for GrowingPath {
    fn from_iter<I: IntoIterator<Item = PathItem>>(items: I) -> Self {
        let mut path = Self::default();
        path.extend(items);
        path
    }
}

impl IntoIterator for GrowingPath {
    type Item = PathItem;
    type IntoIter = std::vec::IntoIter<PathItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a> IntoIterator for &'a GrowingPath {
    type Item = &'a PathItem;
    type IntoIter = std::slice::Iter<'a, PathItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

/// A path from the first item to the head: of a list, or of a [`GrowingPath`].
#[derive(Clone, Copy, Debug)]
pub struct PathItems<'a> {
    items: &'a [PathItem],
    groups: &'a [ContentHash],
}

impl<'a> PathItems<'a> {
    /// Returns the items in path order.
    #[must_use]
    pub const fn items(self) -> &'a [PathItem] {
        self.items
    }

    /// A beginning by which the path can be known again without looking at its items: how many items it has, and their
    /// hash. Nothing for a path that does not know its beginnings.
    pub(crate) fn known_beginning(&self) -> Option<KnownBeginning> {
        let hash = *self.groups.last()?;
        Some(KnownBeginning {
            items: self.groups.len() * GROUP,
            hash,
        })
    }

    /// Whether it is known to have that beginning.
    pub(crate) fn has_beginning(&self, known: &KnownBeginning) -> bool {
        let last = (known.items / GROUP).checked_sub(1);
        last.and_then(|last| self.groups.get(last)) == Some(&known.hash)
    }
}

impl Deref for PathItems<'_> {
    type Target = [PathItem];

    fn deref(&self) -> &[PathItem] {
        self.items
    }
}

impl<'a> From<&'a [PathItem]> for PathItems<'a> {
    fn from(items: &'a [PathItem]) -> Self {
        Self { items, groups: &[] }
    }
}

impl<'a> From<&'a Vec<PathItem>> for PathItems<'a> {
    fn from(items: &'a Vec<PathItem>) -> Self {
        Self::from(items.as_slice())
    }
}

impl<'a> From<&'a GrowingPath> for PathItems<'a> {
    fn from(path: &'a GrowingPath) -> Self {
        Self {
            items: &path.items,
            groups: &path.groups,
        }
    }
}

/// A beginning of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownBeginning {
    pub(crate) items: usize,
    hash: ContentHash,
}

/// What of an item decides whether a path is the one of an earlier compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ItemIdentity {
    hash: ContentHash,
    /// Names of rules are made of it, and links to what is stored.
    node: Option<NodeId>,
    origin: Origin,
    is_for_model: bool,
    is_pinned: bool,
}

impl ItemIdentity {
    pub(crate) const fn of(item: &PathItem) -> Self {
        Self {
            hash: item.hash,
            node: item.node,
            origin: item.origin,
            is_for_model: item.audience.model,
            is_pinned: item.pinned,
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.hash.as_bytes());
        let flags = [self.node.is_some(), self.is_for_model, self.is_pinned];
        bytes.extend(flags.map(u8::from));
        bytes.push(self.origin as u8);
        if let Some(node) = self.node {
            bytes.extend_from_slice(node.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use contexture_ir::{Item, Message, Role};

    use super::*;

    fn item(text: &str) -> PathItem {
        PathItem::new(Item::from(Message::text(Role::User, text)))
    }

    #[test]
    fn a_path_knows_its_beginnings_and_nothing_else() {
        let text = |at: usize| item(&at.to_string());
        let mut path: GrowingPath = (0..GROUP * 3 + 5).map(text).collect();
        let known = PathItems::from(&path).known_beginning().unwrap();
        assert_eq!(known.items, GROUP * 3);
        path.extend((0..GROUP).map(text));
        assert!(PathItems::from(&path).has_beginning(&known));
        let list: Vec<PathItem> = path.clone().into_iter().collect();
        assert!(!PathItems::from(&list).has_beginning(&known));
        // Every kind of difference is noticed.
        let changes: [fn(&mut PathItem); 5] = [
            |one| one.hash = ContentHash::of(b"another"),
            |one| one.pinned = true,
            |one| one.audience.model = false,
            |one| one.origin = Origin::Tool,
            |one| one.node = Some(NodeId::derive("item", &[b"1"])),
        ];
        for change in changes {
            let mut other = list.clone();
            change(&mut other[GROUP + 1]);
            let other: GrowingPath = other.into_iter().collect();
            assert!(!PathItems::from(&other).has_beginning(&known));
        }
        let short: GrowingPath = (0..GROUP).map(text).collect();
        assert!(!PathItems::from(&short).has_beginning(&known));
    }
}
