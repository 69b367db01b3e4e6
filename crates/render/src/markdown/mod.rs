//! Fragments as Markdown: a heading for each, bullets for what it holds.
//!
//! ```text
//! ## Workflow
//! - **task**: Refund
//! - **steps**:
//!   - Look up the order
//!   - Ask for the reason
//! ```
//!
//! Nothing is lost but types (`1` and `"1"` look alike, and nulls are left out): an array in an array
//! and an object in an array are bullets in a bullet, a fragment as the value of a key keeps the key.
//! Headings are the fragments' names in title case. A text's lines stay in their bullet, indented;
//! where a line begins like a block of Markdown's own (`#`, `-`, a fence, …) it is escaped, see
//! `escape`. What stands within a line is left alone: it cannot leave its block.

mod escape;
mod title;

use contexture_ir::{Fragment, FragmentData};
use indexmap::IndexMap;

use crate::error::RenderError;
use crate::indent::push_spaces;
use crate::number::write_number;
use crate::prepare::prepare;
use crate::renderer::{Grouping, Renderer};
use crate::words::plural;
use escape::{Position, write_label, write_text};
use title::title_case;

/// How Markdown is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkdownOptions {
    /// Whether fragments of one name are gathered under its plural. One level of groups is made: in
    /// the list itself, or else among the children of its fragments.
    pub group_fragments: Grouping,
}

/// Renders fragments as Markdown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkdownRenderer {
    options: MarkdownOptions,
}

impl MarkdownRenderer {
    /// A renderer with these options.
    #[must_use]
    pub fn new(options: MarkdownOptions) -> Self {
        Self { options }
    }
}

impl Renderer for MarkdownRenderer {
    fn name(&self) -> &str {
        "markdown"
    }

    fn render(&self, fragments: &[Fragment]) -> Result<String, RenderError> {
        let prepared = prepare(fragments)?;
        let shown: Vec<&Fragment> = prepared
            .iter()
            .map(AsRef::as_ref)
            .filter(|fragment: &&Fragment| !fragment.data().is_none_or(FragmentData::is_null))
            .collect();
        let mut writer = Writer {
            out: String::new(),
            grouping: self.options.group_fragments,
            nested_start: false,
        };
        if self.options.group_fragments.of_list() {
            for (name, members) in group(shown) {
                writer.heading(&plural(name));
                members.iter().for_each(|member| writer.fragment(member, 0));
            }
        } else {
            shown.iter().for_each(|fragment| writer.top(fragment));
        }
        Ok(writer.out)
    }
}

fn group<'a>(
    fragments: impl IntoIterator<Item = &'a Fragment>,
) -> IndexMap<&'a str, Vec<&'a Fragment>> {
    let mut groups: IndexMap<&str, Vec<&Fragment>> = IndexMap::new();
    for fragment in fragments {
        groups.entry(&fragment.name).or_default().push(fragment);
    }
    groups
}

fn inner_fragment(item: &FragmentData) -> Option<&Fragment> {
    match item {
        FragmentData::Fragment(inner) => Some(inner),
        _ => None,
    }
}

struct Writer {
    out: String,
    grouping: Grouping,
    /// Whether the text ends in a bullet's mark behind which another may stand.
    nested_start: bool,
}

impl Writer {
    fn heading(&mut self, name: &str) {
        if !self.out.is_empty() {
            self.out.push_str("\n\n");
        }
        self.out.push_str("## ");
        write_label(&mut self.out, &title_case(name), Position::Heading);
    }

    fn top(&mut self, fragment: &Fragment) {
        self.heading(&fragment.name);
        match fragment.data() {
            Some(FragmentData::Array(items)) => self.items(items, self.grouping.of_children(), 0),
            Some(FragmentData::Object(entries)) => {
                entries
                    .iter()
                    .for_each(|(key, value)| self.entry(key, value, 0));
            }
            Some(FragmentData::Fragment(inner)) => self.fragment(inner, 0),
            Some(leaf) => {
                self.out.push('\n');
                self.leaf(leaf, Position::Body, 0);
            }
            None => {}
        }
    }

    /// A bullet's mark at a depth: on a line of its own, or behind the mark of the bullet around it.
    fn bullet(&mut self, depth: usize) {
        if self.nested_start {
            self.nested_start = false;
            self.out.push(' ');
        } else {
            self.out.push('\n');
            push_spaces(&mut self.out, 2 * depth);
        }
        self.out.push('-');
    }

    /// A bullet that holds bullets. The first of them stands on its line (`- - a`), for a line with a
    /// mark and nothing behind it would underline the line above. Without any, `empty` says so.
    fn nested(&mut self, empty: &str, depth: usize, inside: impl FnOnce(&mut Self)) {
        self.bullet(depth);
        self.nested_start = true;
        inside(self);
        if self.nested_start {
            self.nested_start = false;
            self.out.push(' ');
            self.out.push_str(empty);
        }
    }

    fn label(&mut self, name: &str) {
        self.out.push_str(" **");
        write_label(&mut self.out, name, Position::Label);
        self.out.push_str("**:");
    }

    fn fragment(&mut self, fragment: &Fragment, depth: usize) {
        if let Some(data) = fragment.data().filter(|data| !data.is_null()) {
            self.bullet(depth);
            self.label(&fragment.name);
            self.behind_label(data, depth);
        }
    }

    fn entry(&mut self, key: &str, value: &FragmentData, depth: usize) {
        if !value.is_null() {
            self.bullet(depth);
            self.label(key);
            self.behind_label(value, depth);
        }
    }

    /// What a labelled bullet at `depth` holds: a text on its line, the rest in bullets below.
    fn behind_label(&mut self, data: &FragmentData, depth: usize) {
        match data {
            FragmentData::Array(items) => self.items(items, false, depth + 1),
            FragmentData::Object(entries) => {
                entries
                    .iter()
                    .for_each(|(key, value)| self.entry(key, value, depth + 1));
            }
            FragmentData::Fragment(inner) => self.fragment(inner, depth + 1),
            leaf => {
                self.out.push(' ');
                self.leaf(leaf, Position::Line, depth);
            }
        }
    }

    fn items(&mut self, items: &[FragmentData], grouped: bool, depth: usize) {
        let shown = || items.iter().filter(|item| !item.is_null());
        let mut groups = match grouped {
            true => group(shown().filter_map(inner_fragment)),
            false => IndexMap::new(),
        };
        for item in shown() {
            match item {
                FragmentData::Fragment(inner) if grouped => {
                    let members = groups.get_mut(inner.name.as_str()).map(std::mem::take);
                    let members = members.unwrap_or_default();
                    if !members.is_empty() {
                        self.bullet(depth);
                        self.label(&title_case(&plural(&inner.name)));
                        members
                            .iter()
                            .for_each(|member| self.fragment(member, depth + 1));
                    }
                }
                FragmentData::Fragment(inner) => self.fragment(inner, depth),
                FragmentData::Array(inner) => {
                    self.nested("[]", depth, |writer| writer.items(inner, false, depth + 1));
                }
                FragmentData::Object(entries) => self.nested("{}", depth, |writer| {
                    entries
                        .iter()
                        .for_each(|(key, value)| writer.entry(key, value, depth + 1));
                }),
                leaf => {
                    self.bullet(depth);
                    self.out.push(' ');
                    self.leaf(leaf, Position::Item, depth);
                }
            }
        }
    }

    /// A value that is no container; further lines are indented to stay in the bullet at `depth`.
    fn leaf(&mut self, leaf: &FragmentData, position: Position, depth: usize) {
        let indent = if position == Position::Body {
            0
        } else {
            2 * (depth + 1)
        };
        match leaf {
            FragmentData::Text(text) => write_text(&mut self.out, text, position, indent),
            FragmentData::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            FragmentData::Number(number) => write_number(&mut self.out, number),
            _ => {}
        }
    }
}
