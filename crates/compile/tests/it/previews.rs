//! Previews: long outputs as head, error lines, tail and link.

use contexture_compile::{
    Link, PreviewPolicy, Previewed, Previewer, READ_TOOL, TextSize, ToolPreview,
};
use contexture_ir::{ContentHash, FunctionCallOutput, Item, Output, Part};
use contexture_tokens::{Encoding, counter_for};
use proptest::prelude::*;

fn link() -> Link {
    Link::new(ContentHash::of(b"an output"))
}

fn previewer(policy: &PreviewPolicy) -> Previewer<'_> {
    Previewer {
        policy,
        counter: counter_for(Encoding::O200kBase),
    }
}

fn preview(text: &str) -> Option<String> {
    let policy = PreviewPolicy::default();
    previewer(&policy)
        .preview_text(text, link())
        .map(|preview| preview.text)
}

fn output(output: Output) -> Item {
    FunctionCallOutput::new("c1", output).into()
}

fn item(item: &Item, tool: Option<&str>, policy: &PreviewPolicy) -> Option<Previewed> {
    let hash = ContentHash::of(item.to_json().as_bytes());
    previewer(policy).preview_item(item, hash, tool)
}

fn log(lines: usize) -> String {
    (1..=lines).map(|n| format!("line {n}\n")).collect()
}

#[test]
fn a_long_output_is_head_error_lines_tail_and_a_link() {
    let text = log(5_000).replace("line 2000\n", "E: build failed\n");
    let policy = PreviewPolicy {
        threshold: TextSize::Characters(1_000),
        head: 30,
        tail: 30,
        ..PreviewPolicy::default()
    };
    let preview = previewer(&policy).preview_text(&text, link()).unwrap();
    assert_eq!(
        preview.text,
        format!(
            "line 1\nline 2\nline 3\nline 4\n\
             [shortened here: 48841 of 48899 characters, lines 5-4997 of 5000; whole text: {}]\n\
             [1 of 1 lines in it that report errors:]\n\
             2000: E: build failed\n\
             [the end:]\n\
             line 4998\nline 4999\nline 5000\n",
            link()
        )
    );
    let facts = preview.facts;
    let shown: Vec<&str> = facts
        .shown_ranges
        .iter()
        .map(|range| &text[range.clone()])
        .collect();
    assert_eq!(
        shown,
        [
            "line 1\nline 2\nline 3\nline 4\n",
            "E: build failed",
            "line 4998\nline 4999\nline 5000\n"
        ]
    );
    let seen: usize = shown.iter().map(|shown| shown.len()).sum();
    assert_eq!((facts.lines, facts.error_lines), (5_000, 1));
    assert_eq!(facts.omitted_bytes as usize + seen, text.len());
}

#[test]
fn what_fits_is_left_alone() {
    assert_eq!(preview(&"a".repeat(5_000)), None);
    assert!(preview(&"a".repeat(5_001)).is_some());
    // Characters are not bytes.
    assert_eq!(preview(&"ü".repeat(5_000)), None);
    assert!(preview(&"ü".repeat(5_001)).is_some());
}

#[test]
fn a_threshold_counts_in_the_unit_it_names() {
    let text = "ü".repeat(1_500);
    let over = |threshold| {
        let policy = PreviewPolicy {
            threshold,
            ..PreviewPolicy::default()
        };
        previewer(&policy).preview_text(&text, link())
    };
    assert_eq!(over(TextSize::Characters(1_500)), None);
    assert_eq!(over(TextSize::Bytes(3_000)), None);
    assert!(over(TextSize::Bytes(2_999)).unwrap().text.len() <= 2_999);
    let tokens = counter_for(Encoding::O200kBase).count(&text).high;
    assert_eq!(over(TextSize::Tokens(tokens)), None);
    let dense = "\u{10348}".repeat(2_000);
    let policy = PreviewPolicy {
        threshold: TextSize::Tokens(2_000),
        ..PreviewPolicy::default()
    };
    let preview = previewer(&policy).preview_text(&dense, link()).unwrap();
    let counter = counter_for(Encoding::O200kBase);
    assert!(counter.count(&preview.text).high <= 2_000);
}

#[test]
fn one_line_of_json_still_shows_something() {
    let json = format!("{{\"rows\":[{}0]}}\n", "1234567,".repeat(10_000));
    let preview = preview(&json).unwrap();
    assert!(preview.starts_with("{\"rows\":[1234567,1234567,"));
    assert!(preview.ends_with("1234567,1234567,0]}\n"));
    assert!(preview.chars().count() > 3_000, "{preview}");
    // A short first line does not swallow the head either.
    let text = format!("ok\n{}", "x".repeat(10_000));
    assert!(
        self::preview(&text)
            .unwrap()
            .starts_with(&format!("ok\n{}", "x".repeat(900)))
    );
}

#[test]
fn no_character_is_ever_cut() {
    for piece in ["👩‍👩‍👧‍👦", "🇩🇪", "é\u{301}", "क्षि", "\r\n"] {
        let text = piece.repeat(6_000);
        let preview = preview(&text).unwrap();
        let head = preview
            .split("\n[shortened")
            .next()
            .unwrap()
            .trim_end_matches('\r');
        let tail = preview.rsplit("]\n").next().unwrap();
        assert_eq!(head.replace(piece.trim_end(), "").trim(), "", "{piece}");
        assert_eq!(tail.replace(piece.trim_end(), "").trim(), "", "{piece}");
    }
}

#[test]
fn a_preview_names_no_place_of_this_machine() {
    let text = preview(&log(5_000)).unwrap();
    let own = text.lines().filter(|line| !line.starts_with("line "));
    let own: Vec<&str> = own.collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(
        !own[0].replace("context://vfs/", "").contains('/'),
        "{own:?}"
    );
}

#[test]
fn a_text_that_imitates_a_preview_is_a_text() {
    let real = preview(&log(5_000)).unwrap();
    assert_eq!(preview(&real), None);
    let marker = real.lines().find(|line| line.starts_with('['));
    let imitation = format!("{}\n{}", marker.unwrap(), log(5_000));
    let seen = preview(&imitation).unwrap();
    assert_eq!(seen.matches("[shortened here:").count(), 2);
    assert!(seen.contains(&format!("of {} characters", imitation.chars().count())));
}

#[test]
fn texts_are_taken_together_and_media_stay() {
    let image = Part::parse(r#"{"type":"input_image","image_url":"data:image/png;base64,AA=="}"#);
    let unknown = Part::parse(r#"{"type":"acme:chart","data":[1]}"#).unwrap();
    let parts = vec![
        Part::parse(r#"{"type":"input_text","text":"first","mark":1}"#).unwrap(),
        image.unwrap(),
        Part::input_text(log(1_000)),
        unknown,
        Part::input_text("last"),
    ];
    let policy = PreviewPolicy::default();
    let original = output(Output::Parts(parts.clone()));
    let previewed = item(&original, None, &policy).unwrap();
    let Item::FunctionCallOutput(now) = &previewed.item else {
        panic!("an output stays an output");
    };
    let Output::Parts(now) = &now.output else {
        panic!("parts stay parts");
    };
    let kinds: Vec<&str> = now.iter().map(Part::kind).collect();
    assert_eq!(kinds, ["input_text", "input_image", "acme:chart"]);
    assert_eq!((&now[1], &now[2]), (&parts[1], &parts[3]));
    assert!(now[0].extra().unwrap().get("mark").is_some());
    let text = now[0].as_text().unwrap();
    assert!(text.starts_with("first\nline 1\n") && text.ends_with("line 1000\n\nlast"));
    assert_eq!(previewed.facts.bytes as usize, original.text().len());
    assert_eq!(item(&previewed.item, None, &policy), None);
}

#[test]
fn tools_may_be_different() {
    let policy = PreviewPolicy {
        tools: [
            ("cat".to_owned(), ToolPreview::Never),
            (
                "grep".to_owned(),
                ToolPreview::By(Box::new(PreviewPolicy {
                    threshold: TextSize::Characters(1_000),
                    ..PreviewPolicy::default()
                })),
            ),
        ]
        .into(),
        ..PreviewPolicy::default()
    };
    let short = output(Output::Text(log(200)));
    let long = output(Output::Text(log(2_000)));
    let shown = |output: &Item, tool| item(output, tool, &policy).is_some();
    assert_eq!([shown(&short, None), shown(&long, None)], [false, true]);
    assert_eq!(
        [shown(&short, Some("ls")), shown(&long, Some("ls"))],
        [false, true]
    );
    assert_eq!(
        [shown(&short, Some("cat")), shown(&long, Some("cat"))],
        [false, false]
    );
    assert_eq!(
        [shown(&short, Some("grep")), shown(&long, Some("grep"))],
        [true, true]
    );
    let default = PreviewPolicy::default();
    assert_eq!(item(&long, Some(READ_TOOL), &default), None);
}

#[test]
fn only_outputs_are_previewed_and_keep_what_else_they_say() {
    let policy = PreviewPolicy::default();
    let said = contexture_ir::Message::text(contexture_ir::Role::User, log(2_000));
    assert_eq!(item(&said.into(), None, &policy), None);
    let json = format!(
        r#"{{"type":"function_call_output","id":"o","call_id":"c","output":"{}","is_error":true,"status":"completed","x":1}}"#,
        "long ".repeat(2_000)
    );
    let original = Item::parse(&json).unwrap();
    let previewed = item(&original, None, &policy).unwrap().item;
    let (Item::FunctionCallOutput(before), Item::FunctionCallOutput(after)) =
        (original, &previewed)
    else {
        panic!("an output stays an output");
    };
    let mut expected = before.clone();
    expected.output = after.output.clone();
    assert_eq!(after, &expected);
    assert_ne!(after.output, before.output);
}

fn policies() -> impl Strategy<Value = PreviewPolicy> {
    let threshold = (0..3, 0u64..3_000).prop_map(|(unit, size)| match unit {
        0 => TextSize::Characters(size),
        1 => TextSize::Bytes(size),
        _ => TextSize::Tokens(size),
    });
    (threshold, 0usize..4_000, 0usize..4_000, 0usize..20).prop_map(
        |(threshold, head, tail, error_lines)| PreviewPolicy {
            threshold,
            head,
            tail,
            error_lines,
            ..PreviewPolicy::default()
        },
    )
}

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z \n]{0,40}",
        "\\PC{0,20}",
        Just("error: it failed\r\n".to_owned()),
        Just("👩‍👩‍👧‍👦".to_owned()),
        Just("\u{301}\u{301}".to_owned()),
        Just("[shortened here: 1 of 2 characters]\n".to_owned()),
        Just(format!("whole text: {}\n", link())),
    ];
    (proptest::collection::vec(piece, 1..30), 1usize..60)
        .prop_map(|(pieces, times)| pieces.concat().repeat(times))
}

proptest! {
    #[test]
    fn a_preview_is_smaller_and_stays_as_it_is(text in texts(), policy in policies()) {
        let previewer = previewer(&policy);
        if let Some(preview) = previewer.preview_text(&text, link()) {
            prop_assert!(preview.text.len() < text.len());
            prop_assert_eq!(previewer.preview_text(&preview.text, link()), None);
            prop_assert!(preview.text.contains(&link().to_string()));
            let (mut end, mut seen) = (0, 0);
            for range in &preview.facts.shown_ranges {
                prop_assert!(range.start >= end && range.start < range.end, "{:?}", preview.facts);
                prop_assert!(text.get(range.clone()).is_some());
                end = range.end;
                seen += range.len();
            }
            prop_assert_eq!(preview.facts.omitted_bytes as usize, text.len() - seen);
        }
    }
}
