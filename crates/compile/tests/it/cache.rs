//! The prompt cache as a model: marks, their limits, and what calls read and write.

use contexture_catalogue::{CacheKind, Catalogue};
use contexture_compile::{
    CacheRules, CacheSimulator, CacheUsage, CachedPrefix, CompileRequest, Compiled, Contribution,
    MarkerPlan, MarkerPolicy, MarkerReason, Outline, PathItem, Rates, RequestPart,
    SegmentStability, TracedCall, place_markers, predict_usage, simulate_calls,
    simulate_windowed_calls,
};
use contexture_ir::{Compaction, FunctionTool, Item, Part, ToolDefinition};
use contexture_wire::{CacheTtl, Format, lift};

use crate::fixtures::{call, once, output, request, sessions, user};

fn rules(model: &str, format: Format) -> CacheRules {
    CacheRules::for_model(Catalogue::builtin().resolve(model).unwrap(), format)
}

fn claude() -> CacheRules {
    CacheRules {
        minimum: 10,
        ..rules("claude-sonnet-4-5", Format::Anthropic)
    }
}

fn tools() -> Vec<ToolDefinition> {
    let tool = FunctionTool {
        name: "look_up".to_owned(),
        description: Some("Looks something up.".to_owned()),
        ..FunctionTool::default()
    };
    vec![ToolDefinition::Function(tool)]
}

fn of(format: Format) -> CompileRequest {
    CompileRequest {
        tools: tools(),
        ..request(format, 1_000_000)
    }
}

/// Steps of a session: each time a user's words, a call and its output.
fn steps(count: usize) -> Vec<Item> {
    let step = |at: usize| {
        let id = format!("c{at}");
        [
            user(&format!("question {at} {}", "why ".repeat(20))),
            call(&id, "{}"),
            output(&id, &format!("answer {at} {}", "so ".repeat(60))),
        ]
    };
    (0..count).flat_map(step).collect()
}

fn compiled(items: &[Item], contributions: &[Contribution], request: &CompileRequest) -> Compiled {
    once(
        &PathItem::from_items(items.iter().cloned()),
        contributions,
        request,
    )
    .unwrap()
}

fn said() -> Vec<Contribution> {
    vec![
        Contribution::system("instructions", "Be brief. ".repeat(20)),
        Contribution::tail("clock", "tick"),
    ]
}

fn place(outline: &Outline, rules: &CacheRules, previous: &[CachedPrefix]) -> MarkerPlan {
    place_markers(outline, rules, previous, MarkerPolicy::default())
}

fn whys(marking: &MarkerPlan) -> Vec<MarkerReason> {
    marking.markers.iter().map(|mark| mark.reason).collect()
}

#[test]
fn rules_come_from_the_catalogue() {
    let claude = rules("claude-sonnet-4-5", Format::Anthropic);
    assert_eq!(claude.kind, CacheKind::Explicit);
    assert_eq!(
        (claude.minimum, claude.max_markers, claude.lookback),
        (1_024, 4, Some(20))
    );
    assert_eq!(
        (claude.usual_ms, claude.long_ms),
        (300_000, Some(3_600_000))
    );
    let behind_chat = rules("claude-sonnet-4-5", Format::OpenAiChat);
    assert_eq!(
        (behind_chat.kind, behind_chat.max_markers),
        (CacheKind::None, 0)
    );
    let older = rules("gpt-4.1", Format::OpenAiResponses);
    assert_eq!(
        (older.step, older.max_markers, older.marks_newest),
        (128, 0, false)
    );
    let newer = rules("gpt-5.6", Format::OpenAiResponses);
    assert_eq!(
        (newer.step, newer.max_markers, newer.marks_newest),
        (1, 4, true)
    );
    let gemini = rules("gemini-3.1-pro-preview", Format::Gemini);
    assert_eq!(
        (gemini.kind, gemini.minimum),
        (CacheKind::CachedContent, 4_096)
    );
}

/// What stands for older parts of a history stands there part by part: when the newest of it is replaced, a cache that needs no
/// markers still holds what is before that.
#[test]
fn a_replaced_compaction_leaves_those_before_it_in_the_cache() {
    let compaction = |text: &str| {
        Item::from(Compaction {
            summary: vec![Part::input_text(text.repeat(1_500))],
            ..Compaction::default()
        })
    };
    for (model, format) in [
        ("gpt-4.1", Format::OpenAiChat),
        ("gpt-4.1", Format::OpenAiResponses),
    ] {
        let view = |newer: &str| {
            let mut items = vec![compaction("oldest "), compaction(newer)];
            items.extend(steps(3));
            compiled(&items, &said(), &of(format))
        };
        let (before, after) = (view("middle "), view("later "));
        let rules = rules(model, format);
        let mut cache = CacheSimulator::new(rules.clone());
        cache.record_call(&before.payload.outline(), &[], 0);
        let read = cache
            .predict_usage(&after.payload.outline(), &[], 1_000)
            .read;
        // Both requests have the same bytes up to the second compaction.
        let texts = [before.payload.to_json(), after.payload.to_json()];
        let same = texts[0].find("middle").unwrap();
        assert_eq!(texts[0][..same], texts[1][..same], "{format}");
        assert!(texts[0][..same].contains("oldest"), "{format}");
        let outline = after.payload.outline();
        let second = outline.segments.iter().position(|one| one.bytes > 2_000);
        let end = second.unwrap() + 1;
        let there: u64 = outline.segments[..end]
            .iter()
            .map(|one| one.tokens.midpoint())
            .sum();
        assert_eq!(read, there / rules.step * rules.step, "{format}");
        assert!(read >= rules.minimum, "{format}: {read}");
    }
}

#[test]
fn an_outline_is_the_payload_in_the_caches_order() {
    for format in Format::PROVIDERS {
        let compiled = compiled(&steps(3), &said(), &of(format));
        let outline = compiled.payload.outline();
        let parts: Vec<RequestPart> = outline.segments.iter().map(|one| one.part).collect();
        assert!(parts.is_sorted(), "{format}: {parts:?}");
        assert!(
            parts.contains(&RequestPart::Tools) && parts.contains(&RequestPart::System),
            "{format}"
        );
        let high: u64 = outline.segments.iter().map(|one| one.tokens.high).sum();
        assert_eq!(high, compiled.report.totals.tokens, "{format}");
        let last = outline.segments.last().unwrap();
        assert_eq!(
            (last.stability, last.part),
            (SegmentStability::Call, RequestPart::Messages),
            "{format}"
        );
        let history = outline
            .segments
            .iter()
            .filter(|one| one.stability == SegmentStability::Onwards);
        assert_eq!(history.count(), 9, "{format}");
    }
}

#[test]
fn marks_end_the_head_and_the_history_never_the_tail() {
    let compiled = compiled(&steps(3), &said(), &of(Format::Anthropic));
    let outline = compiled.payload.outline();
    let marking = place(&outline, &claude(), &[]);
    assert_eq!(whys(&marking), [MarkerReason::Head, MarkerReason::Rolling]);
    let rolling = &outline.segments[marking.markers[1].segment];
    assert_eq!(rolling.stability, SegmentStability::Onwards);
    let (mut payload, mut set) = (compiled.payload.clone(), marking.clone());
    payload.set_markers(&mut set);
    assert_eq!(set, marking, "all could be set");
    let json = payload.to_json();
    assert_eq!(payload.len(), json.len());
    assert_eq!(json.matches("cache_control").count(), 2);
    assert!(json.contains(r#""tool_use_id":"c2","content":"answer 2"#));
    assert_ne!(payload.fingerprint(), compiled.payload.fingerprint());
    let last = outline.segments.len() - 1;
    assert_eq!(
        payload.outline().prefix_hash(last),
        outline.prefix_hash(last),
        "marks are no content"
    );
    lift(Format::Anthropic, &json).unwrap();
}

#[test]
fn nothing_below_the_minimum_is_marked() {
    let outline = compiled(&steps(1), &said(), &of(Format::Anthropic))
        .payload
        .outline();
    let high: u64 = outline.segments.iter().map(|one| one.tokens.high).sum();
    let rules = CacheRules {
        minimum: high + 1,
        ..claude()
    };
    assert_eq!(place(&outline, &rules, &[]), MarkerPlan::default());
}

#[test]
fn a_long_step_gets_a_bridge_so_that_the_last_mark_is_found() {
    let rules = claude();
    let mut items = steps(2);
    let before = compiled(&items, &said(), &of(Format::Anthropic))
        .payload
        .outline();
    let kept = place(&before, &rules, &[]).cached_prefixes;
    // Eleven parallel calls are 22 blocks, more than the provider looks back.
    for at in 0..11 {
        items.push(call(&format!("p{at}"), "{}"));
    }
    for at in 0..11 {
        items.push(output(&format!("p{at}"), "done"));
    }
    let after = compiled(&items, &said(), &of(Format::Anthropic))
        .payload
        .outline();
    let marking = place(&after, &rules, &kept);
    assert_eq!(
        whys(&marking),
        [
            MarkerReason::Head,
            MarkerReason::Bridge,
            MarkerReason::Rolling
        ]
    );
    let old = kept.last().unwrap().segment;
    assert_eq!(marking.markers[1].segment, old);
    let sums = after.cumulative_tokens();
    assert_eq!(
        predict_usage(&after, &rules, &marking.markers, &kept).read,
        sums[old]
    );
    // Without the bridge only the head is found.
    let without = place(&after, &rules, &[]);
    let read = predict_usage(&after, &rules, &without.markers, &kept).read;
    assert_eq!(read, sums[without.markers[0].segment]);
}

/// A history whose every user message carries the client's own mark, as clients do that move marks.
fn marked_history(count: usize) -> Vec<Item> {
    let message = |at: usize| {
        format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"question {at} {}","cache_control":{{"type":"ephemeral"}}}}]}},{{"role":"assistant","content":[{{"type":"text","text":"answer"}}]}}"#,
            "why ".repeat(20)
        )
    };
    let all: Vec<String> = (0..count).map(message).collect();
    let text = format!("[{}]", all.join(","));
    lift(Format::Anthropic, &text).unwrap().transcript.items
}

#[test]
fn a_fifth_mark_is_impossible() {
    // Of the last ones some messages are shared with what was compiled before.
    for count in (0..12).chain([127, 128, 129, 700]) {
        let mut items = marked_history(count);
        items.push(user("and now?"));
        let compiled = compiled(&items, &said(), &of(Format::Anthropic));
        let mut marking = place(&compiled.payload.outline(), &claude(), &[]);
        let mut payload = compiled.payload.clone();
        payload.set_markers(&mut marking);
        let json = payload.to_json();
        let found = json.matches("cache_control").count();
        assert_eq!(found, marking.markers.len(), "{count}");
        assert!(found <= 4, "{count}: {found}");
        let given = marking
            .markers
            .iter()
            .filter(|mark| mark.reason == MarkerReason::Given);
        assert_eq!(given.count(), count.min(4), "the newest of theirs stay");
        assert_eq!(
            payload.outline().prefix_hash(3),
            compiled.payload.outline().prefix_hash(3)
        );
    }
}

#[test]
fn a_longer_time_never_stands_behind_a_shorter_one() {
    let items = {
        let text = r#"[{"role":"user","content":[{"type":"text","text":"first words, not few of them, and then some more of the kind","cache_control":{"type":"ephemeral","ttl":"1h"}}]},{"role":"assistant","content":"answer"},{"role":"user","content":"more"}]"#;
        lift(Format::Anthropic, text).unwrap().transcript.items
    };
    let compiled = compiled(&items, &said(), &of(Format::Anthropic));
    let marking = place(&compiled.payload.outline(), &claude(), &[]);
    let ttls: Vec<(MarkerReason, CacheTtl)> = marking
        .markers
        .iter()
        .map(|one| (one.reason, one.ttl))
        .collect();
    assert_eq!(
        ttls,
        [
            (MarkerReason::Head, CacheTtl::Long),
            (MarkerReason::Given, CacheTtl::Long),
            (MarkerReason::Rolling, CacheTtl::Usual),
        ]
    );
}

#[test]
fn openai_is_told_to_mark_nothing_that_passes() {
    let rules = CacheRules {
        minimum: 10,
        ..rules("gpt-5.6", Format::OpenAiResponses)
    };
    let with_tail = compiled(&steps(3), &said(), &of(Format::OpenAiResponses));
    let mut marking = place(&with_tail.payload.outline(), &rules, &[]);
    assert!(marking.only_ours);
    let mut payload = with_tail.payload.clone();
    payload.set_markers(&mut marking);
    let json = payload.to_json();
    assert!(json.contains(r#""prompt_cache_options":{"mode":"explicit"}"#));
    assert_eq!(
        json.matches("prompt_cache_breakpoint").count(),
        marking.markers.len()
    );
    assert_eq!(
        marking.markers.last().unwrap().reason,
        MarkerReason::Rolling
    );
    let bare = compiled(&steps(3), &said()[..1], &of(Format::OpenAiResponses));
    let marking = place(&bare.payload.outline(), &rules, &[]);
    assert!(!marking.only_ours);
    assert_eq!(
        marking.markers.last().unwrap().reason,
        MarkerReason::Provider
    );
}

#[test]
fn gemini_is_sent_as_it_is() {
    let compiled = compiled(&steps(3), &said(), &of(Format::Gemini));
    let rules = CacheRules {
        minimum: 10,
        ..rules("gemini-3.1-pro-preview", Format::Gemini)
    };
    let mut marking = place(&compiled.payload.outline(), &rules, &[]);
    assert_eq!(marking.markers, []);
    assert!(!marking.cached_prefixes.is_empty(), "it caches by itself");
    let mut payload = compiled.payload.clone();
    payload.set_markers(&mut marking);
    assert_eq!(payload.to_json(), compiled.payload.to_json());
}

#[test]
fn a_trace_reads_what_it_wrote_until_it_forgets() {
    let rules = claude();
    let outlines: Vec<Outline> = [2, 3]
        .map(|count| {
            compiled(&steps(count), &said(), &of(Format::Anthropic))
                .payload
                .outline()
        })
        .into();
    let first = place(&outlines[0], &rules, &[]);
    let second = place(&outlines[1], &rules, &first.cached_prefixes);
    let written = outlines[0].cumulative_tokens()[first.markers.last().unwrap().segment];

    let mut trace = CacheSimulator::new(rules.clone());
    let used = trace.record_call(&outlines[0], &first.markers, 0);
    assert_eq!((used.read, used.write), (0, written));
    assert_eq!(used.total_tokens(), outlines[0].tokens());
    let again = trace
        .clone()
        .record_call(&outlines[1], &second.markers, 299_999);
    assert_eq!(again.read, written);
    assert_eq!(
        trace.predict_usage(&outlines[1], &second.markers, 299_999),
        again
    );
    assert_eq!(
        again,
        predict_usage(
            &outlines[1],
            &rules,
            &second.markers,
            &first.cached_prefixes
        )
    );
    let late = trace
        .clone()
        .record_call(&outlines[1], &second.markers, 300_000);
    assert_eq!(late.read, 0);
    // A read keeps it anew.
    trace.record_call(&outlines[0], &first.markers, 200_000);
    assert_eq!(
        trace
            .record_call(&outlines[1], &second.markers, 400_000)
            .read,
        written
    );
    let kept = trace.prefix_count();
    assert!(kept > first.markers.len());
    // What is gone takes no room.
    trace.record_call(&outlines[0], &first.markers, 9_000_000);
    assert!(trace.prefix_count() < kept);
}

#[test]
fn the_longer_time_is_billed_apart() {
    let rules = claude();
    let policy = MarkerPolicy {
        head: CacheTtl::Long,
        history: CacheTtl::Usual,
    };
    let outline = compiled(&steps(3), &said(), &of(Format::Anthropic))
        .payload
        .outline();
    let marking = place_markers(&outline, &rules, &[], policy);
    let sums = outline.cumulative_tokens();
    let ends: Vec<u64> = marking
        .markers
        .iter()
        .map(|mark| sums[mark.segment])
        .collect();
    let mut trace = CacheSimulator::new(rules);
    let used = trace.record_call(&outline, &marking.markers, 0);
    assert_eq!((used.write_long, used.write), (ends[0], ends[1] - ends[0]));
    // After the usual time only the head is there.
    let later = trace.record_call(&outline, &marking.markers, 1_000_000);
    assert_eq!((later.read, later.write_long), (ends[0], 0));
}

#[test]
fn an_automatic_cache_works_in_steps_from_its_minimum_on() {
    let rules = rules("gpt-4.1", Format::OpenAiChat);
    let outline = |count| {
        compiled(&steps(count), &said()[..1], &of(Format::OpenAiChat))
            .payload
            .outline()
    };
    let mut trace = CacheSimulator::new(rules);
    let short = outline(3);
    assert!(short.tokens() < 1_024);
    trace.record_call(&short, &[], 0);
    assert_eq!(trace.record_call(&short, &[], 1).read, 0);
    let long = outline(40);
    let used = trace.record_call(&long, &[], 2);
    assert_eq!((used.read, used.write, used.fresh), (0, 0, long.tokens()));
    assert_eq!(
        trace.record_call(&outline(41), &[], 3).read,
        long.tokens() / 128 * 128
    );
}

#[test]
fn another_scope_reads_nothing() {
    let rules = CacheRules {
        minimum: 0,
        ..rules("gpt-4.1", Format::OpenAiChat)
    };
    let outline = compiled(&steps(40), &said(), &of(Format::OpenAiChat))
        .payload
        .outline();
    let mut trace = CacheSimulator::new(rules);
    trace.record_call(&outline, &[], 0);
    let other = CompileRequest {
        model: "other".to_owned(),
        ..of(Format::OpenAiChat)
    };
    let other = compiled(&steps(40), &said(), &other).payload.outline();
    assert_eq!(trace.record_call(&other, &[], 1).read, 0);
}

/// The marks of every call of real sessions: never more than four, all of them in the payload, and the
/// prefix up to the last one found again by the next call.
#[test]
fn real_sessions_read_their_own_prefix() {
    let rules = claude();
    let (mut reads, mut tokens) = (0, 0);
    for session in sessions().iter().step_by(17) {
        let mut kept: Vec<CachedPrefix> = Vec::new();
        let mut trace = CacheSimulator::new(rules.clone());
        let mut contributions = session.system.clone();
        for length in 1..=session.path.len() {
            let due = length == session.path.len() || session.path[length].item.is_model_output();
            if !due || session.path[length - 1].item.is_model_output() {
                continue;
            }
            contributions.truncate(session.system.len());
            contributions.push(Contribution::tail("clock", format!("tick {length}")));
            let request = of(Format::Anthropic);
            let Ok(compiled) = once(&session.path[..length], &contributions, &request) else {
                continue;
            };
            let outline = compiled.payload.outline();
            let mut marking = place(&outline, &rules, &kept);
            let mut payload = compiled.payload.clone();
            payload.set_markers(&mut marking);
            assert!(marking.markers.len() <= 4);
            let json = payload.to_json();
            assert_eq!(
                json.matches(r#""cache_control":{"type":"ephemeral"}"#)
                    .count(),
                marking.markers.len()
            );
            let expected = predict_usage(&outline, &rules, &marking.markers, &kept);
            let used = trace.record_call(&outline, &marking.markers, length as u64);
            assert!(
                used.read >= expected.read,
                "{}: {used:?} {expected:?}",
                session.name
            );
            if let Some(last) = kept.last() {
                assert_eq!(
                    outline.prefix_hash(last.segment),
                    last.prefix,
                    "{} {length}",
                    session.name
                );
                assert_eq!(used.read, outline.cumulative_tokens()[last.segment]);
            }
            reads += used.read;
            tokens += used.total_tokens();
            kept = marking.cached_prefixes;
        }
    }
    assert!(
        reads * 10 > tokens * 8,
        "{reads} of {tokens} tokens were read"
    );
}

#[test]
fn a_sliding_window_costs_more_than_sending_everything() {
    let rules = claude();
    let calls: Vec<TracedCall> = (1..60)
        .map(|count| TracedCall {
            outline: compiled(&steps(count), &said(), &of(Format::Anthropic))
                .payload
                .outline(),
            at_ms: count as u64 * 1_000,
        })
        .collect();
    let spec = Catalogue::builtin().resolve("claude-sonnet-4-5").unwrap();
    let rates = Rates::for_request(&spec.prices, rules.kind, 0).unwrap();
    let whole: CacheUsage = simulate_calls(&rules, MarkerPolicy::default(), calls.clone())
        .into_iter()
        .sum();
    let limit = calls.last().unwrap().outline.tokens() / 2;
    let windowed: Vec<CacheUsage> =
        simulate_windowed_calls(&rules, MarkerPolicy::default(), limit, calls);
    assert!(
        windowed
            .iter()
            .all(|used| used.total_tokens() <= limit + 100)
    );
    let windowed: CacheUsage = windowed.into_iter().sum();
    assert!(windowed.total_tokens() < whole.total_tokens());
    assert!(
        windowed.input_cost(&rates) > whole.input_cost(&rates),
        "{windowed:?} {whole:?}"
    );
}

#[test]
fn given_marks_are_seen_in_the_outline() {
    let items = marked_history(2);
    let outline = compiled(&items, &said(), &of(Format::Anthropic))
        .payload
        .outline();
    let given: Vec<&[CacheTtl]> = outline
        .segments
        .iter()
        .map(|one| one.markers.as_slice())
        .filter(|marks| !marks.is_empty())
        .collect();
    assert_eq!(given, [&[CacheTtl::Usual], &[CacheTtl::Usual]]);
}
