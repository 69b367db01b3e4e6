//! The checks that every compile must pass, computed apart from the code under test.

use contexture_compile::{
    BandPart, CallBand, CompileRequest, Compiled, Content, Contribution, EpochReason, Framing,
    MAX_BAND_BYTES, OmitReason, PathItem, Report, SegmentVerdict, TokenCounter,
};
use contexture_ir::{Item, Output, Part, Role};
use contexture_wire::Format;

/// The tokens of the required segments of a well-formed history, summed without the compile crate:
/// framing, system prompt, first user message, newest user message, last round.
pub(crate) fn required_sum(
    path: &[PathItem],
    system: &[Contribution],
    request: &CompileRequest,
    counter: &dyn TokenCounter,
) -> u64 {
    let framing = Framing::for_format(request.dialect.format);
    let mut sum = framing.request.high;
    for contribution in system {
        let Content::Instructions(messages) = &contribution.content else {
            panic!("sessions have instructions only");
        };
        let parts = messages.iter().flat_map(|message| &message.content);
        sum += framing.system.high + parts.map(|part| part_tokens(part, counter)).sum::<u64>();
    }
    let items: Vec<&Item> = path.iter().map(|entry| &*entry.item).collect();
    let start = last_round(&items);
    let users: Vec<usize> = (0..items.len()).filter(|at| is_users(items[*at])).collect();
    let mut required: Vec<usize> = [users.first(), users.last()]
        .into_iter()
        .flatten()
        .copied()
        .filter(|at| *at < start)
        .collect();
    required.dedup();
    for at in required {
        sum += text(items[at], counter) + framing.message.high;
    }
    let last = &items[start..];
    sum += last.iter().map(|item| text(item, counter)).sum::<u64>();
    sum += framing.message.high * elements(request.dialect.format, last);
    for item in last {
        sum += match item {
            Item::FunctionCall(_) => framing.call.high,
            Item::FunctionCallOutput(_) => framing.output.high,
            _ => 0,
        };
    }
    let spoken_to = matches!(request.dialect.format, Format::Anthropic | Format::Gemini);
    if spoken_to && last.last().is_some_and(|item| item.is_model_output()) {
        sum += counter.count(contexture_wire::CONTINUE).high + framing.message.high;
    }
    sum
}

/// Back over outputs, the step that made the calls, and the user side it answers.
fn last_round(items: &[&Item]) -> usize {
    let back = |from: usize, is: fn(&Item) -> bool| {
        (0..from)
            .rev()
            .find(|at| !is(items[*at]))
            .map_or(0, |at| at + 1)
    };
    let outputs = back(items.len(), |item| {
        matches!(item, Item::FunctionCallOutput(_))
    });
    let step = back(outputs, Item::is_model_output);
    back(step, |item| {
        item.role().is_some_and(|role| role != Role::Assistant)
    })
}

/// How many messages (contents, items) the format makes of them.
fn elements(format: Format, items: &[&Item]) -> u64 {
    let class = |item: &Item| match item {
        Item::FunctionCallOutput(_) => 'o',
        item if item.is_model_output() => 'm',
        _ => 'u',
    };
    let classes: String = items.iter().map(|item| class(item)).collect();
    let groups = |which: &str| {
        let starts = classes
            .char_indices()
            .filter(|(at, class)| which.contains(*class) && !classes[..*at].ends_with(*class));
        starts.count() as u64
    };
    let each = |which: char| classes.matches(which).count() as u64;
    match format {
        Format::OpenAiResponses => items.len() as u64,
        Format::OpenAiChat => each('u') + groups("m") + each('o'),
        _ => groups("umo"),
    }
}

fn is_users(item: &Item) -> bool {
    item.role() == Some(Role::User)
}

fn part_tokens(part: &Part, counter: &dyn TokenCounter) -> u64 {
    counter.count(part.as_text().unwrap()).high
}

fn text(item: &Item, counter: &dyn TokenCounter) -> u64 {
    let parts = |parts: &[Part]| parts.iter().map(|part| part_tokens(part, counter)).sum();
    match item {
        Item::Message(message) => parts(&message.content),
        Item::FunctionCall(call) => {
            counter.count(&call.name).high + counter.count(&call.arguments).high
        }
        Item::FunctionCallOutput(output) => match &output.output {
            Output::Text(text) => counter.count(text).high,
            Output::Parts(list) => parts(list),
        },
        other => panic!("not in the sessions: {}", other.kind()),
    }
}

/// Law 7: the sums, and every item of the path explained exactly once.
pub(crate) fn check_report(compiled: &Compiled, path: &[PathItem], place: &str) {
    let report = &compiled.report;
    let sum: u64 = report.segments.iter().map(|segment| segment.tokens).sum();
    assert_eq!(sum, report.totals.tokens, "{place}: segments and total");
    assert!(
        sum <= report.target.limit,
        "{place}: {sum} of {}",
        report.target.limit
    );
    assert_eq!(
        report.target.limit,
        report.target.window - report.target.reserve
    );
    assert_eq!(
        compiled.payload.to_json().len(),
        report.payload.bytes,
        "{place}: bytes"
    );

    let mut seen = vec![false; path.len()];
    for span in &report.omitted {
        assert_eq!(span.last + 1 - span.first, span.items, "{place}: {span:?}");
        for at in span.first..=span.last {
            assert!(
                !std::mem::replace(&mut seen[at], true),
                "{place}: items[{at}] explained twice"
            );
            if span.reason == OmitReason::Audience {
                assert!(!path[at].audience.model, "{place}: items[{at}]");
            }
        }
    }
    let kept: usize = report
        .segments
        .iter()
        .filter(|segment| segment.verdict.is_in_payload())
        .map(|segment| segment.items)
        .sum();
    let omitted = seen.iter().filter(|seen| **seen).count();
    assert_eq!(
        kept + omitted,
        path.len(),
        "{place}: kept {kept}, omitted {omitted}"
    );
    for segment in &report.segments {
        let nothing = matches!(
            segment.verdict,
            SegmentVerdict::Trimmed | SegmentVerdict::Dropped
        );
        assert!(!nothing || segment.tokens == 0, "{place}: {segment:?}");
    }
    check_band(report, path.len(), place);
}

/// What is stored of a call has the sums of its report, and names items that are there.
fn check_band(report: &Report, items: usize, place: &str) {
    let band = CallBand::from_report(report);
    let bytes = band.to_bytes();
    assert!(bytes.len() <= MAX_BAND_BYTES, "{place}: {}", bytes.len());
    let stored = CallBand::from_bytes(&bytes).unwrap();
    assert_eq!(stored.tokens(), report.totals.tokens, "{place}");
    let kept = |parts: &[BandPart]| parts.iter().map(|part| part.items).sum::<u64>();
    assert_eq!(kept(&stored.parts), kept(&band.parts), "{place}");
    assert_eq!(stored.path_items, items as u64, "{place}");
    for part in &stored.parts {
        if let Some((first, last)) = part.span {
            assert!(first <= last && last < items as u64, "{place}: {part:?}");
        }
        let is_history = part.band == Some("history") && part.items > 0;
        assert!(!is_history || part.span.is_some(), "{place}: {part:?}");
    }
    let is_broken = report.epoch.opened && report.epoch.reason != EpochReason::First;
    assert_eq!(stored.prefix_break.is_some(), is_broken, "{place}");
}
