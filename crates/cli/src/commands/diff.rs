//! `contexture diff`: where the second of two requests leaves the cache that the first filled.

use clap::Args;
use contexture::Format;
use contexture::catalogue::Money;
use contexture::catalogue::{Catalogue, ModelSpec};
use contexture::compile::{CacheDiff, DiffTarget, Difference, cache_diff};
use contexture::tokens::{Encoding, counter_for};
use contexture_api::operations::parse_call_id;
use owo_colors::OwoColorize as _;
use serde_json::Value;

use crate::database::{self, WhenMissing};
use crate::input::InputSource;
use crate::options::default_model;
use crate::options::globals::Globals;
use crate::options::parse_values::{parse_tokens, wire_format};
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{LongWords, clip_to_width, group_thousands, one_line, wrap_words};
use crate::output::terminal::{Stream, column_count};
use crate::output::write;
use crate::session;

/// Compare two requests as the provider's prompt cache does
///
/// Shows where the second stops beginning like the first, why, and what that costs. Exit code 1 if it
/// loses cached tokens, so that a pipeline fails when an edit breaks the cache.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture diff last.json next.json
  contexture compile session.json --to anthropic | contexture diff last.json - --from anthropic
  contexture diff last.json next.json --model gpt-5.6 --tolerate 500 --json
  contexture diff req_019aa2f0b1c27d3e8f40516273849506 req_019aa2f0c2d38e4f9051627384950617

Exit codes: 0 if the second begins with everything of the first that is cached, or loses at
most the tokens to be tolerated; 1 if the prefix breaks. Marks (cache_control) are not
compared. If the first carries marks, what stands behind its last one may change.")]
pub(crate) struct Arguments {
    /// The earlier request, in JSON; `-`: standard input; the id of a call: as it was sent
    first: String,
    /// The later request, in the same way
    second: String,
    /// The format of both; default: detected
    #[arg(long, visible_alias = "to", value_parser = wire_format())]
    from: Option<Format>,
    /// The model they go to; default: the one they name
    #[arg(long, short)]
    model: Option<String>,
    /// How many tokens may be billed again before it counts as a break
    #[arg(long, value_name = "TOKENS", default_value = "0", value_parser = parse_tokens)]
    tolerate: u64,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be read or is no request, or the model is not known.
pub(crate) fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let sources =
        [&arguments.first, &arguments.second].map(|name| InputSource::from(name.as_str()));
    // The first would read it to its end, and the second would find nothing.
    if sources.iter().all(|source| *source == InputSource::Stdin) {
        return Err(Failure::usage("only one of the two can be standard input"));
    }
    let [first, second] = &sources;
    let (old, _) = read_request(first, globals)?;
    let (new, written_in) = read_request(second, globals)?;
    let format = match arguments.from.or(written_in) {
        Some(format) => format,
        None => session::document_format(&new, &arguments.second)?,
    };
    let model = resolve_model(arguments, format, &new)?;
    let target = DiffTarget {
        format,
        model,
        counter: counter_for(resolve_encoding(model, format)?),
    };
    let found = cache_diff(&old, &new, &target).map_err(|error| {
        let why = std::error::Error::source(&error).map_or(String::new(), |why| format!(": {why}"));
        Failure::bad_input("not_a_request", format!("{error}{why}"))
            .with_hint("name the format of both with --from FORMAT")
    })?;
    if globals.json {
        write::print_json(&found)?;
    } else {
        write::print_styled(&format_diff(&found))?;
    }
    // Without a tolerance a break counts, even where it costs no tokens.
    let lost = found.rebilled > arguments.tolerate || arguments.tolerate == 0;
    Ok(if found.holds || !lost {
        Exit::Done
    } else {
        Exit::Findings
    })
}

/// Reads a request: of a file, of standard input, or of a call of the record as it was sent, with its format.
fn read_request(source: &InputSource, globals: &Globals) -> Outcome<(String, Option<Format>)> {
    let InputSource::File(path) = source else {
        return Ok((source.read_text()?, None));
    };
    // Files go first: a file may be called like a call.
    let name = path.to_str().filter(|name| name.starts_with("req_"));
    let id = name.filter(|_| !path.exists()).and_then(parse_call_id);
    let Some(id) = id else {
        return Ok((source.read_text()?, None));
    };
    crate::runtime::block_on(async {
        let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
        let owner = database::resolve_owner(globals)?;
        let refused = |why: &dyn std::fmt::Display| {
            Failure::new(
                Exit::Refused,
                "missing_part",
                format!("call req_{id}: {why}"),
            )
        };
        let Some(call) = engine.past_call(&owner, id).await? else {
            return Err(refused(&"it is not in the record"));
        };
        let sent = call.request_as_sent().await?.map_err(|why| refused(&why))?;
        if !sent.is_exact && !globals.quiet {
            write::print_warning(&format!("req_{id} is not byte for byte what was sent"));
        }
        Ok((sent.json, Some(sent.format)))
    })
}

/// The model's encoding, else that of the format's default model.
fn resolve_encoding(model: Option<&ModelSpec>, format: Format) -> Outcome<Encoding> {
    Ok(match model {
        Some(model) => model.encoding,
        None => {
            Catalogue::builtin()
                .resolve(default_model::default_model(format))?
                .encoding
        }
    })
}

/// The model named, else the one the request names if the catalogue knows it.
fn resolve_model(
    arguments: &Arguments,
    format: Format,
    request: &str,
) -> Outcome<Option<&'static ModelSpec>> {
    if let Some(name) = &arguments.model {
        return Ok(Some(Catalogue::builtin().resolve(name)?));
    }
    // What is not JSON names no model; the comparison itself tells what is wrong with it.
    let request: Value = serde_json::from_str(request).unwrap_or_default();
    let named = request.get("model").and_then(Value::as_str);
    let known = named.and_then(|name| Catalogue::builtin().resolve(name).ok());
    if known.is_none() {
        let what = named.map_or("the request names no model".to_owned(), |name| {
            format!("the catalogue has no model {name:?}")
        });
        write::print_warning(&format!(
            "{what}: no prices and no minimum; --model NAME says which it is (for {format}, say, {})",
            default_model::default_model(format)
        ));
    }
    Ok(known)
}

fn format_diff(found: &CacheDiff) -> String {
    let columns = column_count(Stream::Output);
    let mut out = String::new();
    let mut line = |label: &str, text: &str| {
        let line = format!("  {label:<11}{text}\n");
        let fitted = match label {
            // Excerpts: the files themselves have the rest.
            "-" | "+" => clip_to_width(line.trim_end(), columns) + "\n",
            _ => wrap_words(&line, columns, 13, LongWords::Keep),
        };
        out.push_str(&fitted);
    };
    line("prefix", &describe_prefix(found));
    if let Some(one) = &found.difference {
        write_difference(one, &mut line);
    }
    let read = format!(
        "{} of {} tokens, at a best guess",
        group_thousands(found.read),
        group_thousands(found.tokens)
    );
    line("read", &read);
    if found.rebilled > 0 {
        line("re-billed", &describe_rebilled(found));
    }
    if let Some(one) = found.difference.as_ref().filter(|_| !found.holds) {
        line("hint", one.hint);
    }
    out
}

/// Whether the cached prefix holds, and where it breaks.
fn describe_prefix(found: &CacheDiff) -> String {
    match &found.difference {
        None => format!("{}: one begins with the whole other", "holds".green()),
        Some(_) if found.holds => format!(
            "{}: they differ only behind what is cached",
            "holds".green()
        ),
        Some(one) => format!(
            "{} at byte {} of {}",
            "breaks".red().bold(),
            group_thousands(one.byte as u64),
            group_thousands(one.bytes as u64)
        ),
    }
}

/// The tokens that are billed again, and what they cost where prices are known.
fn describe_rebilled(found: &CacheDiff) -> String {
    let money = found.money.map_or_else(String::new, |money| {
        format!(
            ", {} instead of {}",
            Money::from_pico_dollars(money.now).to_short_string(),
            Money::from_pico_dollars(money.cached).to_short_string()
        )
    });
    format!("{} tokens{money}", group_thousands(found.rebilled))
}

fn write_difference(one: &Difference, line: &mut impl FnMut(&str, &str)) {
    let tool = one
        .tool
        .as_ref()
        .map_or_else(String::new, |name| format!(", tool `{}`", one_line(name)));
    line("where", &format!("{}{tool}", one_line(&one.path)));
    line("reason", one.reason);
    line("-", &one_line(&one.before));
    line("+", &one_line(&one.after));
}
