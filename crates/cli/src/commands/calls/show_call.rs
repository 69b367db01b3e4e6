//! One call: its figures, and what its request was made of.

use contexture::Engine;
use contexture::compile::{BandError, BandPart, CallBand, SegmentRule, SegmentVerdict};
use contexture::ir::{CallId, Owner};
use contexture::store::{CallOutcome, CallRecord};
use contexture_api::operations::{CallPart, describe_call};
use contexture_api::{CallDocument, format_timestamp};

use crate::commands::calls::{UNKNOWN, show_money};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{clip_to_width, group_thousands, one_line};
use crate::output::table::{Column, format_table};
use crate::output::terminal::{Stream, column_count};
use crate::output::write;

/// Shows one call.
///
/// # Errors
/// There is none of this id, or the database cannot be read.
pub(super) async fn show_call(
    engine: &Engine,
    owner: &Owner,
    id: CallId,
    globals: &Globals,
) -> Outcome {
    let found = engine.past_call(owner, id).await?;
    let call = found.ok_or_else(|| unknown_call(id))?;
    let call = call.record();
    if globals.json {
        write::print_json(&CallDocument::with_band(call))?;
        return Ok(Exit::Done);
    }
    let columns = column_count(Stream::Output);
    let mut out = call_facts(call, columns);
    match call.band.as_deref().map(CallBand::from_bytes) {
        Some(Ok(band)) => out.push_str(&band_table(&band, columns)),
        Some(Err(error @ BandError::UnknownVersion { .. })) => {
            out.push_str(&format!(
                "\n{error}; a later version of contexture shows it\n"
            ));
        }
        Some(Err(error)) => out.push_str(&format!("\n{error}\n")),
        None => out.push_str(describe_without_band(call)),
    }
    write::print_styled(&out)?;
    Ok(Exit::Done)
}

fn unknown_call(id: CallId) -> Failure {
    let message = format!("call req_{id} not found; `contexture calls` lists those that are kept");
    Failure::new(Exit::Refused, "not_found", message)
}

/// Writes a part of one call as JSON: alone, or with `--json` as the API gives it, within the call.
///
/// # Errors
/// There is no such call, it has no such part, or the database cannot be read.
pub(super) async fn write_part(
    engine: &Engine,
    owner: &Owner,
    id: CallId,
    part: CallPart,
    globals: &Globals,
) -> Outcome {
    let found = describe_call(engine, owner, id, &[part]).await?;
    let call = found.ok_or_else(|| unknown_call(id))?;
    if globals.json {
        write::print_json(&call)?;
        return Ok(Exit::Done);
    }
    // Of the parts only the one is there that was asked for.
    let request = call.sent.or(call.came);
    let request = request.map(|shown| (shown.request, shown.exact, shown.missing));
    let report = call.report;
    let report = report.map(|shown| (shown.report, shown.exact, shown.missing));
    let (text, exact, missing) = match (request.or(report), call.answer) {
        (Some(shown), _) => shown,
        (None, Some(answer)) => match answer.missing {
            Some(missing) => (None, None, Some(missing)),
            None => {
                write::print_json(&answer)?;
                return Ok(Exit::Done);
            }
        },
        (None, None) => (None, None, None),
    };
    let Some(text) = text else {
        let why = missing.unwrap_or_else(|| "it has none".to_owned());
        let message = format!("call req_{id}: {why}");
        return Err(Failure::new(Exit::Refused, "missing_part", message));
    };
    write::print_text(text.get())?;
    if exact == Some(false) && !globals.quiet {
        write::print_warning(match part {
            CallPart::Came => {
                "made again of the conversation's items: the client's own bytes were not kept (`bodies` of the server's configuration keeps them)"
            }
            _ => {
                "not byte for byte what was sent: another version of contexture compiled it, or something was redacted"
            }
        });
    }
    Ok(Exit::Done)
}

/// What is said of a request that nothing is known of but its figures.
fn describe_without_band(call: &CallRecord) -> &'static str {
    match call.outcome {
        CallOutcome::Blocked => "\nnot sent\n",
        _ if call.details.is_rewritten => "\nrewritten before it was sent\n",
        _ => "\nsent as it came\n",
    }
}

/// What is known of a call, one fact a line.
fn call_facts(call: &CallRecord, columns: usize) -> String {
    let (names, details) = (&call.names, &call.details);
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let tokens = details.tokens.map(|tokens| {
        format!(
            "{} in ({} from the cache, {} written to it), {} out",
            group_thousands(tokens.input),
            group_thousands(tokens.cache_read),
            group_thousands(tokens.cache_written),
            group_thousands(tokens.output)
        )
    });
    let time = match details.first_byte_ms {
        // Nobody measured it: an answer that a program recorded.
        None if details.duration_ms == 0 => None,
        Some(first) => Some(format!(
            "{} ms, first byte after {} ms",
            group_thousands(details.duration_ms),
            group_thousands(first)
        )),
        None => Some(format!("{} ms", group_thousands(details.duration_ms))),
    };
    let predicted = details.prediction.as_ref().map(|prediction| {
        let money = |pico: Option<u64>| match pico {
            None => UNKNOWN.to_owned(),
            Some(pico) => show_money(pico.into()),
        };
        let (sent, passed) = (prediction.sent_pico_dollars, prediction.passed_pico_dollars);
        format!("input {}, as it came {}", money(sent), money(passed))
    });
    let status = details.status.map(|status| status.to_string());
    let facts = [
        ("call", Some(format!("req_{}", call.id))),
        ("at", Some(format_timestamp(call.id.time_ms()))),
        ("outcome", Some(call.outcome.as_str().to_owned())),
        (
            "refused for",
            details.refusal.as_ref().map(|why| why.replace('_', " ")),
        ),
        ("status", status),
        ("finish", details.finish.clone()),
        ("upstream", text(&names.upstream)),
        ("model", text(&names.model)),
        ("format", text(&details.format)),
        ("key", text(&names.key)),
        ("policy", text(&names.policy)),
        (
            "conversation",
            call.conversation.as_ref().map(ToString::to_string),
        ),
        (
            "response",
            call.response.map(|response| response.to_string()),
        ),
        ("time", time),
        ("attempts", Some(details.attempts.to_string())),
        ("tokens", tokens),
        (
            "cost",
            details.pico_dollars.map(|pico| show_money(pico.into())),
        ),
        ("predicted", predicted),
    ];
    fact_lines(facts, columns)
}

/// Facts that are known, one a line, no line wider than `columns`.
fn fact_lines<const N: usize>(facts: [(&str, Option<String>); N], columns: usize) -> String {
    let line = |(name, text): (&str, Option<String>)| {
        let line = clip_to_width(&one_line(&format!("{name:<12}  {}", text?)), columns);
        Some(format!("{line}\n"))
    };
    facts.into_iter().filter_map(line).collect()
}

/// What a request was made of, part by part, and what became of the provider's cache.
fn band_table(band: &CallBand, columns: usize) -> String {
    let head = [
        Column::words("band", 10),
        Column::words("part", 10),
        Column::figure("tokens"),
        Column::figure("items"),
        Column::words("verdict", 10),
        Column::figure("left out"),
        Column::words("rule", 10),
    ];
    let some = |number: u64| match number {
        0 => String::new(),
        number => group_thousands(number),
    };
    let items = |part: &BandPart| match part.span {
        Some((first, last)) if first != last => format!("{first}–{last}"),
        Some((first, _)) => first.to_string(),
        None => some(part.items),
    };
    let word = |word: Option<&str>| word.unwrap_or("several").replace('_', " ");
    let row = |part: &BandPart| {
        vec![
            word(part.band),
            word(part.source),
            group_thousands(part.tokens),
            items(part),
            word(part.verdict.map(SegmentVerdict::as_str)),
            some(part.omitted_tokens),
            word(part.rule.map(SegmentRule::as_str)),
        ]
    };
    let rows: Vec<Vec<String>> = band.parts.iter().map(row).collect();
    let mut out = format!("\n{}\n", format_table(&head, &rows, columns));
    let broken = band.prefix_break.as_ref().map(|broken| {
        let price = broken.pico_dollars.map(|pico| show_money(pico.into()));
        format!(
            "{}, {} tokens sent anew{}",
            broken.reason.as_str().replace('_', " "),
            group_thousands(broken.lost_tokens),
            price.map_or_else(String::new, |price| format!(" for {price}"))
        )
    });
    let joined = band.is_joined.then(|| "neighbours are one part".to_owned());
    let notes = [
        (
            "tokens",
            Some(format!(
                "{} of {}",
                group_thousands(band.tokens()),
                group_thousands(band.limit)
            )),
        ),
        (
            "cache",
            Some(format!(
                "{} read, {} written",
                group_thousands(band.cache_read),
                group_thousands(band.cache_written)
            )),
        ),
        ("prefix broke", broken),
        ("joined", joined),
    ];
    out.push_str(&fact_lines(notes, columns));
    out
}
