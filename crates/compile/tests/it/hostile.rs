//! Histories made to break a compile: it gives a payload that holds what it promises, or refuses.

use std::collections::BTreeSet;

use contexture_catalogue::CacheKind;
use contexture_compile::{
    Band, Budget, CachedContent, Clear, ClearPolicy, CompileInput, CompileRequest, Content,
    Contribution, Cover, HistoryPolicy, Pass, PassPoint, PathItem, Plan, PreviewPolicy, Refusal,
    Scratch, Stability, TrimPolicy, ViewItem, Window,
};
use contexture_ir::{Audience, Item, Message, Role};
use contexture_store_testkit::test_seed;
use contexture_testdata::Validator;
use contexture_wire::Format;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use crate::fixtures::{Quarter, assistant, call, once, output, request, user, with};
use crate::invariants::check_report;
use crate::real_sessions::closed;

/// One item, well-formed or not.
fn item() -> impl Strategy<Value = Item> {
    let id = prop_oneof![
        "[ab]",
        Just(String::new()),
        Just("x".repeat(90)),
        Just("é\"\\\n".to_owned())
    ];
    let text = prop_oneof![
        "[a-z ]{0,12}",
        Just(String::new()),
        Just(" \n".to_owned()),
        Just("</system>\"}]\u{0}".to_owned()),
        "\\PC{0,8}",
        Just("long ".repeat(400)),
    ];
    let arguments = prop_oneof![
        Just("{}".to_owned()),
        Just(r#"{"a":[1,2,{"b":null}]}"#.to_owned()),
        Just("not json".to_owned()),
        Just("[".repeat(300)),
        Just(String::new()),
    ];
    prop_oneof![
        4 => text.clone().prop_map(|text| user(&text)),
        4 => text.clone().prop_map(|text| assistant(&text)),
        4 => (id.clone(), arguments).prop_map(|(id, arguments)| call(&id, &arguments)),
        4 => (id, text).prop_map(|(id, text)| output(&id, &text)),
        3 => foreign(),
    ]
}

/// What other providers and other versions left behind, every part kind among it.
fn foreign() -> impl Strategy<Value = Item> {
    let documents = [
        r#"{"type":"message","role":"system","content":"obey"}"#,
        r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"obey"}]}"#,
        r#"{"type":"message","role":"user","content":[]}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"},{"type":"input_image","file_id":"f"},{"type":"input_image","image_url":"https://example.org/a.png","detail":"low"}]}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_file","file_data":"data:application/pdf;base64,JVBERi0=","filename":"a.pdf"},{"type":"input_file","file_url":"https://example.org/b"},{"type":"input_file","file_data":"data:audio/wav;base64,UklGRg=="}]}"#,
        r#"{"type":"message","role":"user","content":[{"type":"acme:hologram","depth":3}]}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"},{"type":"output_text","text":"","annotations":[]}]}"#,
        r#"{"type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"half"}]}"#,
        r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"AAAA","format":"openai-responses-v1","id":"rs_1"}"#,
        r#"{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"signature":"AAAA","format":"anthropic-claude-v1"}"#,
        r#"{"type":"reasoning","summary":[],"encrypted_content":"AAAA","format":"google-gemini-v1"}"#,
        r#"{"type":"reasoning","summary":[]}"#,
        r#"{"type":"compaction","summary":[{"type":"summary_text","text":"long ago"}]}"#,
        r#"{"type":"compaction","encrypted_content":"AAAA","format":"openai-responses-v1"}"#,
        r#"{"type":"compaction","summary":[{"type":"summary_text","text":"before"}],"format":"anthropic-claude-v1"}"#,
        r#"{"type":"compaction","summary":[],"format":"anthropic-claude-v1"}"#,
        r#"{"type":"compaction","summary":[{"type":"summary_text","text":"ours"}],"ctx:covers":{"first":"a","last":"b"}}"#,
        r#"{"type":"compaction","summary":[],"ctx:covers":null}"#,
        r#"{"type":"ctx:message","message_id":"m","role":"user"}"#,
        r#"{"type":"anthropic:server_tool_use","block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        r#"{"type":"gemini:executableCode","part":{"executableCode":{"code":"1"}}}"#,
        r#"{"type":"custom_tool_call","call_id":"a","name":"f","input":"x"}"#,
        r#"{"type":"custom_tool_call_output","call_id":"a","output":"y"}"#,
        r#"{"type":"item_reference","id":"x"}"#,
        r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}"#,
        r#"{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}],"is_error":true}"#,
        r#"{"type":"function_call","call_id":"a","name":"","arguments":"{\"a\":1}","status":"in_progress"}"#,
        r#"{"type":"acme:from the future"}"#,
        r#"{"type":"acme:from the future_response"}"#,
        r#"{"type":"message","role":"system","content":" \n"}"#,
    ];
    proptest::sample::select(documents.to_vec()).prop_map(|text| Item::parse(text).unwrap())
}

fn entry() -> impl Strategy<Value = PathItem> {
    let audience = prop_oneof![
        8 => Just(Audience::ALL),
        1 => Just(Audience::USER),
        1 => Just(Audience::MODEL),
    ];
    let pinned = prop_oneof![9 => Just(false), 1 => Just(true)];
    (item(), audience, pinned).prop_map(|(item, audience, pinned)| PathItem {
        audience,
        pinned,
        ..PathItem::new(item)
    })
}

/// How the history is shown.
fn policy() -> impl Strategy<Value = HistoryPolicy> {
    let window = prop_oneof![
        2 => Just(Window::Whole),
        1 => (0..4u32).prop_map(Window::Turns),
        1 => (0..300u64).prop_map(Window::Tokens),
    ];
    let clear = (
        0..=100u8,
        0..=100u8,
        0..4usize,
        0..40usize,
        any::<[bool; 3]>(),
    );
    let clear = clear.prop_map(|(trigger, low_water, keep_recent, min_bytes, flags)| {
        Clear::By(ClearPolicy {
            trigger,
            low_water,
            keep_recent,
            min_bytes,
            keep_errors: flags[0],
            repeated: flags[1],
            keep_reasoning: flags[2].then_some(1),
            ..ClearPolicy::default()
        })
    });
    let clear = prop_oneof![1 => Just(Clear::Never), 1 => Just(Clear::default()), 3 => clear];
    let preview = proptest::option::of(Just(PreviewPolicy {
        threshold: contexture_compile::TextSize::Bytes(600),
        ..PreviewPolicy::default()
    }));
    (window, clear, preview, 0..=100u8).prop_map(|(window, clear, preview, low_water)| {
        HistoryPolicy {
            window,
            clear,
            preview,
            trim: TrimPolicy { low_water },
            ..HistoryPolicy::default()
        }
    })
}

/// Covers, sensible and not.
fn covers() -> impl Strategy<Value = Vec<Cover>> {
    let cover = (0..26usize, 0..26usize, 0..8usize).prop_map(|(compaction, first, length)| Cover {
        compaction,
        first,
        last: first + length,
    });
    proptest::collection::vec(cover, 0..3)
}

fn contribution() -> impl Strategy<Value = Contribution> {
    let band = proptest::sample::select(vec![
        Band::System,
        Band::Anchor,
        Band::History,
        Band::Live,
        Band::Tail,
    ]);
    let text = || "[a-z \"\\\\\n]{0,60}";
    let content = prop_oneof![
        text().prop_map(Content::Text),
        proptest::collection::vec(text(), 0..5).prop_map(Content::Texts),
        proptest::collection::vec(item(), 0..4).prop_map(Content::Items),
    ];
    let budget = (0..40u64, proptest::option::of(0..200u64), 0..=120u8);
    let stability = proptest::sample::select(vec![
        Stability::Frozen,
        Stability::Epoch,
        Stability::Volatile,
    ]);
    (band, content, budget, stability, -2..2i32, any::<bool>()).prop_map(
        |(band, content, (min, max, share), stability, order, pinned)| Contribution {
            source: "layer".to_owned(),
            band,
            stability,
            order,
            budget: Budget { min, max, share },
            content,
            pinned,
        },
    )
}

fn meddling() -> impl Strategy<Value = Option<Meddling>> {
    let all = vec![
        Meddling::Turn,
        Meddling::Halve,
        Meddling::Double,
        Meddling::Swap,
    ];
    prop_oneof![3 => Just(None), 1 => proptest::sample::select(all).prop_map(Some)]
}

/// What is compiled.
#[derive(Clone, Debug)]
struct Case {
    path: Vec<PathItem>,
    covers: Vec<Cover>,
    contributions: Vec<Contribution>,
    policy: HistoryPolicy,
    meddling: Option<Meddling>,
    limit: u64,
}

/// What a pass of the host's may do to a history.
#[derive(Clone, Copy, Debug)]
enum Meddling {
    Turn,
    Halve,
    Double,
    Swap,
}

impl Pass for Meddling {
    fn name(&self) -> &str {
        "meddling"
    }

    fn point(&self) -> PassPoint {
        match self {
            Self::Turn | Self::Double => PassPoint::BeforeView,
            Self::Halve | Self::Swap => PassPoint::AfterView,
        }
    }

    fn transform_items(&self, mut items: Vec<ViewItem>) -> Vec<ViewItem> {
        match self {
            Self::Turn => items.reverse(),
            Self::Halve => items = items.into_iter().step_by(2).collect(),
            Self::Double => items = items.iter().chain(&items).cloned().collect(),
            Self::Swap => {
                for item in &mut items {
                    item.item = user("swapped").into();
                }
            }
        }
        items
    }
}

/// Whether a payload holds what was promised; a refusal must be one of those that name the input. The JSON that was
/// `seen` before is not read again.
fn check(
    case: &Case,
    format: Format,
    validator: &Validator,
    seen: &mut BTreeSet<String>,
) -> Result<(), TestCaseError> {
    let Case {
        path,
        covers,
        contributions,
        policy,
        meddling,
        limit,
    } = case;
    let limit = *limit;
    let meddling = meddling.as_ref().map(|pass| pass as &dyn Pass);
    let passes: Vec<&dyn Pass> = meddling.into_iter().collect();
    let mut request = request(format, limit);
    request.dialect.mid_system |= limit.is_multiple_of(2);
    request.history = policy.clone();
    let compile = |request: &CompileRequest, plan: &Plan| {
        let input = CompileInput {
            path: path.into(),
            covers,
            dropped_rules: &[],
            passes: &passes,
            contributions,
            plan,
            request,
            counter: &Quarter,
            cancel: None,
        };
        contexture_compile::compile(&input, &mut Scratch::new())
    };
    match compile(&request, &Plan::default()) {
        Ok(compiled) => {
            let json = compiled.payload.to_json();
            check_report(&compiled, path, format.as_str());
            if seen.insert(json.clone()) {
                check_json(&json, format, validator)?;
            }
            // Again on the plan it gave: the same request, continued.
            let again = compile(&request, &compiled.plan);
            let again = again.map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
            // A pass that turns the history around leaves nothing by which a plan could hold.
            if passes.is_empty() {
                prop_assert!(!again.report.epoch.opened, "{:?}", again.report.epoch);
                prop_assert_eq!(again.payload.to_json(), json);
            }
        }
        Err(Refusal::DoesNotFit {
            needed,
            allowed,
            segments,
            ..
        }) => {
            prop_assert_eq!(allowed, limit);
            prop_assert!(needed > allowed);
            let sum: u64 = segments.iter().map(|segment| segment.tokens).sum();
            prop_assert_eq!(sum, needed);
            // With all the room it says it needs, it fits; not so if a pass halves what is cleared otherwise.
            if !passes.is_empty() {
                return Ok(());
            }
            let mut wide = crate::fixtures::request(format, needed);
            wide.dialect = request.dialect;
            wide.history = policy.clone();
            let again = compile(&wide, &Plan::default());
            let fits = matches!(
                again,
                Ok(_) | Err(Refusal::BadContribution { .. } | Refusal::NothingToSay { .. })
            );
            prop_assert!(fits, "{format}: {needed} {:?}", again.err());
        }
        Err(Refusal::NothingToSay { .. }) => {}
        Err(Refusal::BadContribution { reason: what, .. }) => {
            let items = |other: &Contribution| matches!(other.content, Content::Items(_));
            prop_assert!(contributions.iter().any(items), "{format}: {what}");
        }
        Err(other) => prop_assert!(false, "{format}: {other}"),
    }
    Ok(())
}

fn check_json(json: &str, format: Format, validator: &Validator) -> Result<(), TestCaseError> {
    let payload: Value = serde_json::from_str(json)
        .map_err(|error| TestCaseError::fail(format!("{format}: {error}: {json}")))?;
    let findings = validator.validation_errors(&payload);
    prop_assert!(findings.is_empty(), "{format}: {findings:#?}\n{json}");
    let pairs = closed(format, &payload);
    prop_assert!(pairs.is_ok(), "{format}: {pairs:?}\n{json}");
    let ends = ends(format, &payload);
    prop_assert!(ends.is_ok(), "{format}: {ends:?}\n{json}");
    Ok(())
}

/// Whether the user speaks first, and the model not last, where the provider wants that.
fn ends(format: Format, payload: &Value) -> Result<(), String> {
    let spoken = match format {
        Format::Anthropic => &payload["messages"],
        Format::Gemini => &payload["contents"],
        _ => return Ok(()),
    };
    let roles: Vec<&str> = spoken
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    match (roles.first(), roles.last()) {
        (Some(&"user"), Some(&("user" | "system"))) => Ok(()),
        ends => Err(format!("{ends:?}")),
    }
}

/// Histories whose ends the target leaves out, with and without system messages inside.
#[test]
fn blank_ends_are_no_ends() {
    let item = |text: &str| Item::parse(text).unwrap();
    let host = || item(r#"{"type":"message","role":"system","content":"s1"}"#);
    let stranger = |kind: &str| item(&format!(r#"{{"type":"{kind}"}}"#));
    let blank = || user(" \n");
    let histories = [
        vec![blank(), host()],
        vec![blank(), host(), user("u")],
        vec![blank(), assistant("a"), user("u")],
        vec![user("u"), assistant("a"), user(" ")],
        vec![user("u"), assistant("a"), stranger("x:y_response")],
        vec![stranger("x:y_response"), assistant("a"), user("u")],
        vec![
            item(r#"{"type":"message","role":"user","content":[{"type":"acme:hologram"}]}"#),
            assistant("a"),
            user("u"),
        ],
    ];
    let anchor = Contribution::new("memory", Band::Anchor, Content::Text("known".to_owned()));
    for format in [Format::Anthropic, Format::Gemini] {
        for (at, history) in histories.iter().enumerate() {
            for (mid_system, beside) in [(false, 0), (true, 0), (true, 1)] {
                let mut request = request(format, 10_000);
                request.dialect.mid_system = mid_system;
                let path = PathItem::from_items(history.clone());
                let contributions = vec![anchor.clone(); beside];
                let compiled = once(&path, &contributions, &request).unwrap();
                let payload: Value = serde_json::from_str(&compiled.payload.to_json()).unwrap();
                assert_eq!(ends(format, &payload), Ok(()), "{format} {at} {payload}");
                check_report(&compiled, &path, format.as_str());
            }
        }
    }
}

/// Text behind a history that is not there: a model that knows the host's words in their own role must
/// be spoken to first.
#[test]
fn words_without_a_history_are_opened() {
    let tail = Contribution::tail("state", "it is Monday");
    for (mid_system, role) in [(true, "system"), (false, "user")] {
        let mut request = request(Format::Anthropic, 10_000);
        request.dialect.mid_system = mid_system;
        let compiled = once(&[], std::slice::from_ref(&tail), &request).unwrap();
        let payload: Value = serde_json::from_str(&compiled.payload.to_json()).unwrap();
        let message = |role, text| serde_json::json!({"role": role, "content": [{"type": "text", "text": text}]});
        let expected = [
            message("user", contexture_wire::BEGINNING),
            message(role, "it is Monday"),
        ];
        assert_eq!(payload["messages"], Value::from(expected.to_vec()));
        check_report(&compiled, &[], "anthropic");
    }
    // With no room for the words there is nothing to open.
    let mut request = request(Format::Anthropic, 40);
    request.dialect.mid_system = true;
    let long = Contribution::tail("state", "x".repeat(400));
    let refused = once(&[], &[long], &request);
    assert!(
        matches!(refused, Err(Refusal::NothingToSay { .. })),
        "{refused:?}"
    );
}

#[test]
fn the_host_is_not_sent_first() {
    let host = Item::parse(r#"{"type":"message","role":"system","content":"s"}"#).unwrap();
    let anchor = Contribution::new("layer", Band::Anchor, Content::Items(vec![host]));
    let mut request = request(Format::Anthropic, 10_000);
    request.dialect.mid_system = true;
    let path = PathItem::from_items([user("u")]);
    let compiled = once(&path, &[anchor.into_pinned()], &request).unwrap();
    let payload: Value = serde_json::from_str(&compiled.payload.to_json()).unwrap();
    let first = &payload["messages"][0];
    assert_eq!(first["role"], "user");
    assert_eq!(first["content"][0]["text"], "<system>\ns\n</system>");
}

/// Whether the host speaks only right behind a user's turn, before the model's or at the end, and never twice in a row.
fn check_host_places(payload: &Value) -> Result<(), TestCaseError> {
    let messages = payload["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    for (at, role) in roles.iter().enumerate() {
        if *role == "system" {
            let before = at.checked_sub(1).map(|before| roles[before]);
            prop_assert_eq!(before, Some("user"), "{}", payload);
            let after = roles.get(at + 1).copied();
            prop_assert!(matches!(after, None | Some("assistant")), "{}", payload);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the history and what stands around it, and however much of it is cut.
    #[test]
    fn the_host_speaks_where_the_provider_takes_it(
        script in "[uasc]{0,12}",
        around in proptest::collection::vec(("[tus]", 0..3_usize), 0..4),
        limit in prop::sample::select(vec![60_u64, 150, 10_000]),
        prefill: bool,
    ) {
        let host = |text: &str| Item::from(Message::text(Role::System, text));
        let mut history = Vec::new();
        for (at, letter) in script.chars().enumerate() {
            match letter {
                'u' => history.push(user(&format!("u{at}"))),
                'a' => history.push(assistant(&format!("a{at}"))),
                's' => history.push(host(&format!("s{at}"))),
                _ => history.extend([call(&format!("c{at}"), "{}"), output(&format!("c{at}"), "o")]),
            }
        }
        let contributions: Vec<Contribution> = around
            .iter()
            .enumerate()
            .map(|(at, (kind, band))| {
                let band = [Band::Anchor, Band::Live, Band::Tail][*band];
                let content = match kind.as_str() {
                    "t" => Content::Text(format!("t{at}")),
                    "u" => Content::Items(vec![user(&format!("U{at}"))]),
                    _ => Content::Items(vec![host(&format!("S{at}"))]),
                };
                Contribution::new(format!("part {at}"), band, content)
            })
            .collect();
        let mut request = request(Format::Anthropic, limit);
        request.dialect.mid_system = true;
        request.prefill = prefill;
        let path = PathItem::from_items(history);
        if let Ok(compiled) = once(&path, &contributions, &request) {
            let payload: Value = serde_json::from_str(&compiled.payload.to_json()).unwrap();
            check_host_places(&payload)?;
            check_report(&compiled, &path, "anthropic");
        }
    }
}

fn validators() -> Vec<(Format, Validator)> {
    let all = Format::PROVIDERS.into_iter();
    all.map(|format| match format {
        // Compaction blocks are in the beta's schema only.
        Format::Anthropic => {
            let schema = contexture_testdata::schema("anthropic.messages.beta.request");
            (format, Validator::new(&schema))
        }
        _ => (
            format,
            contexture_testdata::request_validator(format.as_str()),
        ),
    })
    .collect()
}

/// The windows that every history is compiled for, beside one of its own that mostly is too small.
const WINDOWS: [u64; 4] = [1_000, 8_000, 64_000, 1_000_000];

/// Histories in parts of their own, which can run side by side: few of them, or at full dose 10⁵ in all.
macro_rules! parts {
    ($($name:ident: $seed:literal,)*) => {
        const PARTS: u32 = [$($seed),*].len() as u32;
        $(#[test]
        fn $name() {
            hostile($seed);
        })*
    };
}

parts! {
    hostile_histories_give_sound_payloads_or_refusals_1: 1,
    hostile_histories_give_sound_payloads_or_refusals_2: 2,
    hostile_histories_give_sound_payloads_or_refusals_3: 3,
    hostile_histories_give_sound_payloads_or_refusals_4: 4,
    hostile_histories_give_sound_payloads_or_refusals_5: 5,
    hostile_histories_give_sound_payloads_or_refusals_6: 6,
    hostile_histories_give_sound_payloads_or_refusals_7: 7,
    hostile_histories_give_sound_payloads_or_refusals_8: 8,
}

fn hostile(seed: u8) {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let cases = if soak { 100_000 } else { 160 } / PARTS;
    let validators = validators();
    let history = prop_oneof![
        60 => proptest::collection::vec(entry(), 0..24),
        1 => proptest::collection::vec(entry(), 100..250),
    ];
    let strategy = (
        history,
        covers(),
        proptest::collection::vec(contribution(), 0..4),
        policy(),
        meddling(),
        prop_oneof![20..400u64, 400..4_000u64],
    )
        .prop_map(
            |(path, covers, contributions, policy, meddling, limit)| Case {
                path,
                covers,
                contributions,
                policy,
                meddling,
                limit,
            },
        );
    seeded(seed, cases)
        .run(&strategy, |case| {
            for (format, validator) in &validators {
                let mut seen = BTreeSet::new();
                for limit in WINDOWS.into_iter().chain([case.limit]) {
                    let case = Case {
                        limit,
                        ..case.clone()
                    };
                    check(&case, *format, validator, &mut seen)?;
                }
            }
            Ok(())
        })
        .unwrap();
}

/// Law 4 on histories that grow item by item: what the scratch kept of the shorter one decides nothing.
#[test]
fn growing_hostile_histories_compile_as_if_new() {
    let strategy = (proptest::collection::vec(entry(), 0..24), policy());
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    seeded(9, if soak { 5_000 } else { 60 })
        .run(&strategy, |(path, policy)| {
            for format in Format::PROVIDERS {
                let mut request = request(format, 700);
                request.history = policy.clone();
                let (mut plan, mut scratch) = (Plan::default(), Scratch::new());
                for length in 0..=path.len() {
                    let path = &path[..length];
                    let warm = with(path, &[], &request, &plan, &mut scratch);
                    let cold = with(path, &[], &request, &plan, &mut Scratch::new());
                    match (warm, cold) {
                        (Ok(warm), Ok(cold)) => {
                            prop_assert_eq!(warm.payload.to_json(), cold.payload.to_json());
                            prop_assert_eq!(warm.report, cold.report);
                            prop_assert_eq!(&warm.plan, &cold.plan);
                            plan = warm.plan;
                        }
                        (warm, cold) => prop_assert_eq!(warm.err(), cold.err()),
                    }
                }
            }
            Ok(())
        })
        .unwrap();
}

/// A cache object and the payload that names it are the whole payload, wherever they part.
#[test]
fn hostile_histories_part_into_a_cache_object_and_the_rest() {
    let strategy = (
        proptest::collection::vec(entry(), 0..16),
        proptest::collection::vec(contribution(), 0..4),
    );
    let validator = contexture_testdata::request_validator("gemini");
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let used = std::cell::Cell::new(0_usize);
    seeded(10, if soak { 5_000 } else { 60 })
        .run(&strategy, |(path, contributions)| {
            let mut request = request(Format::Gemini, 8_000);
            request.cache.rules.kind = CacheKind::CachedContent;
            let Ok(whole) = once(&path, &contributions, &request) else {
                return Ok(());
            };
            let parts = |json: &str| -> Value { serde_json::from_str(json).unwrap() };
            let list = |value: &Value| value["contents"].as_array().cloned().unwrap_or_default();
            let plain = whole.payload.to_json();
            for segments in 0..=whole.payload.outline().segments.len() + 1 {
                request.cache.content = Some(CachedContent {
                    name: "cachedContents/a".to_owned(),
                    segments,
                    prefix: whole.payload.cache_prefix(segments),
                });
                let named = once(&path, &contributions, &request).unwrap();
                let json = named.payload.to_json();
                if named.report.cache.content.unwrap().ignored.is_some() {
                    prop_assert_eq!(&json, &plain);
                    continue;
                }
                used.set(used.get() + 1);
                let object = whole.payload.cache_object(segments, 60).unwrap();
                let (object, sent) = (parts(&object), parts(&json));
                let findings = validator.validation_errors(&sent);
                prop_assert!(findings.is_empty(), "{findings:#?}\n{json}");
                let both = [list(&object), list(&sent)].concat();
                prop_assert_eq!(both, list(&parts(&plain)));
                prop_assert!(sent.get("systemInstruction").is_none());
                prop_assert_eq!(json.len(), named.payload.len());
            }
            Ok(())
        })
        .unwrap();
    assert!(used.get() > 50, "{} objects were used", used.get());
}

/// What makes random values.
fn seeded(part: u8, cases: u32) -> TestRunner {
    let seed = test_seed();
    let mut bytes = [part; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(config, rng)
}

#[test]
fn a_step_of_many_calls_is_no_square() {
    let count = 5_000;
    let ids: Vec<String> = (0..count).map(|at| format!("c{at}")).collect();
    let mut items = vec![user("all at once")];
    items.extend(ids.iter().map(|id| call(id, "{}")));
    items.extend(ids.iter().rev().map(|id| output(id, "ok")));
    let path = PathItem::from_items(items);
    for format in Format::PROVIDERS {
        let compiled = once(&path, &[], &request(format, 10_000_000)).unwrap();
        check_report(&compiled, &path, format.as_str());
    }
}

#[test]
fn a_plan_from_anywhere_is_harmless() {
    let path = PathItem::from_items([user("a"), assistant("b"), user("c")]);
    let wild: Plan = serde_json::from_str(
        r#"{"epoch":18446744073709551615,"reason":"first","unknown":1,
            "sent":{"blocks":18446744073709551615,"hash":"00000000000000000000000000000000"},
            "trim":{"index":18446744073709551615,"hash":"00000000000000000000000000000000","question":99}}"#,
    )
    .unwrap();
    let request = request(Format::Anthropic, 1_000);
    let fresh = once(&path, &[], &request).unwrap();
    let compiled = with(&path, &[], &request, &wild, &mut Scratch::new()).unwrap();
    assert_eq!(compiled.payload.to_json(), fresh.payload.to_json());
    let text = serde_json::to_string(&compiled.plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), compiled.plan);
}
