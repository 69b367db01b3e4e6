//! A request cut into the blocks that a cache compares: the one reader for formats of the usual shape.
//!
//! Formats differ in names and in a few habits ([`OutlineShape`]); one with another shape implements
//! [`FormatSpec::outline`](crate::spec::FormatSpec::outline) by itself. Only the blocks' edges are found here: nothing is
//! parsed deeper than a block.

use contexture_ir::Fields;
use serde_json::value::RawValue;

use crate::model::chunk::CacheTtl;
use crate::model::prompt_cache::{
    BlockContext, BlockOverhead, OutlineBlock, OutlineShape, OutlineVisitor, RequestPart,
};
use crate::spec::FormatSpec;

/// Gives a request's blocks to a visitor, in the cache's order.
///
/// # Errors
/// What was expected, if the history is missing or no list of messages.
pub(crate) fn visit_request<'a>(
    spec: &dyn FormatSpec,
    shape: &OutlineShape,
    body: &Fields<'a>,
    visitor: &mut dyn OutlineVisitor<'a>,
) -> Result<(), &'static str> {
    let members = spec.members().ok_or(shape.expected)?;
    let history = body.get(&[members.history]).ok_or(shape.expected)?;
    let mut reader = BlockReader {
        spec,
        shape,
        content: members.content,
        visitor,
    };
    reader.visit_tools(body);
    let mut names = members.instructions.iter();
    if let Some((name, system)) = names.find_map(|name| Some((name, body.get(&[name])?))) {
        reader.visit_system(name, system);
    }
    reader.visit_history(members.history, history)
}

struct BlockReader<'a, 'r> {
    spec: &'r dyn FormatSpec,
    shape: &'r OutlineShape,
    content: &'static str,
    visitor: &'r mut dyn OutlineVisitor<'a>,
}

impl<'a> BlockReader<'a, '_> {
    fn visit_tools(&mut self, body: &Fields<'a>) {
        let Some((path, tools)) = find_member(body, self.spec.tool_paths()) else {
            return;
        };
        let name = path.join(".");
        // Gemini takes one tool without a list around it.
        let tools = match tools.get().starts_with('{') {
            true => vec![tools],
            false => parse_array(tools).unwrap_or_default(),
        };
        for (index, json, marker) in self.without_marker_blocks(tools) {
            self.visitor.visit_block(OutlineBlock {
                marker,
                ..plain_block(RequestPart::Tools, format!("{name}[{index}]"), index, json)
            });
        }
    }

    fn visit_system(&mut self, name: &str, system: &'a RawValue) {
        // A system prompt is a text, an array of blocks, or an object that holds the array.
        let inner = || Fields::parse(system.get()).ok()?.get(&[self.content]);
        let blocks = parse_array(system).or_else(|| inner().and_then(parse_array));
        let Some(blocks) = blocks else {
            self.visitor.visit_block(OutlineBlock {
                overhead: BlockOverhead::System,
                ..plain_block(RequestPart::System, name.to_owned(), 0, system)
            });
            return;
        };
        for (index, json, marker) in self.without_marker_blocks(blocks) {
            self.visitor.visit_block(OutlineBlock {
                marker,
                ..plain_block(RequestPart::System, format!("{name}[{index}]"), index, json)
            });
        }
    }

    fn visit_history(&mut self, name: &str, history: &'a RawValue) -> Result<(), &'static str> {
        let role = self.shape.text_history;
        if let Some(role) = role.filter(|_| history.get().starts_with('"')) {
            self.visitor.visit_block(OutlineBlock {
                context: BlockContext::Word(role),
                overhead: BlockOverhead::Message,
                ..plain_block(RequestPart::Messages, name.to_owned(), 0, history)
            });
            return Ok(());
        }
        let mut is_leading = self.shape.leading_system;
        let messages = parse_array(history).ok_or(self.shape.expected)?;
        for (index, json) in messages.into_iter().enumerate() {
            let message = Fields::parse(json.get()).map_err(|_| self.shape.expected)?;
            let role = message.get(&["role"]).map_or("", RawValue::get);
            is_leading &= matches!(role, "\"system\"" | "\"developer\"");
            let part = match is_leading {
                true => RequestPart::System,
                false => RequestPart::Messages,
            };
            self.visit_message(
                plain_block(part, format!("{name}[{index}]"), index, json),
                &message,
            );
        }
        Ok(())
    }

    /// Visits the blocks of a message, or the message itself where it has none.
    fn visit_message<'f>(&mut self, whole: OutlineBlock<'a, 'f>, message: &'f Fields<'a>) {
        let content = self.content;
        let value = message.get(&[content]);
        let blocks = value
            .and_then(parse_array)
            .filter(|blocks| !blocks.is_empty());
        let Some(blocks) = blocks else {
            let context = self.text_context(message, value);
            self.visitor.visit_block(OutlineBlock {
                context,
                overhead: BlockOverhead::Message,
                ..whole
            });
            return;
        };
        let is_history = whole.part == RequestPart::Messages;
        let beside = self.shape.beside.filter(|_| is_history);
        let beside = beside.and_then(|name| message.get(&[name]));
        let blocks = self.without_marker_blocks(blocks);
        let last = blocks.last().map(|(index, ..)| *index);
        for (order, (index, json, marker)) in blocks.into_iter().enumerate() {
            let (context, overhead) = match order {
                0 => (
                    BlockContext::FirstOf { message, content },
                    BlockOverhead::Message,
                ),
                _ => (BlockContext::Alone, BlockOverhead::None),
            };
            let path = format!("{}.{content}[{index}]", whole.path);
            self.visitor.visit_block(OutlineBlock {
                context,
                overhead,
                // Calls that stand beside the content are billed with the last block.
                beside: beside.filter(|_| Some(index) == last),
                marker,
                ..plain_block(whole.part, path, whole.index, json)
            });
        }
    }

    /// What the cached form of a message without blocks has beside it.
    fn text_context<'f>(
        &self,
        message: &'f Fields<'a>,
        value: Option<&RawValue>,
    ) -> BlockContext<'a, 'f> {
        let is_text = value.is_some_and(|value| value.get().starts_with('"'));
        match self.shape.text_block.filter(|_| is_text) {
            Some(block_type) => BlockContext::OneText {
                message,
                content: self.content,
                block_type,
            },
            None => BlockContext::Alone,
        }
    }

    /// The blocks with their indices, each with the marker that follows it as a block of its own.
    fn without_marker_blocks(
        &self,
        blocks: Vec<&'a RawValue>,
    ) -> Vec<(usize, &'a RawValue, Option<CacheTtl>)> {
        let rules = self.spec.markers().filter(|rules| rules.is_own_block());
        let mut kept: Vec<(usize, &'a RawValue, Option<CacheTtl>)> =
            Vec::with_capacity(blocks.len());
        for (index, json) in blocks.into_iter().enumerate() {
            match rules.and_then(|rules| rules.marker_of_block(json)) {
                // A marker in front of everything marks nothing.
                Some(ttl) => {
                    if let Some((_, _, marker)) = kept.last_mut() {
                        *marker = Some(ttl);
                    }
                }
                None => kept.push((index, json, None)),
            }
        }
        kept
    }
}

/// A block that has nothing beside its JSON.
fn plain_block<'a, 'f>(
    part: RequestPart,
    path: String,
    index: usize,
    json: &'a RawValue,
) -> OutlineBlock<'a, 'f> {
    OutlineBlock {
        part,
        path,
        index,
        json,
        context: BlockContext::Alone,
        overhead: BlockOverhead::None,
        beside: None,
        marker: None,
    }
}

/// Returns the member of an object that stands at the first of some paths where there is one, with that path.
#[must_use]
pub fn find_member<'a>(
    object: &Fields<'a>,
    paths: &[&'static [&'static str]],
) -> Option<(&'static [&'static str], &'a RawValue)> {
    paths
        .iter()
        .find_map(|path| Some((*path, member_at(object, path)?)))
}

/// Returns the member of an object at a path of names.
pub(crate) fn member_at<'a>(body: &Fields<'a>, path: &[&str]) -> Option<&'a RawValue> {
    let (first, rest) = path.split_first()?;
    let value = body.get(&[first])?;
    if rest.is_empty() {
        return Some(value);
    }
    member_at(&Fields::parse(value.get()).ok()?, rest)
}

fn parse_array(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests {
    use contexture_ir::{Cancel, Transcript};

    use super::*;
    use crate::model::conversion::{Lifted, Lowered};
    use crate::model::error::WireError;
    use crate::model::format::Format;
    use crate::spec::samples::OwnBlocks;
    use crate::spec::{CacheMarkers, Identity, RequestMembers};

    /// A format with markers as own blocks and tools below another member.
    struct Sample;

    impl FormatSpec for Sample {
        fn format(&self) -> Format {
            Format::Items
        }

        fn identity(&self) -> &'static Identity {
            Format::Items.spec().identity()
        }

        fn parse(&self, json: &str, cancel: Option<&Cancel>) -> Result<Lifted, WireError> {
            Format::Items.spec().parse(json, cancel)
        }

        fn encode_response(&self, response: &Transcript) -> Lowered {
            Format::Items.spec().encode_response(response)
        }

        fn members(&self) -> Option<&'static RequestMembers> {
            Format::Anthropic.spec().members()
        }

        fn tool_paths(&self) -> &'static [&'static [&'static str]] {
            &[&["toolConfig", "tools"]]
        }

        fn markers(&self) -> Option<&'static dyn CacheMarkers> {
            Some(&OwnBlocks)
        }
    }

    const SHAPE: OutlineShape = OutlineShape {
        expected: "messages",
        leading_system: false,
        text_history: None,
        text_block: None,
        beside: None,
    };

    type Visited = (RequestPart, String, Option<CacheTtl>);

    #[derive(Default)]
    struct Recorder(Vec<Visited>);

    impl<'a> OutlineVisitor<'a> for Recorder {
        fn visit_block(&mut self, block: OutlineBlock<'a, '_>) {
            self.0.push((block.part, block.path, block.marker));
        }
    }

    fn visit(json: &str) -> Result<Vec<Visited>, &'static str> {
        let mut recorder = Recorder::default();
        let body = Fields::parse(json).unwrap();
        visit_request(&Sample, &SHAPE, &body, &mut recorder)?;
        Ok(recorder.0)
    }

    #[test]
    fn own_block_markers_belong_to_the_block_before() {
        let marker = r#"{"cachePoint":{"type":"default"}}"#;
        let blocks = visit(&format!(
            r#"{{"messages":[{{"role":"user","content":[{marker},{{"text":"cachePoint"}},{marker},{{"text":"b"}}]}}],
            "system":[{{"text":"s"}},{marker}],"toolConfig":{{"tools":[{{"toolSpec":{{}}}}]}}}}"#
        ));
        let block = |part, path: &str, marker| (part, path.to_owned(), marker);
        let usual = Some(CacheTtl::Usual);
        let expected = [
            block(RequestPart::Tools, "toolConfig.tools[0]", None),
            block(RequestPart::System, "system[0]", usual),
            block(RequestPart::Messages, "messages[0].content[1]", usual),
            block(RequestPart::Messages, "messages[0].content[3]", None),
        ];
        assert_eq!(blocks.unwrap(), expected);
    }

    #[test]
    fn body_without_a_list_of_messages_is_refused() {
        for json in [r#"{}"#, r#"{"messages":"a"}"#, r#"{"messages":[1]}"#] {
            assert_eq!(visit(json), Err(SHAPE.expected), "{json}");
        }
    }
}
