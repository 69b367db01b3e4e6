//! What is said of a report beside its segments: a name and a sentence each, for tables and pages alike.
//!
//! Equal kinds of repairs are one note, and so is everything that is not shown.

use contexture_catalogue::CacheKind;

use crate::cache::report::CacheReport;
use crate::reading::READ_TOOL;
use crate::report::document::{
    OmitReason, RemovedTool, Repair, Report, Rewriting, Segment, Verdict,
};
use crate::report::figures::{counted, dollars, grouped};

/// How many links and places are named before the rest is a number.
const NAMED: usize = 3;

/// A note: its name and its text.
pub(crate) type Note = (&'static str, String);

/// Everything beside the segments, in the order to read it.
pub(crate) fn notes(report: &Report) -> Vec<Note> {
    let (target, epoch) = (&report.target, &report.epoch);
    let state = if epoch.opened { "opened" } else { "continued" };
    let mut notes = vec![
        (
            "target",
            format!(
                "{} · {} · window {}, reserve {}",
                target.format,
                target.model,
                grouped(target.window),
                grouped(target.reserve)
            ),
        ),
        (
            "epoch",
            format!("{} {state}: {}", epoch.number, epoch.reason.as_str()),
        ),
    ];
    notes.extend(cache(&report.cache).map(|text| ("cache", text)));
    notes.extend(content(&report.cache).map(|text| ("cache", text)));
    notes.extend(rewriting(&report.cache).map(|text| ("clearing", text)));
    notes.extend(previewed(report));
    notes.extend(omitted(report).map(|text| ("omitted", text)));
    notes.extend(dropped(report).map(|text| ("dropped", text)));
    notes.extend(tools(&report.removed_tools).map(|text| ("tools", text)));
    notes.extend(
        repaired(&report.repairs)
            .into_iter()
            .map(|text| ("repaired", text)),
    );
    notes.extend(report.losses.iter().map(|loss| ("lost", loss.to_string())));
    notes.push((
        "payload",
        format!(
            "{} bytes, {}, {}",
            grouped(report.payload.bytes as u64),
            counted(report.totals.messages as u64, "message"),
            report.payload.fingerprint
        ),
    ));
    notes
}

/// What became of the cache object.
fn content(cache: &CacheReport) -> Option<String> {
    let content = cache.content.as_ref()?;
    let name = &content.name;
    Some(match content.ignored {
        None => format!("{name} holds {} tokens of it", grouped(content.tokens)),
        Some(why) => format!("{name} is not used: {}", why.as_str()),
    })
}

/// How many registered tools are not offered, and the first of them.
fn tools(removed: &[RemovedTool]) -> Option<String> {
    let named = removed.iter().take(NAMED);
    let named = named.map(|one| format!("{} ({})", one.tool, one.why.join(", ")));
    let named: Vec<String> = named.collect();
    let more = if removed.len() > NAMED { ", …" } else { "" };
    let count = counted(removed.len() as u64, "tool");
    (!removed.is_empty()).then(|| format!("{count} not offered: {}{more}", named.join(", ")))
}

/// What a segment is called, without what its band says already.
pub(crate) fn name(segment: &Segment) -> String {
    let plain = segment.source == segment.band || segment.label.starts_with("round");
    match (plain, segment.label.is_empty()) {
        (true, _) => segment.label.clone(),
        (false, true) => segment.source.clone(),
        (false, false) => format!("{}  {}", segment.source, segment.label),
    }
}

/// What became of a segment and by which rule.
pub(crate) fn verdict(segment: &Segment) -> String {
    let word = segment.verdict.as_str();
    if segment.verdict == Verdict::Kept {
        return word.to_owned();
    }
    // The rule of a history that was treated says what was done: "2 outputs previewed".
    let told = match segment.verdict {
        Verdict::Cleared | Verdict::Shortened => segment.band == "history",
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
        (_, 0) => format!("{text}, {} tokens", grouped(omitted)),
        (_, after) => format!(
            "{text}, {} → {}",
            grouped(after.saturating_add(omitted)),
            grouped(after)
        ),
    }
}

/// The sum in a few words.
pub(crate) fn certainty(report: &Report) -> String {
    let totals = &report.totals;
    let bounds = format!("{} … {}", grouped(totals.low), grouped(totals.tokens));
    let certainty = if totals.exact {
        format!("{bounds}, text exact")
    } else {
        format!("estimate, {bounds}")
    };
    format!("of {} · {certainty}", grouped(report.target.limit))
}

/// What is expected of the cache; nothing where there is none.
fn cache(cache: &CacheReport) -> Option<String> {
    if cache.kind == CacheKind::None {
        return None;
    }
    let used = &cache.predicted;
    let mut words = Vec::new();
    if !cache.marks.is_empty() {
        words.push(counted(cache.marks.len() as u64, "mark"));
    }
    words.push(format!(
        "predicted read {}, write {}, fresh {}",
        grouped(used.read),
        grouped(used.write.saturating_add(used.write_long)),
        grouped(used.fresh)
    ));
    if let (Some(cost), Some(uncached)) = (cache.cost, cache.cost_uncached) {
        words.push(format!(
            "{} instead of {}",
            dollars(cost),
            dollars(uncached)
        ));
    }
    if cache.first {
        words.push("first request".to_owned());
    }
    Some(words.join(" · "))
}

/// Whether it paid to clear what did not have to be.
fn rewriting(cache: &CacheReport) -> Option<String> {
    let worth = cache.rewriting?;
    let [saving, cost] =
        [worth.saving, worth.cost].map(|pico| u64::try_from(pico).unwrap_or(u64::MAX));
    let (saving, cost) = (dollars(saving), dollars(cost));
    Some(if worth.rewrite {
        format!("saves {saving} over the calls to come, costs {cost} now: done")
    } else {
        format!("would save {saving} over the calls to come and cost {cost} now: not done")
    })
}

/// The links of what is shown in part.
fn previewed(report: &Report) -> Vec<Note> {
    let all: Vec<_> = report
        .rewritten
        .iter()
        .filter(|one| one.how == Rewriting::Previewed)
        .collect();
    let mut notes: Vec<Note> = all
        .iter()
        .take(NAMED)
        .map(|one| {
            let (before, after) = (grouped(one.tokens_before), grouped(one.tokens_after));
            let text = format!("items[{}] {before} → {after}  {}", one.index, one.link);
            ("preview", text)
        })
        .collect();
    if all.len() > NAMED {
        let more = grouped((all.len() - NAMED) as u64);
        notes.push(("preview", format!("and {more} more")));
    }
    notes
}

/// Which items are not in the payload, by reason.
fn omitted(report: &Report) -> Option<String> {
    let mut counts: Vec<(OmitReason, usize)> = Vec::new();
    for span in &report.omitted {
        match counts.iter_mut().find(|(why, _)| *why == span.why) {
            Some((_, items)) => *items += span.items,
            None => counts.push((span.why, span.items)),
        }
    }
    let all: usize = counts.iter().map(|(_, items)| items).sum();
    let reasons = counts
        .iter()
        .map(|(why, items)| format!("{} {}", grouped(*items as u64), why.as_str()));
    let reasons: Vec<String> = reasons.collect();
    (all > 0).then(|| {
        format!(
            "{} of {}: {}",
            grouped(all as u64),
            counted(report.totals.items as u64, "item"),
            reasons.join(", ")
        )
    })
}

/// What the model can no longer see, and whether it can still read it.
fn dropped(report: &Report) -> Option<String> {
    let hidden = |why| match why {
        OmitReason::Trimmed | OmitReason::Cleared => true,
        // What stands for it says what it was; only its own words are gone, and those can be read.
        OmitReason::Covered => report.readable,
        _ => false,
    };
    let spans = report.omitted.iter().filter(|span| hidden(span.why));
    let items: usize = spans.map(|span| span.items).sum();
    let outputs = report.rewritten.len();
    let mut what = Vec::new();
    if items > 0 {
        what.push(counted(items as u64, "item"));
    }
    if outputs > 0 {
        what.push(format!("{} in full", counted(outputs as u64, "output")));
    }
    if what.is_empty() {
        return None;
    }
    let (what, verb) = (
        what.join(" and "),
        if items + outputs == 1 { "is" } else { "are" },
    );
    let whole = |segment: &Segment| segment.band == "history" || segment.omitted_tokens == 0;
    let repaired = report
        .omitted
        .iter()
        .any(|span| span.why == OmitReason::Repaired);
    Some(match report.readable {
        true if report.segments.iter().all(whole) && !repaired => {
            format!("nothing is out of reach: {what} {verb} one `{READ_TOOL}` away")
        }
        true => format!("{what} {verb} one `{READ_TOOL}` away"),
        false => format!("{what} {verb} out of the model's reach: `{READ_TOOL}` is not offered"),
    })
}

/// The repairs, those that say the same once.
fn repaired(repairs: &[Repair]) -> Vec<String> {
    let mut kinds: Vec<(String, Vec<&Repair>)> = Vec::new();
    for repair in repairs {
        let said = unnamed(&repair.why);
        match kinds.iter_mut().find(|(known, _)| *known == said) {
            Some((_, same)) => same.push(repair),
            None => kinds.push((said, vec![repair])),
        }
    }
    let note = |(said, same): (String, Vec<&Repair>)| match same.as_slice() {
        [one] => match one.index {
            Some(at) => format!("items[{at}] {}", one.why),
            None => one.why.clone(),
        },
        many => format!("{}{}", folded(&said, many), places(many)),
    };
    kinds.into_iter().map(note).collect()
}

/// What a repair says without the names it quotes.
fn unnamed(why: &str) -> String {
    why.split('"').step_by(2).collect::<Vec<_>>().join("…")
}

fn folded(said: &str, same: &[&Repair]) -> String {
    let is_of_ids = same.iter().all(|repair| repair.what == "call_id");
    match (is_of_ids, said.contains("used twice")) {
        (true, true) => format!(
            "{} used twice, rewritten",
            counted(same.len() as u64, "call id")
        ),
        (true, false) => format!(
            "{} refused by the target, rewritten",
            counted(same.len() as u64, "call id")
        ),
        (false, _) => format!("{} times: {said}", grouped(same.len() as u64)),
    }
}

fn places(repairs: &[&Repair]) -> String {
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
