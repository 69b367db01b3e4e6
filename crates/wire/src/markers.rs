//! Cache markers in requests: setting, counting and removing them.
//!
//! A marker says that the prefix up to and including its block is worth caching. It is a member of that block
//! (`cache_control` at Anthropic, `prompt_cache_breakpoint` at OpenAI) or a block of its own after it, as
//! [`CacheMarkers`] says. The model does not read it, so markers may move from call to call while the prefix stays the
//! same. All functions work on JSON text and change nothing but markers, except that content that was a string becomes
//! an array of one block.
//!
//! Not here: where markers belong, and how many (`contexture-prompt-cache`). Gemini has none: it caches on its own, or
//! in cached content objects that are created beforehand.

use std::ops::Range;

use contexture_ir::{Fields, quote_json, slice_range};
use serde_json::value::RawValue;

use crate::model::chunk::CacheTtl;
use crate::model::format::Format;
use crate::model::json::string_field;
use crate::outline::member_at;
use crate::spec::{CacheMarkers, HeadPart};

/// Sets a marker in elements of the history's array, joined by commas: in the last element, on its last block that can
/// carry one. If that block is marked already, the elements are returned as they are.
///
/// Returns `None` if the last element has no such block: thinking and blank text at Anthropic, whatever the model said
/// at OpenAI, everything at Gemini.
#[must_use]
pub fn set_marker(format: Format, elements: &str, ttl: CacheTtl) -> Option<String> {
    let rules = format.spec().markers()?;
    let text = format!("[{elements}]");
    let list: Vec<&RawValue> = serde_json::from_str(&text).ok()?;
    let edit = plan_element_marker(rules, &text, list.last()?, ttl)?;
    Some(strip_brackets(edit.apply_to(&text)))
}

/// Sets a marker at the end of `part` in the beginning of a request, which reaches up to the `[` of the history's
/// array. Returns `None` if there is no such part or it cannot carry a marker.
#[must_use]
pub fn set_head_marker(
    format: Format,
    before: &str,
    part: HeadPart,
    ttl: CacheTtl,
) -> Option<String> {
    let rules = format.spec().markers()?;
    let block_type = rules.head_block()?;
    // Closed here so that the beginning can be parsed; the added brackets are removed again below.
    let text = format!("{before}]}}");
    let fields = Fields::parse(&text).ok()?;
    let value = member_at(&fields, rules.head_path(part))?;
    let edit = plan_block_marker(rules, &text, value, block_type, ttl)?;
    let edited = edit.apply_to(&text);
    edited.strip_suffix("]}").map(str::to_owned)
}

/// Returns the markers in elements of the history's array, in order.
#[must_use]
pub fn markers(format: Format, elements: &str) -> Vec<CacheTtl> {
    let Some(rules) = marker_rules(format, elements) else {
        return Vec::new();
    };
    let text = format!("[{elements}]");
    // Unreadable text counts as having no markers; others report that it is unreadable.
    let list: Vec<&RawValue> = serde_json::from_str(&text).unwrap_or_default();
    let blocks = list.iter().flat_map(|element| markable_blocks(element));
    blocks
        .filter_map(|block| marker_ttl(rules, block))
        .collect()
}

/// Returns the markers in one part of a request's beginning, in order.
#[must_use]
pub fn head_markers(format: Format, before: &str, part: HeadPart) -> Vec<CacheTtl> {
    let Some(rules) = marker_rules(format, before) else {
        return Vec::new();
    };
    let text = format!("{before}]}}");
    let blocks = head_blocks(rules, &text, part);
    let marks = blocks.iter().filter_map(|block| marker_ttl(rules, block));
    marks.collect()
}

/// Returns the elements without their markers; `None` if they have none.
#[must_use]
pub fn remove_markers(format: Format, elements: &str) -> Option<String> {
    let rules = marker_rules(format, elements)?;
    let text = format!("[{elements}]");
    let list: Vec<&RawValue> = serde_json::from_str(&text).ok()?;
    let blocks: Vec<&RawValue> = list.iter().flat_map(|one| markable_blocks(one)).collect();
    let edited = without_markers(rules, &text, &blocks)?;
    Some(strip_brackets(edited))
}

/// Returns a request's beginning without the markers of one part; `None` if the part has none.
#[must_use]
pub fn remove_head_markers(format: Format, before: &str, part: HeadPart) -> Option<String> {
    let rules = marker_rules(format, before)?;
    let text = format!("{before}]}}");
    let edited = without_markers(rules, &text, &head_blocks(rules, &text, part))?;
    edited.strip_suffix("]}").map(str::to_owned)
}

/// Returns a document without its first cache markers, and how many those were, so that as many are left as the provider
/// accepts. `None` if there are no more than that.
///
/// The last ones stay: they end the longest prefixes.
#[must_use]
pub fn limit_markers(format: Format, document: &str) -> Option<(String, usize)> {
    let rules = marker_rules(format, document)?;
    let most = rules.max_markers()?;
    let fields = Fields::parse(document).unwrap_or_default();
    let elements = match fields.get(&[format.spec().members()?.history]) {
        Some(history) => history.get(),
        // A bare array of messages.
        None => document,
    };
    let elements: Vec<&RawValue> = serde_json::from_str(elements).unwrap_or_default();
    let head = [HeadPart::Tools, HeadPart::System].into_iter();
    let mut marked: Vec<&RawValue> = head
        .flat_map(|part| head_blocks(rules, document, part))
        .chain(elements.iter().flat_map(|element| markable_blocks(element)))
        .filter(|block| marker_ttl(rules, block).is_some())
        .collect();
    let surplus = marked.len().checked_sub(most).filter(|more| *more > 0)?;
    marked.truncate(surplus);
    Some((without_markers(rules, document, &marked)?, surplus))
}

/// Adds the option that tells the provider to set no markers by itself to the end of a request, which begins with the
/// `]` of the history's array. Returns `None` if the format has no such option or the request mentions it already.
#[must_use]
pub fn disable_automatic_markers(format: Format, after: &str) -> Option<String> {
    let (name, value) = format.spec().markers()?.automatic_option()?;
    let name = quote_json(name);
    // If the name occurs anywhere, the request is left as it is: what the client chose counts.
    if after.contains(&name) {
        return None;
    }
    // Appended as the last member, so that nothing before it moves.
    let open = after.trim_end().strip_suffix('}')?;
    Some(format!("{open},{name}:{value}}}"))
}

/// Returns the name of the option that says whether the provider sets markers by itself; `None` if the format has none.
#[must_use]
pub fn automatic_marker_member(format: Format) -> Option<&'static str> {
    let (name, _) = format.spec().markers()?.automatic_option()?;
    Some(name)
}

/// Returns the name of the member that is a marker; `None` if the format has no markers.
#[must_use]
pub fn marker_field(format: Format) -> Option<&'static str> {
    Some(format.spec().markers()?.field())
}

/// Returns the format's rules, if the text may have one of its markers.
///
/// Most texts have none, and this check spares parsing them. The name inside a longer JSON string is not
/// mistaken for a marker, because there the quotes around it are escaped.
fn marker_rules(format: Format, text: &str) -> Option<&'static dyn CacheMarkers> {
    let rules = format.spec().markers()?;
    text.contains(&format!("\"{}\"", rules.field()))
        .then_some(rules)
}

fn strip_brackets(array: String) -> String {
    let cut = array
        .strip_prefix('[')
        .and_then(|one| one.strip_suffix(']'));
    cut.map(str::to_owned).unwrap_or(array)
}

/// The replacement of a range of a text.
struct TextEdit {
    range: Range<usize>,
    replacement: String,
}

impl TextEdit {
    fn apply_to(self, text: &str) -> String {
        let mut out = text.to_owned();
        if text.get(self.range.clone()).is_some() {
            // Every other byte stays, because a provider's cache compares prompts byte by byte.
            out.replace_range(self.range, &self.replacement);
        }
        out
    }
}

fn plan_element_marker(
    rules: &dyn CacheMarkers,
    text: &str,
    element: &RawValue,
    ttl: CacheTtl,
) -> Option<TextEdit> {
    let fields = Fields::parse(element.get()).ok()?;
    let (content, block_type) = rules.content(&fields)?;
    plan_block_marker(rules, text, content, block_type, ttl)
}

/// Plans a marker on the last block of `content` that can carry one, or on the string that stands for a block.
fn plan_block_marker(
    rules: &dyn CacheMarkers,
    text: &str,
    content: &RawValue,
    block_type: &str,
    ttl: CacheTtl,
) -> Option<TextEdit> {
    let member = format!(r#""{}":{}"#, rules.field(), rules.value(ttl));
    let range = slice_range(text, content.get())?;
    if content.get().starts_with('"') {
        return plan_string_marker(rules, content, range, block_type, &member);
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let at = blocks
        .iter()
        .rposition(|block| can_carry_marker(rules, block))?;
    // Where markers are blocks of their own, the marker of a block is the block after it.
    let holder = blocks.get(at + usize::from(rules.is_own_block()));
    if holder.is_some_and(|holder| marker_ttl(rules, holder).is_some()) {
        // Marked already: an empty edit, because `None` would say that nothing can be marked.
        return Some(TextEdit {
            range: 0..0,
            replacement: String::new(),
        });
    }
    let end = slice_range(text, blocks.get(at)?.get())?.end;
    if rules.is_own_block() {
        return Some(TextEdit {
            range: end..end,
            replacement: format!(",{{{member}}}"),
        });
    }
    // In front of the closing brace, so that the marker is the block's last member.
    let end = end.checked_sub(1)?;
    Some(TextEdit {
        range: end..end,
        replacement: format!(",{member}"),
    })
}

/// Plans a marker on a string that stands for one block. A string cannot hold a marker, so it becomes that block.
fn plan_string_marker(
    rules: &dyn CacheMarkers,
    content: &RawValue,
    range: Range<usize>,
    block_type: &str,
    member: &str,
) -> Option<TextEdit> {
    let plain: String = serde_json::from_str(content.get()).ok()?;
    // Providers whose markers are blocks of their own accept no string in place of a block.
    let has_place = !rules.is_own_block() && !plain.trim().is_empty();
    let block_type = quote_json(block_type);
    has_place.then(|| TextEdit {
        range,
        replacement: format!(
            r#"[{{"type":{block_type},"text":{},{member}}}]"#,
            content.get()
        ),
    })
}

/// Whether a provider accepts a marker on this block.
fn can_carry_marker(rules: &dyn CacheMarkers, block: &RawValue) -> bool {
    Fields::parse(block.get()).is_ok_and(|fields| {
        if rules.is_own_block() && rules.marker_in(&fields).is_some() {
            return false;
        }
        let block_type = string_field(&fields, "type").unwrap_or_default();
        rules.can_carry(&block_type, &fields)
    })
}

/// Returns for how long the marker in a block asks to cache; `None` if the block has no marker.
fn marker_ttl(rules: &dyn CacheMarkers, block: &RawValue) -> Option<CacheTtl> {
    rules.marker_in(&Fields::parse(block.get()).ok()?)
}

/// Returns the blocks of an element that may be marked, in order; blocks inside a tool result come before the result.
fn markable_blocks(element: &RawValue) -> Vec<&RawValue> {
    let outer = content_blocks(element).into_iter();
    outer
        // Results of tools hold blocks that may be marked as well; nothing nests deeper.
        .flat_map(|block| content_blocks(block).into_iter().chain([block]))
        .collect()
}

/// Returns the blocks that are the content of an element or of a tool result.
fn content_blocks(holder: &RawValue) -> Vec<&RawValue> {
    let fields = Fields::parse(holder.get()).unwrap_or_default();
    let body = fields.get(&["content", "output"]);
    body.and_then(|body| serde_json::from_str(body.get()).ok())
        .unwrap_or_default()
}

fn head_blocks<'a>(rules: &dyn CacheMarkers, text: &'a str, part: HeadPart) -> Vec<&'a RawValue> {
    let value = Fields::parse(text)
        .ok()
        .and_then(|fields| member_at(&fields, rules.head_path(part)));
    value
        .and_then(|value| serde_json::from_str(value.get()).ok())
        .unwrap_or_default()
}

/// Returns the text without the markers of these blocks; `None` if they have none.
fn without_markers(rules: &dyn CacheMarkers, text: &str, blocks: &[&RawValue]) -> Option<String> {
    let name = rules.field();
    let quoted = quote_json(name);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for block in blocks {
        let Some(value) = Fields::parse(block.get())
            .ok()
            .and_then(|fields| fields.get(&[name]))
        else {
            continue;
        };
        if rules.is_own_block() {
            ranges.push(slice_range(text, block.get())?);
            continue;
        }
        let value = slice_range(text, value.get())?;
        let before = text.get(..value.start)?.trim_end().strip_suffix(':')?;
        let start = before.trim_end().strip_suffix(&quoted)?.len();
        ranges.push(start..value.end);
    }
    if ranges.is_empty() {
        return None;
    }
    // Blocks of a tool result are listed before the result that holds them, so the ranges are not in
    // the order of the text yet. They never overlap: a marker is a small object of its own.
    ranges.sort_unstable_by_key(|range| range.start);
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for range in ranges {
        let cut = with_comma(text, range, end)?;
        out.push_str(text.get(end..cut.start)?);
        end = cut.end;
    }
    out.push_str(text.get(end..)?);
    Some(out)
}

/// Extends the range of a member or element by one of the commas around it: the one before it or, if it is the first,
/// the one after. The text before `done` has been cut or copied already.
fn with_comma(text: &str, range: Range<usize>, done: usize) -> Option<Range<usize>> {
    let before = text.get(done..range.start)?.trim_end();
    Some(match before.strip_suffix(',') {
        Some(before) => done + before.trim_end().len()..range.end,
        None => {
            let after = text.get(range.end..)?.trim_start();
            let after = after.strip_prefix(',').unwrap_or(after);
            done + before.len()..text.len() - after.len()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::samples::OwnBlocks;

    const MARKER: &str = r#"{"cachePoint":{"type":"default"}}"#;

    fn marked(blocks: &str) -> Option<String> {
        let text = format!(r#"{{"role":"user","content":[{blocks}]}}"#);
        let element: &RawValue = serde_json::from_str(&text).unwrap();
        let edit = plan_element_marker(&OwnBlocks, &text, element, CacheTtl::Usual)?;
        let edited = edit.apply_to(&text);
        let blocks = edited.strip_prefix(r#"{"role":"user","content":["#)?;
        Some(blocks.strip_suffix("]}")?.to_owned())
    }

    #[test]
    fn own_block_marker_follows_last_block_that_can_carry() {
        let (text, image) = (r#"{"text":"a"}"#, r#"{"image":{}}"#);
        let both = format!("{text},{image}");
        assert_eq!(marked(&both).unwrap(), format!("{text},{MARKER},{image}"));
        let already = format!("{text},{MARKER}");
        assert_eq!(marked(&already).unwrap(), already);
        assert_eq!(marked(image), None);
        assert_eq!(marked(MARKER), None);
    }

    #[test]
    fn own_block_markers_are_removed_with_one_comma() {
        let remove = |text: &str| {
            let blocks: Vec<&RawValue> = serde_json::from_str(text).unwrap();
            without_markers(&OwnBlocks, text, &blocks)
        };
        let text = r#"{"text":"a"}"#;
        let cases = [
            (
                format!("[{text}, {MARKER} , {text}]"),
                format!("[{text} , {text}]"),
            ),
            (format!("[{MARKER},{text},{MARKER}]"), format!("[{text}]")),
            (format!("[{MARKER}  ,{MARKER},{text}]"), format!("[{text}]")),
            (format!("[{MARKER}]"), "[]".to_owned()),
        ];
        for (with, without) in cases {
            assert_eq!(remove(&with).unwrap(), without, "{with}");
        }
        assert_eq!(remove(&format!("[{text}]")), None);
    }

    #[test]
    fn head_parts_are_found_below_other_members() {
        let text = r#"{"toolConfig":{"tools":[{"text":"a"},{"cachePoint":{"type":"default"}}]}}"#;
        let tools = head_blocks(&OwnBlocks, text, HeadPart::Tools);
        let found: Vec<_> = tools
            .iter()
            .map(|tool| marker_ttl(&OwnBlocks, tool))
            .collect();
        assert_eq!(found, [None, Some(CacheTtl::Usual)]);
        assert!(head_blocks(&OwnBlocks, text, HeadPart::System).is_empty());
    }
}
