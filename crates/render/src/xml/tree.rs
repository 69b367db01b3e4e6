//! The elements as a tree: the normal form.

use super::walk::Sink;

/// An element of the normal form: its name and what it holds, before any escaping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XmlElement {
    /// An element that holds a text, possibly empty.
    Leaf {
        /// The name as the fragment or key has it.
        name: String,
        /// The text as the value has it.
        text: String,
    },
    /// An element that holds elements, at least one.
    Branch {
        /// The name as the fragment or key has it.
        name: String,
        /// What it holds, in order.
        children: Vec<XmlElement>,
    },
}

/// Builds the tree. The last of `open` collects the children of the innermost open element.
#[derive(Debug, Default)]
pub(super) struct TreeSink {
    top: Vec<XmlElement>,
    open: Vec<Vec<XmlElement>>,
}

impl TreeSink {
    pub(super) fn into_elements(self) -> Vec<XmlElement> {
        self.top
    }

    fn push_element(&mut self, element: XmlElement) {
        self.open.last_mut().unwrap_or(&mut self.top).push(element);
    }
}

impl Sink for TreeSink {
    fn open_element(&mut self, _name: &str, _depth: usize) {
        self.open.push(Vec::new());
    }

    fn close_element(&mut self, name: &str, _depth: usize) {
        let children = self.open.pop().unwrap_or_default();
        if !children.is_empty() {
            self.push_element(XmlElement::Branch {
                name: name.to_owned(),
                children,
            });
        }
    }

    fn add_leaf(&mut self, name: &str, text: &str, _depth: usize) {
        self.push_element(XmlElement::Leaf {
            name: name.to_owned(),
            text: text.to_owned(),
        });
    }
}
