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
mod title_case;

use contexture_ir::{Fragment, FragmentData};
use indexmap::IndexMap;

use crate::pluralize::plural;
use crate::prepare::prepare_fragments;
use crate::primitives::push_spaces;
use crate::primitives::write_number;
use crate::renderer::RenderError;
use crate::renderer::{Grouping, Renderer};
use escape::{EscapeContext, write_label, write_text};
use title_case::title_case;

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
        let prepared = prepare_fragments(fragments)?;
        let shown: Vec<&Fragment> = prepared
            .iter()
            .map(AsRef::as_ref)
            // Nothing is shown of a fragment of null, not even a heading.
            .filter(|fragment: &&Fragment| !fragment.data().is_none_or(FragmentData::is_null))
            .collect();
        let mut writer = MarkdownWriter {
            out: String::new(),
            grouping: self.options.group_fragments,
            nested_start: false,
        };
        if self.options.group_fragments.groups_top_level() {
            // At the top level a group becomes one heading, and its members become bullets.
            for (name, members) in group_by_name(shown) {
                writer.write_heading(&plural(name));
                members
                    .iter()
                    .for_each(|member| writer.write_fragment(member, 0));
            }
        } else {
            shown
                .iter()
                .for_each(|fragment| writer.write_top_level(fragment));
        }
        Ok(writer.out)
    }
}

fn group_by_name<'a>(
    fragments: impl IntoIterator<Item = &'a Fragment>,
) -> IndexMap<&'a str, Vec<&'a Fragment>> {
    let mut groups: IndexMap<&str, Vec<&Fragment>> = IndexMap::new();
    for fragment in fragments {
        groups.entry(&fragment.name).or_default().push(fragment);
    }
    groups
}

fn as_fragment(item: &FragmentData) -> Option<&Fragment> {
    match item {
        FragmentData::Fragment(inner) => Some(inner),
        _ => None,
    }
}

struct MarkdownWriter {
    out: String,
    grouping: Grouping,
    /// Whether the text ends in a bullet's mark behind which another may stand.
    nested_start: bool,
}

impl MarkdownWriter {
    fn write_heading(&mut self, name: &str) {
        if !self.out.is_empty() {
            self.out.push_str("\n\n");
        }
        self.out.push_str("## ");
        write_label(&mut self.out, &title_case(name), EscapeContext::Heading);
    }

    fn write_top_level(&mut self, fragment: &Fragment) {
        self.write_heading(&fragment.name);
        match fragment.data() {
            Some(FragmentData::Array(items)) => {
                self.write_items(items, self.grouping.groups_children(), 0)
            }
            Some(FragmentData::Object(entries)) => {
                entries
                    .iter()
                    .for_each(|(key, value)| self.write_entry(key, value, 0));
            }
            Some(FragmentData::Fragment(inner)) => self.write_fragment(inner, 0),
            Some(leaf) => {
                self.out.push('\n');
                self.write_scalar(leaf, EscapeContext::Body, 0);
            }
            None => {}
        }
    }

    /// A bullet's mark at a depth: on a line of its own, or behind the mark of the bullet around it.
    fn write_bullet(&mut self, depth: usize) {
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
    fn write_nested_bullet(&mut self, empty: &str, depth: usize, inside: impl FnOnce(&mut Self)) {
        self.write_bullet(depth);
        self.nested_start = true;
        inside(self);
        // Still set: nothing was written inside, so the empty value is named.
        if self.nested_start {
            self.nested_start = false;
            self.out.push(' ');
            self.out.push_str(empty);
        }
    }

    fn write_bullet_label(&mut self, name: &str) {
        self.out.push_str(" **");
        write_label(&mut self.out, name, EscapeContext::Label);
        self.out.push_str("**:");
    }

    fn write_fragment(&mut self, fragment: &Fragment, depth: usize) {
        if let Some(data) = fragment.data().filter(|data| !data.is_null()) {
            self.write_bullet(depth);
            self.write_bullet_label(&fragment.name);
            self.write_labeled_value(data, depth);
        }
    }

    fn write_entry(&mut self, key: &str, value: &FragmentData, depth: usize) {
        if !value.is_null() {
            self.write_bullet(depth);
            self.write_bullet_label(key);
            self.write_labeled_value(value, depth);
        }
    }

    /// What a labelled bullet at `depth` holds: a text on its line, the rest in bullets below.
    fn write_labeled_value(&mut self, data: &FragmentData, depth: usize) {
        match data {
            FragmentData::Array(items) => self.write_items(items, false, depth + 1),
            FragmentData::Object(entries) => {
                entries
                    .iter()
                    .for_each(|(key, value)| self.write_entry(key, value, depth + 1));
            }
            FragmentData::Fragment(inner) => self.write_fragment(inner, depth + 1),
            leaf => {
                self.out.push(' ');
                self.write_scalar(leaf, EscapeContext::Line, depth);
            }
        }
    }

    fn write_items(&mut self, items: &[FragmentData], grouped: bool, depth: usize) {
        // A closure, because the items are walked twice when they are grouped.
        let shown = || items.iter().filter(|item| !item.is_null());
        let mut groups = match grouped {
            true => group_by_name(shown().filter_map(as_fragment)),
            false => IndexMap::new(),
        };
        for item in shown() {
            match item {
                FragmentData::Fragment(inner) if grouped => {
                    // The first of a name writes all of them, the later ones nothing.
                    let members = groups.get_mut(inner.name.as_str()).map(std::mem::take);
                    let members = members.unwrap_or_default();
                    if !members.is_empty() {
                        self.write_bullet(depth);
                        self.write_bullet_label(&title_case(&plural(&inner.name)));
                        members
                            .iter()
                            .for_each(|member| self.write_fragment(member, depth + 1));
                    }
                }
                FragmentData::Fragment(inner) => self.write_fragment(inner, depth),
                FragmentData::Array(inner) => {
                    self.write_nested_bullet("[]", depth, |writer| {
                        writer.write_items(inner, false, depth + 1)
                    });
                }
                FragmentData::Object(entries) => self.write_nested_bullet("{}", depth, |writer| {
                    entries
                        .iter()
                        .for_each(|(key, value)| writer.write_entry(key, value, depth + 1));
                }),
                leaf => {
                    self.write_bullet(depth);
                    self.out.push(' ');
                    self.write_scalar(leaf, EscapeContext::Item, depth);
                }
            }
        }
    }

    /// A value that is no container; further lines are indented to stay in the bullet at `depth`.
    fn write_scalar(&mut self, leaf: &FragmentData, position: EscapeContext, depth: usize) {
        let indent = if position == EscapeContext::Body {
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
