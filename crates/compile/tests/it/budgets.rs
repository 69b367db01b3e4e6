//! Who gets how much, case by case: contributions, pinned text, refusals, audience, parameters.

use std::sync::Arc;

use contexture_compile::{
    Band, Budget, Compiled, Content, Contribution, OmitReason, PathItem, Refusal, SegmentVerdict,
    Stability,
};
use contexture_ir::{Audience, Raw, hint};
use contexture_render::XmlRenderer;
use contexture_wire::Format;

use crate::fixtures::{assistant, once, request, user};
use crate::invariants::check_report;

fn path() -> Vec<PathItem> {
    PathItem::from_items([user("hello"), assistant("good day"), user("what now?")])
}

/// A text of so many tokens.
fn text(tokens: usize) -> String {
    "word".repeat(tokens)
}

fn compiled(contributions: &[Contribution], limit: u64) -> Compiled {
    let path = path();
    let compiled = once(&path, contributions, &request(Format::OpenAiChat, limit)).unwrap();
    check_report(&compiled, &path, "budgets");
    compiled
}

/// The verdict and the tokens of each contribution, by source.
#[track_caller]
fn check(contributions: &[Contribution], limit: u64, expected: &[(&str, SegmentVerdict, u64)]) {
    let report = compiled(contributions, limit).report;
    let found: Vec<(&str, SegmentVerdict, u64)> = expected
        .iter()
        .map(|(source, ..)| {
            let own = |segment: &&contexture_compile::Segment| segment.source == *source;
            let segment = report.segments.iter().find(own).unwrap();
            (*source, segment.verdict, segment.tokens)
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn contributions_take_what_their_budgets_allow() {
    let system = |budget| Contribution::system("s", text(50)).with_budget(budget);
    let memory = |budget| {
        let texts = (0..10).map(|_| text(10)).collect();
        Contribution::new("m", Band::Anchor, Content::Texts(texts)).with_budget(budget)
    };
    let any = Budget::default();
    check(
        &[system(any)],
        1_000,
        &[("s", SegmentVerdict::Required, 50)],
    );
    // Ten texts of ten tokens and nine blank lines of two bytes.
    check(&[memory(any)], 1_000, &[("m", SegmentVerdict::Kept, 105)]);
    check(
        &[memory(Budget::at_most(60))],
        1_000,
        &[("m", SegmentVerdict::Shortened, 52)],
    );
    check(
        &[memory(Budget::at_most(5))],
        1_000,
        &[("m", SegmentVerdict::Dropped, 0)],
    );
    check(
        &[system(Budget::at_most(40))],
        1_000,
        &[("s", SegmentVerdict::Dropped, 0)],
    );
    check(
        &[
            system(Budget::at_most(40)).into_pinned(),
            memory(Budget::at_most(5)),
        ],
        1_000,
        &[
            ("s", SegmentVerdict::Required, 50),
            ("m", SegmentVerdict::Dropped, 0),
        ],
    );
    // Half of what is left of 100 tokens.
    let half = Budget { share: 50, ..any };
    check(
        &[memory(half)],
        100,
        &[("m", SegmentVerdict::Shortened, 31)],
    );
}

#[test]
fn volatile_text_stands_at_the_end_whatever_its_band() {
    let clock = Contribution {
        stability: Stability::Volatile,
        ..Contribution::system("clock", "it is noon")
    };
    let fixed = Contribution::system("role", "be kind");
    for format in Format::PROVIDERS {
        let both = once(
            &path(),
            &[clock.clone(), fixed.clone()],
            &request(format, 1_000),
        )
        .unwrap();
        let json = both.payload.to_json();
        let places =
            ["be kind", "hello", "what now?", "it is noon"].map(|text| json.find(text).unwrap());
        // Formats differ in whether the system prompt stands before the history.
        assert!(places[1..].is_sorted(), "{format}: {json}");
        let segment = both
            .report
            .segments
            .iter()
            .find(|s| s.source == "clock")
            .unwrap();
        assert_eq!(
            (segment.band, segment.label.as_str()),
            ("tail", "from system")
        );
    }
}

#[test]
fn bands_and_orders_decide_the_place() {
    let say = |band, order, text: &str| Contribution {
        order,
        stability: Stability::Epoch,
        ..Contribution::new(text, band, Content::Text(text.to_owned()))
    };
    let contributions = [
        say(Band::Tail, 0, "tail"),
        say(Band::Live, 0, "live"),
        say(Band::Anchor, 2, "anchor two"),
        say(Band::Anchor, 1, "anchor one"),
        say(Band::System, 0, "system"),
    ];
    let json = compiled(&contributions, 1_000).payload.to_json();
    let order = [
        "system",
        "anchor one",
        "anchor two",
        "hello",
        "what now?",
        "live",
        "tail",
    ];
    let places = order.map(|text| json.find(&format!("\"{text}\"")).unwrap());
    assert!(places[1..].is_sorted(), "{json}");
}

#[test]
fn what_must_be_said_and_does_not_fit_is_refused_with_its_sum() {
    let contributions = [
        Contribution::system("instructions", text(500)),
        Contribution::tail("rules", text(30)).into_pinned(),
        Contribution::tail("chatter", text(30)),
    ];
    let refusal = once(&path(), &contributions, &request(Format::OpenAiChat, 300)).unwrap_err();
    assert_eq!(refusal.kind(), "does_not_fit");
    let text = refusal.to_string();
    let Refusal::DoesNotFit {
        needed,
        allowed,
        window,
        reserve,
        segments,
    } = refusal
    else {
        panic!("{refusal}");
    };
    let shown: Vec<(&str, u64)> = segments
        .iter()
        .map(|s| (s.name.as_str(), s.tokens))
        .collect();
    // Framing: request 4, system 7, and three messages of 4: task, last round, rules.
    let expected = [
        ("instructions", 500),
        ("task", 2),
        ("last round", 3),
        ("rules", 30),
        ("framing", 23),
    ];
    assert_eq!(shown, expected);
    assert_eq!((needed, allowed, window, reserve), (558, 300, 800, 500));
    assert_eq!(
        text,
        "the request does not fit: 558 tokens needed, 300 allowed (window 800 − reserve 500)"
    );
}

#[test]
fn requests_that_make_no_sense_are_refused_by_name() {
    let kind = |path: &[PathItem], request| once(path, &[], &request).unwrap_err().kind();
    let chat = request(Format::OpenAiChat, 100);
    assert_eq!(kind(&[], chat.clone()), "nothing_to_say");
    let mut hidden = path();
    for item in &mut hidden {
        item.audience = Audience::NONE;
    }
    assert_eq!(kind(&hidden, chat.clone()), "nothing_to_say");
    assert_eq!(
        kind(&path(), request(Format::Ui, 100)),
        "unsupported_target"
    );
    let mut full = chat.clone();
    full.reserve = full.window;
    assert_eq!(kind(&path(), full), "window_too_small");
    let mut owned = chat;
    owned.params.push(("messages".to_owned(), Raw::null()));
    assert_eq!(kind(&path(), owned), "bad_parameter");
}

#[test]
fn parameters_and_the_output_limit_reach_the_payload() {
    let mut chat = request(Format::OpenAiChat, 1_000);
    chat.params.push((
        "seed".to_owned(),
        Raw::parse("12345678901234567890").unwrap(),
    ));
    let json = once(&path(), &[], &chat).unwrap().payload.to_json();
    assert!(json.contains("\"seed\":12345678901234567890"), "{json}");
    assert!(
        json.contains(":500"),
        "the reserve is the output limit: {json}"
    );
}

#[test]
fn what_models_may_not_read_is_left_out_and_said_so() {
    let mut path = path();
    path[1].audience = Audience::USER;
    let compiled = once(&path, &[], &request(Format::Gemini, 1_000)).unwrap();
    check_report(&compiled, &path, "audience");
    assert!(!compiled.payload.to_json().contains("good day"));
    let omitted = &compiled.report.omitted;
    assert_eq!(
        (omitted.len(), omitted[0].first, omitted[0].reason),
        (1, 1, OmitReason::Audience)
    );
}

#[test]
fn a_model_that_spoke_last_is_spoken_to() {
    let path = PathItem::from_items([assistant("welcome"), user("hello"), assistant("good day")]);
    for (format, opened) in [(Format::Anthropic, true), (Format::OpenAiChat, false)] {
        let compiled = once(&path, &[], &request(format, 1_000)).unwrap();
        let json = compiled.payload.to_json();
        assert_eq!(json.contains(contexture_wire::BEGINNING), opened, "{json}");
        assert_eq!(json.contains(contexture_wire::CONTINUE), opened, "{json}");
    }
    let mut older = request(Format::Anthropic, 1_000);
    older.prefill = true;
    let json = once(&path, &[], &older).unwrap().payload.to_json();
    assert!(!json.contains(contexture_wire::CONTINUE), "{json}");
}

#[test]
fn fragments_are_rendered_and_the_last_left_out_first() {
    let fragments = vec![hint("first"), hint("second"), hint("third")];
    let say = |budget| {
        let content = Content::Fragments {
            fragments: fragments.clone(),
            renderer: Arc::new(XmlRenderer::default()),
        };
        Contribution::new("hints", Band::System, content).with_budget(budget)
    };
    let whole = compiled(&[say(Budget::default())], 1_000);
    let text = "<hint>first</hint>\\n<hint>second</hint>\\n<hint>third</hint>";
    assert!(whole.payload.to_json().contains(text), "{}", whole.payload);
    // Two hints are 38 bytes.
    let cut = compiled(&[say(Budget::at_most(10))], 1_000);
    assert!(cut.payload.to_json().contains("second"), "{}", cut.payload);
    assert!(!cut.payload.to_json().contains("third"), "{}", cut.payload);
    check(
        &[say(Budget::at_most(10))],
        1_000,
        &[("hints", SegmentVerdict::Shortened, 10)],
    );
}
