//! `contexture read`: what a link names, whole, in part, or the lines that match.

use clap::Args;
use contexture::compile::Link;
use contexture::compile::reading::{
    Excerpt, FindOptions, FoundLines, Matcher, Pattern, TextPosition, extract_excerpt, find_lines,
};
use contexture::engine::{LinkTarget, MessageView};
use contexture_api::{ExcerptDocument, FoundDocument};

use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{count_with_noun, printable_lines};
use crate::output::write;

/// Read what a context://vfs/… link names
#[derive(Debug, Args)]
#[command(after_long_help = "\
A link names an item of the branch's path by the hash of its bytes: it stands in previews of long
tool outputs, and in `search` results of the built-in tool.

Examples:
  contexture read support-42 context://vfs/0123456789abcdef0123456789abcdef
  contexture read support-42 context://vfs/… --lines 120..180
  contexture read support-42 context://vfs/… --grep 'error|panic' --regex --around 2")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// The link
    link: String,
    /// These lines only, both ends included: 120..180, 120.., ..180
    #[arg(long, value_name = "FROM..TO", conflicts_with = "grep")]
    lines: Option<String>,
    /// Only lines that have this text, in any case
    #[arg(long, value_name = "PATTERN")]
    grep: Option<String>,
    /// The pattern is a regular expression
    #[arg(long, requires = "grep")]
    regex: bool,
    /// So many lines around each that matches
    #[arg(long, value_name = "NUMBER", default_value = "0", requires = "grep")]
    around: usize,
    /// On this branch instead of the active one
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, branch or item, or the link, the lines or the pattern cannot be read.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let link: Link = arguments
        .link
        .parse()
        .map_err(|error| Failure::usage(format!("{error}")))?;
    let branch = arguments.branch.as_deref();
    let lines = arguments
        .lines
        .as_deref()
        .map_or(Ok((1, u64::MAX)), parse_line_range)?;
    let matcher = arguments
        .grep
        .as_deref()
        .map(|text| build_matcher(text, arguments.regex));
    let matcher = matcher.transpose()?;
    let chat = database::open_conversation(globals, &arguments.conversation, branch).await?;
    let linked = chat.resolve_link(link, MessageView::User).await?;
    match matcher {
        Some(matcher) => {
            let which = FindOptions {
                from: 1,
                context: arguments.around,
                // A terminal or pipe takes any amount; limits are for models.
                limit: usize::MAX,
                characters: usize::MAX,
            };
            print_matches(
                &linked,
                &find_lines(&linked.text, &matcher, &which),
                globals,
            )
        }
        None => {
            let (from, to) = lines;
            let count = to.saturating_sub(from).saturating_add(1);
            let part = extract_excerpt(
                &linked.text,
                TextPosition::line_start(from),
                count,
                usize::MAX,
            );
            print_excerpt(&linked, &part, globals)
        }
    }
}

fn build_matcher(text: &str, regex: bool) -> Outcome<Matcher> {
    let pattern = if regex {
        Pattern::Regex(text.to_owned())
    } else {
        Pattern::Text(text.to_owned())
    };
    Matcher::new(&pattern).map_err(|error| Failure::usage(format!("--grep: {error}")))
}

/// Both ends of `from..to`, either of which may be left out.
fn parse_line_range(text: &str) -> Outcome<(u64, u64)> {
    let end = |text: &str, absent: u64| match text {
        "" => Some(absent),
        digits => digits.parse().ok().filter(|line| *line > 0),
    };
    let ends = text.split_once("..");
    let ends = ends.and_then(|(from, to)| Some((end(from, 1)?, end(to, u64::MAX)?)));
    ends.filter(|(from, to)| from <= to).ok_or_else(|| {
        let expected = "expected FROM..TO, FROM.. or ..TO, the first line being 1";
        Failure::usage(format!("--lines {text:?}: {expected}"))
    })
}

fn print_excerpt(linked: &LinkTarget, part: &Excerpt<'_>, globals: &Globals) -> Outcome {
    if globals.json {
        write::print_json(&ExcerptDocument::new(linked, part))?;
    } else if !part.text.is_empty() {
        write::print_text(&printable_lines(part.text))?;
    } else if !globals.quiet {
        let count = count_with_noun(part.lines, "line");
        write::print_note(&format!("nothing there: it has {count}\n"));
    }
    Ok(Exit::Done)
}

fn print_matches(linked: &LinkTarget, found: &FoundLines, globals: &Globals) -> Outcome {
    if globals.json {
        write::print_json(&FoundDocument::new(linked, found))?;
        return Ok(Exit::Done);
    }
    let mut out = String::new();
    let mut before = None;
    for line in &found.lines {
        // As grep does: lines that do not follow one another are parted.
        if before.is_some_and(|before| before + 1 < line.number) {
            out.push_str("--\n");
        }
        let mark = if line.matches { ':' } else { '-' };
        out.push_str(&format!("{}{mark}{}\n", line.number, line.text));
        before = Some(line.number);
    }
    if !out.is_empty() {
        write::print_text(&printable_lines(&out))?;
    } else if !globals.quiet {
        write::print_note("no line matches\n");
    }
    Ok(Exit::Done)
}
