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

/// The characters of an answer.
const CHARACTERS: usize = 16_000;
/// Matching lines unless another number is asked for, and the most.
const MATCHES: (u64, u64) = (50, 500);
/// Lines around a match at most.
const AROUND: usize = 20;

pub(crate) struct ReadLink;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The link: context://vfs/ and 32 hexadecimal digits, as previews, reports and other tools give it.
    link: String,
    /// The id of the conversation it stands in; may be left out if the link says ?conversation=.
    conversation: Option<String>,
    /// On this branch instead of the active one.
    branch: Option<String>,
    /// The line to begin with; 1 is the first. With `find`: only matches from this line on.
    #[schemars(range(min = 1))]
    from: Option<u64>,
    /// Characters of the first line to skip, for very long lines.
    column: Option<u64>,
    /// At most so many lines, or matching lines.
    #[schemars(range(min = 1))]
    lines: Option<u64>,
    /// The last so many lines, instead of `from` and `lines`.
    #[schemars(range(min = 1))]
    last: Option<u64>,
    /// Only lines with this text, in any case.
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
    /// The link.
    link: String,
    /// The id of the item it names.
    id: String,
    /// What that is.
    kind: ItemKind,
    /// Lines of the whole text.
    lines: u64,
    /// Characters of the whole text.
    characters: u64,
    /// Without `find`: the part that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<LinkPart>,
    /// With `find`: the lines that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<LineMatches>,
    /// Where to read on, if there is more: `from` and `column` of the next call.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<NextPosition>,
}

#[derive(Serialize, JsonSchema)]
struct LinkPart {
    /// Its first line.
    from: u64,
    /// Its last line, be it in part.
    to: u64,
    /// The text.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct LineMatches {
    /// How many lines match, those before `from` not counted.
    matches: u64,
    /// The lines that are shown.
    lines: Vec<LinkLine>,
}

#[derive(Serialize, JsonSchema)]
struct LinkLine {
    /// Its number; the first is 1.
    line: u64,
    /// Whether it matches, or stands around one that does.
    matches: bool,
    /// The line, with … where it was cut.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct NextPosition {
    /// The line.
    from: u64,
    /// Characters of it to skip.
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

/// Where to begin, and how many lines.
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
