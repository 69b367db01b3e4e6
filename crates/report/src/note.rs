//! What is said of a report beside its segments: a name and a sentence each, for tables and pages alike.
//!
//! Equal kinds of repairs are one note, and so is everything that is not shown.

use contexture_catalogue::CacheKind;
use contexture_catalogue::Money;
use contexture_condense::READ_TOOL;
use contexture_prompt_cache::CacheReport;

use crate::document::{
    OmitReason, RemovedTool, Repair, Report, Rewriting, Segment, SegmentVerdict, TargetReport,
};
use crate::number_format::{count_with_noun, group_thousands};

/// How many links and places are named before the rest is a number.
const NAMED: usize = 3;

/// A note: its name and its text.
pub(crate) type ReportNote = (&'static str, String);

/// Everything beside the segments, in the order to read it.
pub(crate) fn report_notes(report: &Report) -> Vec<ReportNote> {
    let epoch = &report.epoch;
    let state = if epoch.opened { "opened" } else { "continued" };
    let mut notes = vec![
        ("target", target_note(&report.target)),
        (
            "epoch",
            format!("{} {state}: {}", epoch.number, epoch.reason.as_str()),
        ),
    ];
    notes.extend(count_note(report).map(|text| ("count", text)));
    notes.extend(cache_note(&report.cache).map(|text| ("cache", text)));
    notes.extend(cached_content_note(&report.cache).map(|text| ("cache", text)));
    notes.extend(rewriting_note(&report.cache).map(|text| ("clearing", text)));
    notes.extend(preview_notes(report));
    notes.extend(standing_note(report).map(|text| ("standing", text)));
    notes.extend(omitted_note(report).map(|text| ("omitted", text)));
    let declined = report.compaction_declined;
    notes.extend(declined.map(|why| ("compaction", format!("none was made: {why}"))));
    let missing = report.summary_missing.as_ref();
    notes.extend(missing.map(|why| ("summary", format!("none of a model: {why}"))));
    notes.extend(unreachable_note(report).map(|text| ("dropped", text)));
    notes.extend(tools_note(&report.removed_tools).map(|text| ("tools", text)));
    notes.extend(
        repair_notes(&report.repairs)
            .into_iter()
            .map(|text| ("repaired", text)),
    );
    notes.extend(report.losses.iter().map(|loss| ("lost", loss.to_string())));
    notes.push((
        "payload",
        format!(
            "{} bytes, {}, {}",
            group_thousands(report.payload.bytes as u64),
            count_with_noun(report.totals.messages as u64, "message"),
            report.payload.fingerprint
        ),
    ));
    notes
}

/// The rules that are quoted, and those for which there was no room.
fn standing_note(report: &Report) -> Option<String> {
    let standing = report.standing.as_ref()?;
    let shown = count_with_noun(standing.shown.len() as u64, "rule");
    let tokens = count_with_noun(standing.tokens, "token");
    let mut text = format!("{shown}, {tokens}");
    let named = standing.left_out.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|rule| format!("turn {} ({})", rule.turn, rule.id))
        .collect();
    if !named.is_empty() {
        let count = standing.left_out.len();
        let more = match count - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text = format!("{text}; {count} without room: {}{more}", named.join(", "));
    }
    Some(text)
}

fn target_note(target: &TargetReport) -> String {
    format!(
        "{} · {} · window {}, reserve {}",
        target.format,
        target.model,
        group_thousands(target.window),
        group_thousands(target.reserve)
    )
}

/// What became of the cache object.
fn cached_content_note(cache: &CacheReport) -> Option<String> {
    let content = cache.content.as_ref()?;
    let name = &content.name;
    Some(match content.ignored {
        None => format!(
            "{name} holds {} tokens of it",
            group_thousands(content.tokens)
        ),
        Some(why) => format!("{name} is not used: {}", why.as_str()),
    })
}

/// How many registered tools are not offered, and the first of them.
fn tools_note(removed: &[RemovedTool]) -> Option<String> {
    let named = removed.iter().take(NAMED);
    let named = named.map(|one| format!("{} ({})", one.tool, one.reasons.join(", ")));
    let named: Vec<String> = named.collect();
    let more = if removed.len() > NAMED { ", …" } else { "" };
    let count = count_with_noun(removed.len() as u64, "tool");
    (!removed.is_empty()).then(|| format!("{count} not offered: {}{more}", named.join(", ")))
}

/// What a segment is called, without what its band says already.
pub(crate) fn segment_name(segment: &Segment) -> String {
    // "rounds  rounds 3–9" and "system  …" would say a word twice.
    let plain = segment.source == segment.band || segment.label.starts_with("round");
    match (plain, segment.label.is_empty()) {
        (true, _) => segment.label.clone(),
        (false, true) => segment.source.clone(),
        (false, false) => format!("{}  {}", segment.source, segment.label),
    }
}

/// What became of a segment and by which rule.
pub(crate) fn verdict_text(segment: &Segment) -> String {
    let word = segment.verdict.as_str();
    if segment.verdict == SegmentVerdict::Kept {
        return word.to_owned();
    }
    // The rule of a history that was treated says what was done: "2 outputs previewed".
    let told = match segment.verdict {
        SegmentVerdict::Cleared | SegmentVerdict::Shortened => segment.band == "history",
        _ => segment.rule.contains(word),
    };
    let mut text = if segment.rule.is_empty() || told {
        segment.rule.clone()
    } else {
        format!("{word}: {}", segment.rule)
    };
    if text.is_empty() {
        word.clone_into(&mut text);
    }
    let omitted = segment.omitted_tokens;
    match (omitted, segment.tokens) {
        (0, _) => text,
        // Nothing of it is left, so there is no "after".
        (_, 0) => format!("{text}, {} tokens", group_thousands(omitted)),
        (_, after) => format!(
            "{text}, {} → {}",
            group_thousands(after.saturating_add(omitted)),
            group_thousands(after)
        ),
    }
}

/// The sum in a few words.
pub(crate) fn certainty_text(report: &Report) -> String {
    let totals = &report.totals;
    let (low, high) = (group_thousands(totals.low), group_thousands(totals.upper));
    let certainty = if totals.exact {
        format!("{low} … {high}, text exact")
    } else {
        // The span may be wide where a vocabulary is not public, so it is said which figure is which.
        format!("estimate: between {low} and {high}")
    };
    format!("of {} · {certainty}", group_thousands(report.target.limit))
}

/// How far the count is to be trusted: what stays unused because of it, and what happens if the provider counts more.
fn count_note(report: &Report) -> Option<String> {
    let totals = &report.totals;
    let mut words = Vec::new();
    let share = percent_of(totals.uncertain, report.target.limit);
    // A part in a thousand is what framing makes of any request.
    if share >= 0.1 {
        words.push(format!(
            "{} · up to {} tokens, {share:.1} % of the window, may stay unused because the count is an estimate",
            totals.count,
            group_thousands(totals.uncertain),
        ));
    }
    if totals.refusal_percent > 0.0 {
        words.push(format!(
            "refused as too long in about {:.1} of 100 such requests, then compiled once more by the upper bound and sent again",
            totals.refusal_percent
        ));
    }
    if !totals.unbounded.is_empty() {
        words.push(format!(
            "no upper bound holds for {}",
            totals.unbounded.join(", ")
        ));
    }
    (!words.is_empty()).then(|| words.join(" · "))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share is shown with one decimal"
)]
fn percent_of(tokens: u64, limit: u64) -> f64 {
    tokens as f64 * 100.0 / limit.max(1) as f64
}

/// What is expected of the cache; nothing where there is none.
fn cache_note(cache: &CacheReport) -> Option<String> {
    if cache.kind == CacheKind::None {
        return None;
    }
    let used = &cache.predicted;
    let mut words = Vec::new();
    if !cache.markers.is_empty() {
        words.push(count_with_noun(cache.markers.len() as u64, "mark"));
    }
    words.push(format!(
        "predicted read {}, write {}, fresh {}",
        group_thousands(used.read),
        group_thousands(used.write.saturating_add(used.write_long)),
        group_thousands(used.fresh)
    ));
    if let (Some(cost), Some(uncached)) = (cache.cost, cache.cost_uncached) {
        let now = rounded_dollars(cost);
        words.push(match cost.checked_sub(uncached) {
            // A first request fills the cache for those that follow: that is no loss.
            Some(0) if cache.first => now,
            Some(filling) if cache.first => {
                format!(
                    "{now}, of which {} fill the cache",
                    rounded_dollars(filling)
                )
            }
            _ => format!("{now} instead of {}", rounded_dollars(uncached)),
        });
    }
    if cache.first {
        words.push("first request".to_owned());
    }
    Some(words.join(" · "))
}

fn rounded_dollars(pico: u64) -> String {
    Money::from_pico_dollars(u128::from(pico)).to_rounded_string()
}

/// Whether it paid to clear what did not have to be.
fn rewriting_note(cache: &CacheReport) -> Option<String> {
    let worth = cache.rewriting?;
    let [saving, cost] =
        [worth.saving, worth.cost].map(|pico| u64::try_from(pico).unwrap_or(u64::MAX));
    let (saving, cost) = (rounded_dollars(saving), rounded_dollars(cost));
    Some(if worth.rewrite {
        format!("saves {saving} over the calls to come, costs {cost} now: done")
    } else {
        format!("would save {saving} over the calls to come and cost {cost} now: not done")
    })
}

/// The links of what is shown in part.
fn preview_notes(report: &Report) -> Vec<ReportNote> {
    let all: Vec<_> = report
        .rewritten
        .iter()
        .filter(|one| one.rewriting == Rewriting::Previewed)
        .collect();
    let mut notes: Vec<ReportNote> = all
        .iter()
        .take(NAMED)
        .map(|one| {
            let (before, after) = (
                group_thousands(one.tokens_before),
                group_thousands(one.tokens_after),
            );
            let link = one.link.as_ref();
            let link = link.map(|link| format!("  {link}")).unwrap_or_default();
            let text = format!("items[{}] {before} → {after}{link}", one.index);
            ("preview", text)
        })
        .collect();
    if all.len() > NAMED {
        let more = group_thousands((all.len() - NAMED) as u64);
        notes.push(("preview", format!("and {more} more")));
    }
    notes
}

/// Which items are not in the payload, by reason.
fn omitted_note(report: &Report) -> Option<String> {
    let mut counts: Vec<(OmitReason, usize)> = Vec::new();
    for span in &report.omitted {
        match counts.iter_mut().find(|(why, _)| *why == span.reason) {
            Some((_, items)) => *items += span.items,
            None => counts.push((span.reason, span.items)),
        }
    }
    let all: usize = counts.iter().map(|(_, items)| items).sum();
    let reasons = counts
        .iter()
        .map(|(why, items)| format!("{} {}", group_thousands(*items as u64), why.as_str()));
    let reasons: Vec<String> = reasons.collect();
    (all > 0).then(|| {
        format!(
            "{} of {}: {}",
            group_thousands(all as u64),
            count_with_noun(report.totals.items as u64, "item"),
            reasons.join(", ")
        )
    })
}

/// What the model can no longer see, and whether it can still read it.
fn unreachable_note(report: &Report) -> Option<String> {
    let hidden = |why| match why {
        OmitReason::Trimmed | OmitReason::Cleared | OmitReason::BoundThinking => true,
        // What stands for it says what it was; only its own words are gone, and those can be read.
        OmitReason::Covered => report.readable,
        _ => false,
    };
    // What no model was meant to see is not missed.
    let spans = report.omitted.iter().filter(|span| hidden(span.reason));
    let items: usize = spans.map(|span| span.items).sum();
    let rewritten = report.rewritten.iter();
    let outputs = rewritten.filter(|one| one.rewriting != Rewriting::ThinkingText);
    let outputs = outputs.count();
    let mut what = Vec::new();
    if items > 0 {
        what.push(count_with_noun(items as u64, "item"));
    }
    if outputs > 0 {
        what.push(format!(
            "{} in full",
            count_with_noun(outputs as u64, "output")
        ));
    }
    if what.is_empty() {
        return None;
    }
    let (what, verb) = (
        what.join(" and "),
        if items + outputs == 1 { "is" } else { "are" },
    );
    let whole = |segment: &Segment| segment.band == "history" || segment.omitted_tokens == 0;
    // A repair may drop an item for good, and a shortened contribution is not in the store: "nothing" would be wrong then.
    let repaired = report
        .omitted
        .iter()
        .any(|span| span.reason == OmitReason::Repaired);
    Some(match report.readable {
        true if report.segments.iter().all(whole) && !repaired => {
            format!("nothing is out of reach: {what} {verb} one `{READ_TOOL}` away")
        }
        true => format!("{what} {verb} one `{READ_TOOL}` away"),
        false => format!("{what} {verb} out of the model's reach: `{READ_TOOL}` is not offered"),
    })
}

/// The repairs, those that say the same once.
fn repair_notes(repairs: &[Repair]) -> Vec<String> {
    let mut kinds: Vec<(String, Vec<&Repair>)> = Vec::new();
    for repair in repairs {
        // A long history repeats one repair hundreds of times with other names, which would hide the rest.
        let generic_reason = without_quoted_names(&repair.reason);
        match kinds.iter_mut().find(|(known, _)| *known == generic_reason) {
            Some((_, same)) => same.push(repair),
            None => kinds.push((generic_reason, vec![repair])),
        }
    }
    let note = |(generic_reason, same): (String, Vec<&Repair>)| match same.as_slice() {
        [one] => match one.index {
            Some(at) => format!("items[{at}] {}", one.reason),
            None => one.reason.clone(),
        },
        many => format!(
            "{}{}",
            repeated_repair_text(&generic_reason, many),
            index_list(many)
        ),
    };
    kinds.into_iter().map(note).collect()
}

/// What a repair says without the names it quotes.
fn without_quoted_names(why: &str) -> String {
    // Every second piece between quotes stands within them.
    why.split('"').step_by(2).collect::<Vec<_>>().join("…")
}

fn repeated_repair_text(generic_reason: &str, same: &[&Repair]) -> String {
    let is_of_ids = same.iter().all(|repair| repair.what == "call_id");
    match (is_of_ids, generic_reason.contains("used twice")) {
        (true, true) => format!(
            "{} used twice, rewritten",
            count_with_noun(same.len() as u64, "call id")
        ),
        (true, false) => format!(
            "{} refused by the target, rewritten",
            count_with_noun(same.len() as u64, "call id")
        ),
        (false, _) => format!(
            "{} times: {generic_reason}",
            group_thousands(same.len() as u64)
        ),
    }
}

fn index_list(repairs: &[&Repair]) -> String {
    let all = repairs.iter().filter_map(|repair| repair.index);
    let mut named: Vec<String> = all.map(|at| at.to_string()).collect();
    if named.is_empty() {
        return String::new();
    }
    if named.len() > 2 * NAMED {
        named.truncate(2 * NAMED);
        named.push("…".to_owned());
    }
    format!(" (items {})", named.join(", "))
}
