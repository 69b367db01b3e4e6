//! What the report says beside its segments.

use contexture_catalogue::Catalogue;
use contexture_compile::{
    Compiler, HistoryPolicy, OmitReason, Omitted, PathItem, Repair, Report, Rewriting, Rewritten,
    SegmentVerdict, Target, Width, explain_items, read_tool, render_html, render_table,
};
use contexture_wire::{Format, Loss, LossKind};
use proptest::prelude::*;

use crate::fixtures::{Quarter, assistant, call, once, output, request, user};

/// A report of a session of two messages.
pub(crate) fn plain() -> Report {
    let target = Target::anthropic("claude-sonnet-5").tools(vec![read_tool()]);
    let items = [
        user("Where is the bell?"),
        assistant("In the tower."),
        user("Which?"),
    ];
    let compiled = Compiler::new(Catalogue::builtin()).compile(&items, &target);
    compiled.unwrap().report
}

fn repair(index: usize, what: &str, why: String) -> Repair {
    Repair {
        index: Some(index),
        what: what.to_owned(),
        reason: why,
    }
}

fn preview(index: usize) -> Rewritten {
    Rewritten {
        index,
        rewriting: Rewriting::Previewed,
        link: Some(format!("context://vfs/{index:032x}")),
        tokens_before: 14_112,
        tokens_after: 640,
    }
}

/// The report of a long session.
pub(crate) fn eventful() -> Report {
    let ids = (0..4).map(|at| {
        let why = format!("call id \"call_{at}\" is used twice; written as \"call_{at}_2\"");
        repair(20 + at, "call_id", why)
    });
    let open = (0..9).map(|at| {
        let why = "a call without an output; a placeholder was put behind it";
        repair(40 + at, "unanswered_call", why.to_owned())
    });
    let alone = repair(
        60,
        "empty_message",
        "a message that says nothing; taken out".to_owned(),
    );
    Report {
        repairs: ids.chain(open).chain([alone]).collect(),
        rewritten: (10..15).map(preview).collect(),
        omitted: vec![Omitted {
            first: 1,
            last: 1_204,
            items: 1_204,
            reason: OmitReason::Trimmed,
        }]
        .into(),
        ..plain()
    }
}

fn notes(report: &Report, width: usize) -> Vec<String> {
    let table = render_table(report, Width(width));
    let (_, notes) = table.split_once("\n\n").unwrap();
    notes.lines().map(str::to_owned).collect()
}

#[test]
fn what_repeats_is_said_once() {
    let notes = notes(&eventful(), 100);
    for expected in [
        "  preview   items[10] 14,112 → 640  context://vfs/0000000000000000000000000000000a",
        "  preview   and 2 more",
        "  omitted   1,204 of 3 items: 1,204 trimmed",
        "  repaired  4 call ids used twice, rewritten (items 20, 21, 22, 23)",
        "  repaired  9 times: a call without an output; a placeholder was put behind it (items 40, 41, 42,",
        "            43, 44, 45, …)",
        "  repaired  items[60] a message that says nothing; taken out",
    ] {
        assert!(
            notes.iter().any(|line| line == expected),
            "{expected}: {notes:#?}"
        );
    }
}

#[test]
fn nothing_is_out_of_reach_only_where_it_can_be_read() {
    let line = |report: &Report| {
        let all = notes(report, 120);
        all.into_iter().find(|line| line.starts_with("  dropped"))
    };
    let report = eventful();
    assert!(report.readable);
    let said = line(&report).unwrap();
    assert_eq!(
        said,
        "  dropped   nothing is out of reach: 1,204 items and 5 outputs in full are one `read_context` away"
    );
    // What repair took out, and what there was no room for, is not promised.
    let mut repaired = eventful();
    let single = Omitted {
        first: 2_000,
        last: 2_000,
        items: 1,
        reason: OmitReason::Repaired,
    };
    repaired.omitted.change(|omitted| omitted.push(single));
    let mut squeezed = eventful();
    squeezed.segments[0].omitted_tokens = 7;
    for report in [repaired, squeezed] {
        let said = line(&report).unwrap();
        assert_eq!(
            said,
            "  dropped   1,204 items and 5 outputs in full are one `read_context` away"
        );
    }
    let unreadable = Report {
        readable: false,
        ..eventful()
    };
    assert!(
        line(&unreadable)
            .unwrap()
            .ends_with("`read_context` is not offered")
    );
    // For what is covered something stands.
    let covered = |readable| Report {
        readable,
        rewritten: Vec::new().into(),
        omitted: vec![Omitted {
            first: 1,
            last: 40,
            items: 40,
            reason: OmitReason::Covered,
        }]
        .into(),
        ..plain()
    };
    assert_eq!(line(&covered(false)), None);
    assert_eq!(
        line(&covered(true)).unwrap(),
        "  dropped   nothing is out of reach: 40 items are one `read_context` away"
    );
    assert_eq!(line(&plain()), None);
}

#[test]
fn no_line_is_wider_than_the_table_and_no_word_is_lost() {
    let report = eventful();
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let widest = words(&render_table(&report, Width(4_000)));
    for width in [60, 72, 80, 100, 120] {
        let table = render_table(&report, Width(width));
        for line in table.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert_eq!(words(&table), widest, "{width}:\n{table}");
    }
    for line in render_table(&report, Width(20)).lines() {
        assert!(line.chars().count() <= 20, "{line}");
    }
    let mut hostile = eventful();
    "\u{1b}[2J\u{202e}\n".clone_into(&mut hostile.segments[0].label);
    let bad = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    let table = render_table(&hostile, Width(100));
    assert!(!table.contains(bad));
    assert_eq!(
        table.lines().count(),
        render_table(&report, Width(100)).lines().count()
    );
}

/// What breaks out of text, attributes, styles and comments where it is not made harmless.
const HOSTILE: [&str; 12] = [
    "</td><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</style>",
    "</title>",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "\u{202e}",
    "\0",
    "\n",
    "x",
];

/// The eventful report with this text wherever a text of others can stand.
fn with_text(text: &str) -> Report {
    let mut report = eventful();
    text.clone_into(&mut report.target.model);
    text.clone_into(&mut report.target.encoding);
    text.clone_into(&mut report.payload.fingerprint);
    for segment in &mut report.segments {
        for field in [&mut segment.source, &mut segment.label, &mut segment.rule] {
            text.clone_into(field);
        }
        segment.omitted_tokens = 5;
    }
    report.repairs.change(|repairs| {
        for repair in repairs {
            text.clone_into(&mut repair.what);
            text.clone_into(&mut repair.reason);
        }
    });
    report.rewritten.change(|rewritten| {
        for one in rewritten {
            one.link = Some(text.to_owned());
        }
    });
    for mark in &mut report.cache.markers {
        text.clone_into(&mut mark.ends);
    }
    report.losses = vec![Loss {
        path: text.to_owned(),
        what: LossKind::Field,
        why: text.to_owned(),
    }]
    .into();
    report
}

/// The page's markup: everything between `<` and `>`, what is quoted left out.
fn markup(page: &str) -> Vec<String> {
    let tags = page.split('<').skip(1);
    let tags = tags.map(|tag| tag.split('>').next().unwrap_or_default());
    tags.map(|tag| tag.split('"').step_by(2).collect())
        .collect()
}

proptest! {
    #[test]
    fn no_text_becomes_markup(pieces in prop::collection::vec(prop::sample::select(&HOSTILE[..]), 0..6)) {
        let text = format!("x{}", pieces.concat());
        let page = render_html(&with_text(&text), &text);
        prop_assert_eq!(markup(&page), markup(&render_html(&with_text("x"), "x")));
        let bad = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        prop_assert!(!page.contains(bad));
    }
}

#[test]
fn the_picture_is_to_scale_and_says_everything() {
    let mut report = eventful();
    report.target.window = 20_000;
    report.target.reserve = 5_000;
    report.target.limit = 15_000;
    report.segments[0].tokens = 5_000;
    report.totals.tokens = 10_000;
    let page = render_html(&report, "support & sons");
    for expected in [
        "<title>support &amp; sons</title>",
        // A third of the space, without a style of its own.
        "<rect x=\"0.000%\" y=\"18\" width=\"33.333%\" height=\"40\"/>",
        "10,000 of 15,000 tokens; 5,000 more are kept free for the answer",
        "prefers-color-scheme: dark",
        "<dt>repaired</dt><dd>4 call ids used twice, rewritten (items 20, 21, 22, 23)</dd>",
        "<td>1–1204</td><td>trimmed</td>",
        "<code>context://vfs/0000000000000000000000000000000a</code>",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    for outside in [
        "<script", "http://", "https://", "src=", "href=", "style=", "url(h", "@import",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    // A window of nothing has no picture, and no division by it.
    let mut empty = report;
    empty.target.window = 0;
    empty.target.limit = 0;
    empty.totals.tokens = u64::MAX;
    assert!(render_html(&empty, "").contains("</html>"));
}

#[test]
fn each_item_has_one_line_that_agrees_with_the_report() {
    let output = |id: &str| output(id, &"fn main() { println!(\"bell\"); }\n".repeat(40));
    let mut items = vec![user("Read the files.")];
    for at in 0..9 {
        let id = format!("c{at}");
        items.push(call(&id, &format!("{{\"path\":\"{at}.rs\"}}")));
        items.push(output(&id));
    }
    items.extend([assistant("Done."), user("And now?")]);
    let path = PathItem::from_items(items);
    let mut small = request(Format::Anthropic, 1_600);
    small.history = HistoryPolicy::for_one_call();
    let report = once(&path, &[], &small).unwrap().report;
    let lines = explain_items(&report, &path, &small, &Quarter);
    let omitted: usize = report.omitted.iter().map(|span| span.items).sum();
    assert!(omitted > 0 && !report.rewritten.is_empty(), "{report:#?}");
    assert_eq!(lines.len(), omitted + report.rewritten.len());
    assert!(lines.is_sorted_by(|a, b| a.index < b.index));
    for line in &lines {
        let item = &path[line.index];
        assert_eq!(line.link, format!("context://vfs/{}", item.hash));
        assert!(
            line.tokens > line.shown && !line.rule.is_empty(),
            "{line:?}"
        );
    }
    // What was trimmed weighs in the lines what it weighs in the report.
    let trimmed = lines.iter().filter(|line| line.verdict == "trimmed");
    let trimmed: u64 = trimmed.map(|line| line.tokens).sum();
    let rows = report
        .segments
        .iter()
        .filter(|one| one.verdict == SegmentVerdict::Trimmed);
    let reported: u64 = rows.map(|row| row.omitted_tokens).sum();
    assert!(reported <= trimmed, "{reported} of {trimmed}");
    // A shorter path than the report's is no reason to fall over.
    assert!(explain_items(&report, &path[..1], &small, &Quarter).is_empty());
}
