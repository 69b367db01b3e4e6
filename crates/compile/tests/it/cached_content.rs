//! Cache objects made beforehand: when one is advised, what it holds, and payloads that name it.

use contexture_catalogue::Catalogue;
use contexture_compile::{
    Band, CacheAdvice, CachePolicy, CacheRules, CacheState, CachedContent, Clear, ClearPolicy,
    CompileRequest, Compiled, Content, ContentIgnored, Contribution, PathItem, Plan, Scratch,
    load_call, store_call,
};
use contexture_ir::{FunctionTool, Item, Raw, ToolChoice, ToolDefinition};
use contexture_wire::Format;
use serde_json::Value;

use crate::fixtures::{assistant, request, user, with};

const MODEL: &str = "gemini-3-flash-preview";
const NAME: &str = "cachedContents/abc";

/// A request to a model that has cache objects, for calls that come too late for its own cache.
fn asked(format: Format) -> CompileRequest {
    let spec = Catalogue::builtin().resolve(MODEL).unwrap();
    let tool = FunctionTool {
        name: "look_up".to_owned(),
        parameters: Some(Raw::parse(r#"{"type":"object","properties":{}}"#).unwrap()),
        ..FunctionTool::default()
    };
    let mut request = request(format, 100_000);
    MODEL.clone_into(&mut request.model);
    request.tools = vec![ToolDefinition::Function(tool)];
    request.options.tool_choice = Some(ToolChoice::Required);
    request.cache = CachePolicy {
        rules: CacheRules::for_model(spec, format),
        prices: spec.prices.clone(),
        state: CacheState::Cold,
        ..CachePolicy::none(format)
    };
    expecting(request, 8)
}

fn expecting(mut request: CompileRequest, calls: u64) -> CompileRequest {
    request.history.clear = Clear::By(ClearPolicy {
        calls,
        ..ClearPolicy::default()
    });
    request
}

fn rules(words: usize) -> Vec<Contribution> {
    vec![
        Contribution::system("rules", "Be brief. ".repeat(words)),
        Contribution::new(
            "facts",
            Band::Anchor,
            Content::Text("The sky is blue.".to_owned()),
        ),
        Contribution::tail("clock", "It is noon."),
    ]
}

fn history() -> Vec<Item> {
    vec![user("What is it?"), assistant("A cat."), user("And this?")]
}

fn compiled(
    request: &CompileRequest,
    contributions: &[Contribution],
    items: Vec<Item>,
) -> Compiled {
    let path = PathItem::from_items(items);
    let (plan, mut scratch) = (Plan::default(), Scratch::new());
    with(&path, contributions, request, &plan, &mut scratch).unwrap()
}

fn advised(words: usize) -> CacheAdvice {
    let compiled = compiled(&asked(Format::Gemini), &rules(words), history());
    compiled.advice.cache.unwrap()
}

fn made(advice: &CacheAdvice) -> CachedContent {
    CachedContent {
        name: NAME.to_owned(),
        segments: advice.segments,
        prefix: advice.prefix,
    }
}

fn naming(content: CachedContent) -> CompileRequest {
    let mut request = asked(Format::Gemini);
    request.cache.content = Some(content);
    request
}

fn json(compiled: &Compiled) -> Value {
    let value = serde_json::from_str(&compiled.payload.to_json()).unwrap();
    let findings = contexture_testdata::request_validator("gemini").validation_errors(&value);
    assert!(findings.is_empty(), "{findings:?}");
    value
}

#[test]
fn a_payload_names_the_object_and_leaves_out_what_it_holds() {
    let plain = compiled(&asked(Format::Gemini), &rules(4_000), history());
    let advice = plain.advice.cache.unwrap();
    let object = plain.payload.cache_object(advice.segments, 600).unwrap();
    let object: Value = serde_json::from_str(&object).unwrap();
    let named = compiled(&naming(made(&advice)), &rules(4_000), history());
    let (whole, sent) = (json(&plain), json(&named));

    assert_eq!(sent["cachedContent"], NAME);
    assert_eq!(object["model"], format!("models/{MODEL}"));
    assert_eq!(object["ttl"], "600s");
    for held in ["tools", "systemInstruction", "toolConfig"] {
        assert!(!whole[held].is_null(), "{held}");
        assert_eq!(object[held], whole[held], "{held}");
        assert!(sent.get(held).is_none(), "{held}");
    }
    assert_eq!(sent["generationConfig"], whole["generationConfig"]);
    let list = |value: &Value| value["contents"].as_array().unwrap().clone();
    assert_eq!([list(&object), list(&sent)].concat(), list(&whole));
    assert_eq!(list(&object).len(), 1, "what stands before the history");

    let (report, before) = (&named.report, &plain.report);
    let content = report.cache.content.as_ref().unwrap();
    assert_eq!((content.tokens, content.ignored), (advice.tokens, None));
    assert_eq!(report.cache.predicted.read, advice.tokens);
    assert_eq!(
        report.cache.predicted.total_tokens(),
        before.cache.predicted.total_tokens()
    );
    assert_eq!(report.totals.tokens, before.totals.tokens);
    assert_eq!(report.payload.bytes, named.payload.len());
    assert_eq!(named.payload.outline(), plain.payload.outline());
    assert_eq!((&named.plan, &named.advice.cache), (&plain.plan, &None));
    let said = format!("{NAME} holds");
    assert!(report.to_string().contains(&said), "{report}");
}

#[test]
fn it_may_hold_the_beginning_of_the_history() {
    let plain = compiled(&asked(Format::Gemini), &rules(4_000), history());
    let advice = plain.advice.cache.unwrap();
    let segments = advice.segments + 2;
    // Whoever makes an object of more asks for its hash by the payload.
    let content = CachedContent {
        segments,
        prefix: plain.payload.cache_prefix(segments),
        ..made(&advice)
    };
    let named = compiled(&naming(content.clone()), &rules(4_000), history());
    let contents = json(&named)["contents"].to_string();
    assert!(contents.contains("And this?") && !contents.contains("What is it?"));
    let mut longer = history();
    longer.extend([assistant("A dog."), user("Thanks.")]);
    let again = compiled(&naming(content), &rules(4_000), longer);
    assert!(json(&again)["contents"].to_string().contains("A dog."));
}

#[track_caller]
fn ignored(
    request: &CompileRequest,
    contributions: &[Contribution],
    items: Vec<Item>,
) -> ContentIgnored {
    let named = compiled(request, contributions, items.clone());
    let mut without = request.clone();
    without.cache.content = None;
    let plain = compiled(&without, contributions, items);
    assert_eq!(named.payload.to_json(), plain.payload.to_json());
    let content = named.report.cache.content.clone().unwrap();
    let why = content.ignored.unwrap();
    let said = format!("is not used: {}", why.as_str());
    assert!(named.report.to_string().contains(&said));
    assert_eq!(content.tokens, 0);
    why
}

#[test]
fn an_object_that_does_not_fit_is_ignored_with_the_reason() {
    let advice = advised(4_000);
    let request = naming(made(&advice));
    let check = |request: &CompileRequest, words, items, why| {
        assert_eq!(ignored(request, &rules(words), items), why);
    };
    check(&request, 4_001, history(), ContentIgnored::PrefixChanged);
    let mut other = request.clone();
    other.tools.clear();
    check(&other, 4_000, history(), ContentIgnored::PrefixChanged);
    let mut choice = request.clone();
    choice.options.tool_choice = Some(ToolChoice::None);
    check(&choice, 4_000, history(), ContentIgnored::PrefixChanged);
    let mut model = request.clone();
    model.model.push_str("-2");
    check(&model, 4_000, history(), ContentIgnored::PrefixChanged);
    for segments in [usize::MAX, 0] {
        let wild = naming(CachedContent {
            segments,
            ..made(&advice)
        });
        check(&wild, 4_000, history(), ContentIgnored::PrefixChanged);
    }

    let mut param = request.clone();
    let value = Raw::parse(r#""cachedContents/other""#).unwrap();
    param.params.push(("cachedContent".to_owned(), value));
    check(&param, 4_000, history(), ContentIgnored::Named);

    let plain = compiled(&asked(Format::Gemini), &rules(4_000), history());
    let of = |segments| {
        naming(CachedContent {
            segments,
            prefix: plain.payload.cache_prefix(segments),
            ..made(&advice)
        })
    };
    check(&of(1), 4_000, history(), ContentIgnored::HeadOutside);
    let all = plain.payload.outline().segments.len();
    check(&of(all), 4_000, history(), ContentIgnored::NothingLeft);

    let mut chat = asked(Format::OpenAiChat);
    chat.cache.content = Some(made(&advice));
    check(&chat, 4_000, history(), ContentIgnored::Unsupported);
}

#[test]
fn an_object_is_advised_where_it_pays() {
    let advice =
        |request: &CompileRequest, words| compiled(request, &rules(words), history()).advice.cache;
    let request = asked(Format::Gemini);
    let eight = advice(&request, 4_000).unwrap();
    // $0.50, of which a read saves $0.45; made for $0.50 and kept for $1.
    let per_token = 8 * 450_000 - (500_000 + 1_000_000);
    assert_eq!(eight.saving, u128::from(eight.tokens) * per_token);
    assert_eq!(eight.ttl_seconds, 3_600);
    let outline = compiled(&request, &rules(4_000), history())
        .payload
        .outline();
    let held = &outline.segments[..eight.segments];
    assert_eq!(eight.bytes, held.iter().map(|one| one.bytes).sum::<usize>());

    assert_eq!(
        advice(&expecting(request.clone(), 3), 4_000),
        None,
        "too few calls"
    );
    assert!(advice(&expecting(request.clone(), 4), 4_000).is_some());
    assert_eq!(advice(&request, 100), None, "too short");
    let mut warm = request.clone();
    warm.cache.state = CacheState::Warm;
    assert_eq!(
        advice(&warm, 4_000),
        None,
        "the provider's own cache serves it"
    );
    let mut unknown = request.clone();
    unknown.cache.rules.storage_hour = None;
    assert_eq!(advice(&unknown, 4_000), None, "storage has no known price");
    assert_eq!(advice(&asked(Format::OpenAiChat), 4_000), None);
}

#[test]
fn a_stored_call_names_its_object_again() {
    let request = naming(made(&advised(4_000)));
    let stored = store_call(&request, &rules(4_000)).unwrap();
    let (again, contributions) = load_call(&stored, &|_| None).unwrap();
    assert_eq!(again, request);
    let first = compiled(&request, &rules(4_000), history());
    let second = compiled(&again, &contributions, history());
    assert_eq!(first.payload.to_json(), second.payload.to_json());
}
