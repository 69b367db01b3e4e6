//! `read_link`: what a link names, by lines, by its end, or the lines that match.

use contexture::compile::reading::{
    Excerpt, FindOptions, FoundLines, Matcher, Pattern, TextPosition, extract_excerpt, find_lines,
};
use contexture::engine::MessageView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::item_text::ItemKind;
use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;
use crate::uri::ScopedLink;

/// Maximum number of characters in an answer.
const CHARACTERS: usize = 16_000;
/// Default and maximum number of matching lines.
const MATCHES: (u64, u64) = (50, 500);
/// Maximum number of lines around a match.
const AROUND: usize = 20;

pub(crate) struct ReadLink;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Link to read: context://vfs/ and 32 hexadecimal digits, as previews, reports and other tools give it.
    link: String,
    /// Id of the conversation that the link is from; may be left out if the link contains ?conversation=.
    conversation: Option<String>,
    /// Name of the branch to use instead of the active one.
    branch: Option<String>,
    /// Number of the first line to read; 1 is the first. With `find`: only matches from this line on.
    #[schemars(range(min = 1))]
    from: Option<u64>,
    /// Characters of the first line to skip, for very long lines.
    column: Option<u64>,
    /// Maximum number of lines, or of matching lines.
    #[schemars(range(min = 1))]
    lines: Option<u64>,
    /// Number of lines to read at the end, instead of `from` and `lines`.
    #[schemars(range(min = 1))]
    last: Option<u64>,
    /// Text to find, ignoring case; only lines that contain it are returned.
    find: Option<String>,
    /// Whether `find` is a regular expression.
    #[serde(default)]
    regex: bool,
    /// Lines to show around each line that matches; default 0.
    #[serde(default)]
    #[schemars(range(max = 20))]
    around: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Link that was read.
    link: String,
    /// Id of the item that the link names.
    id: String,
    /// Kind of that item.
    kind: ItemKind,
    /// Number of lines in the full text.
    lines: u64,
    /// Number of characters in the full text.
    characters: u64,
    /// Part that was asked for, without `find`.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<LinkPart>,
    /// Lines that match, with `find`.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<LineMatches>,
    /// Position to read on from, if there is more: `from` and `column` of the next call.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<NextPosition>,
}

#[derive(Serialize, JsonSchema)]
struct LinkPart {
    /// Number of its first line.
    from: u64,
    /// Number of its last line, which may be cut.
    to: u64,
    /// Text of the part.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct LineMatches {
    /// Number of matching lines, without those before `from`.
    matches: u64,
    /// Matching lines and the lines around them.
    lines: Vec<LinkLine>,
}

#[derive(Serialize, JsonSchema)]
struct LinkLine {
    /// Number of the line; the first is 1.
    line: u64,
    /// Whether the line itself matches.
    matches: bool,
    /// Text of the line, with … where it was cut.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct NextPosition {
    /// Number of the line to begin with.
    from: u64,
    /// Number of characters of that line to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
}

impl Tool for ReadLink {
    const NAME: &'static str = "read_link";
    const TITLE: &'static str = "Read what a link names";
    const ABOUT: &'static str = "Reads what a context://vfs/... link names: a tool output or message that was \
        shortened, cleared or compacted. Gives its beginning, the lines from `from` on, its `last` lines, or with \
        `find` only the lines that match. Long answers are cut and say where to read on.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    type Arguments = Arguments;
    type Answer = Answer;

    async fn call(context: ToolContext, arguments: Arguments) -> Result<Answer, ToolError> {
        let within = ScopedLink::parse(&arguments.link)?;
        let named = within.conversation.as_ref().map(|id| id.as_str());
        let id = match (arguments.conversation.as_deref(), named) {
            // Guessing which one is meant could read another conversation than the model thinks.
            (Some(id), Some(other)) if id != other => {
                let message = format!("the link is of conversation {other:?}, not of {id:?}");
                return Err(
                    ToolError::invalid_arguments(message).with_hint("leave `conversation` out")
                );
            }
            (Some(id), _) | (None, Some(id)) => id,
            (None, None) => {
                return Err(ToolError::invalid_arguments("`conversation` is missing")
                    .with_hint("give the id of the conversation the link stands in"));
            }
        };
        let chat = context
            .open_conversation(id, arguments.branch.as_deref())
            .await?;
        let linked = chat.resolve_link(within.link, MessageView::User).await?;
        // Only for its counts of lines and characters, which every answer has; the text it cuts is
        // not used.
        let whole = extract_excerpt(&linked.text, TextPosition::line_start(1), 1, 1);
        let mut answer = Answer {
            link: within.link.to_string(),
            id: linked.node.id.to_string(),
            kind: linked.node.kind.into(),
            lines: whole.lines,
            characters: whole.characters,
            part: None,
            found: None,
            next: None,
        };
        match &arguments.find {
            Some(pattern) => {
                let found = find_lines(
                    &linked.text,
                    &build_matcher(pattern, &arguments)?,
                    &build_find_options(&arguments)?,
                );
                // A search goes on at a whole line.
                answer.next = found.next.map(|from| NextPosition { from, column: None });
                answer.found = Some(line_matches(found));
            }
            None => {
                let (from, lines) = resolve_span(&arguments, whole.lines)?;
                let part = extract_excerpt(&linked.text, from, lines, CHARACTERS);
                answer.next = part.next.map(|next| NextPosition {
                    from: next.line,
                    // A column only where a line longer than the page was cut inside.
                    column: Some(next.column).filter(|column| *column > 0),
                });
                answer.part = Some(link_part(&part));
            }
        }
        Ok(answer)
    }
}

fn build_matcher(pattern: &str, arguments: &Arguments) -> Result<Matcher, ToolError> {
    let pattern = match arguments.regex {
        true => Pattern::Regex(pattern.to_owned()),
        false => Pattern::Text(pattern.to_owned()),
    };
    Matcher::new(&pattern).map_err(|error| ToolError::invalid_arguments(format!("`find`: {error}")))
}

fn build_find_options(arguments: &Arguments) -> Result<FindOptions, ToolError> {
    // Refused and not ignored, so that the model does not take the answer for what it asked.
    if arguments.last.is_some() || arguments.column.is_some() {
        return Err(
            ToolError::invalid_arguments("`last` and `column` do not go with `find`")
                .with_hint("leave them out; `from` says where to begin"),
        );
    }
    // Clients need not check the bounds of the schema.
    let limit = arguments.lines.unwrap_or(MATCHES.0).clamp(1, MATCHES.1);
    Ok(FindOptions {
        from: arguments.from.unwrap_or(1),
        context: arguments.around.min(AROUND),
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        characters: CHARACTERS,
    })
}

/// Returns the position to begin at and the number of lines to read.
fn resolve_span(arguments: &Arguments, whole: u64) -> Result<(TextPosition, u64), ToolError> {
    // As above: options without effect are refused.
    if arguments.regex || arguments.around > 0 {
        return Err(
            ToolError::invalid_arguments("`regex` and `around` go with `find` only")
                .with_hint("give `find`, or leave them out"),
        );
    }
    let Some(last) = arguments.last else {
        let mut from = TextPosition::line_start(arguments.from.unwrap_or(1));
        from.column = arguments.column.unwrap_or(0);
        return Ok((from, arguments.lines.unwrap_or(u64::MAX)));
    };
    if arguments.from.is_some() || arguments.column.is_some() || arguments.lines.is_some() {
        return Err(ToolError::invalid_arguments(
            "`last` does not go with `from`, `column` and `lines`",
        )
        .with_hint("give `last` alone"));
    }
    // More lines than there are means all of them: then it begins at line 1.
    let first = whole.saturating_sub(last.max(1)).saturating_add(1);
    Ok((TextPosition::line_start(first), u64::MAX))
}

fn link_part(part: &Excerpt<'_>) -> LinkPart {
    LinkPart {
        from: part.from.line,
        to: part.last,
        text: part.text.to_owned(),
    }
}

fn line_matches(found: FoundLines) -> LineMatches {
    let lines = found.lines.into_iter().map(|line| LinkLine {
        line: line.number,
        matches: line.matches,
        text: line.text,
    });
    LineMatches {
        matches: found.matches,
        lines: lines.collect(),
    }
}
