//! Each kind of cache break, and what is none.

use contexture_catalogue::{Catalogue, Money};
use contexture_spending::{
    BreakReason, FoundBreak, MIN_BREAK_TOKENS, SpendingCollector, SpendingOptions, find_break,
};
use serde_json::json;

use crate::logs::{Answer, claude_log, read};

/// The break of the last of some answers.
fn last_break(answers: &[Answer]) -> Option<FoundBreak> {
    let log = claude_log("s", "/p", answers);
    let call = log.calls.last().unwrap();
    let model = Catalogue::builtin().resolve(&call.model).ok();
    find_break(&log.calls[call.previous?], call, model)
}

/// The last of two answers, the first of which leaves 20,000 tokens in the cache.
fn second(second: Answer) -> Option<FoundBreak> {
    last_break(&[Answer::new("m1", 18_000, 2_000), second])
}

fn missed(pause: i64, before: serde_json::Value) -> Answer {
    Answer {
        pause,
        before,
        ..Answer::new("m2", 0, 21_000)
    }
}

#[test]
fn every_reason_is_found() {
    let command = |name: &str| {
        let text = format!("<command-name>{name}</command-name>");
        json!({"message": {"role": "user", "content": text}})
    };
    let rows = [
        (missed(20, json!({})), BreakReason::Unknown),
        (missed(301, json!({})), BreakReason::Paused),
        (
            missed(20, json!({"isCompactSummary": true})),
            BreakReason::Compacted,
        ),
        (missed(20, json!({"version": "2"})), BreakReason::Resumed),
        (missed(20, command("/mcp")), BreakReason::ToolsChanged),
        (missed(20, command("/memory")), BreakReason::SettingsChanged),
        // What is surer wins: after so long nothing is left, whatever else was done.
        (missed(301, json!({"version": "2"})), BreakReason::Paused),
        (
            missed(301, json!({"isCompactSummary": true})),
            BreakReason::Compacted,
        ),
        (
            Answer {
                model: "claude-opus-5".to_owned(),
                ..missed(301, json!({}))
            },
            BreakReason::ModelChanged,
        ),
    ];
    for (answer, reason) in rows {
        let found = second(answer.clone()).unwrap();
        assert_eq!(found.reason, reason, "{answer:?}");
        assert_eq!(found.tokens, 20_000, "{answer:?}");
    }
    let edited = last_break(&[
        Answer::new("m1", 18_000, 2_000),
        Answer::new("m2", 20_000, 500),
        Answer {
            id: "m3".to_owned(),
            after: Some(0),
            ..missed(20, json!({}))
        },
    ]);
    assert_eq!(edited.unwrap().reason, BreakReason::Edited);
}

#[test]
fn what_holds_is_no_break() {
    let least = MIN_BREAK_TOKENS;
    for answer in [
        Answer::new("m2", 20_000, 900),
        // A little less is how caches are: in steps, and by where markers stand.
        Answer::new("m2", 20_000 - least + 1, 2_000),
        // Shorter, and all of it read.
        Answer::new("m2", 9_000, 0),
        Answer {
            pause: 4_000,
            ..Answer::new("m2", 20_000, 900)
        },
        Answer {
            model: "claude-opus-5".to_owned(),
            ..Answer::new("m2", 20_000, 900)
        },
    ] {
        assert_eq!(second(answer.clone()), None, "{answer:?}");
    }
    assert!(second(Answer::new("m2", 20_000 - least, 2_000)).is_some());
}

#[test]
fn what_is_kept_for_an_hour_is_not_lost_in_ten_minutes() {
    let kept = |pause| {
        let first = Answer {
            long: true,
            ..Answer::new("m1", 18_000, 2_000)
        };
        last_break(&[first, missed(pause, json!({}))])
            .unwrap()
            .reason
    };
    assert_eq!(kept(600), BreakReason::Unknown);
    assert_eq!(kept(3_601), BreakReason::Paused);
}

#[test]
fn a_break_costs_the_difference_to_a_read() {
    let model = Catalogue::builtin().resolve("claude-sonnet-5").unwrap();
    let price = |price: Option<contexture_catalogue::Price>| {
        u128::from(price.unwrap().micro_dollars_per_million())
    };
    let (write, read) = (
        price(model.prices.cache_write),
        price(model.prices.cache_read),
    );
    let found = second(missed(301, json!({}))).unwrap();
    assert_eq!(found.pico_dollars, Some(20_000 * (write - read)));
    assert_eq!(found.pause_seconds, Some(301));
    let unknown = Answer {
        model: "house-model".to_owned(),
        ..missed(20, json!({}))
    };
    assert_eq!(second(unknown).unwrap().pico_dollars, None);
}

/// A shorter request cannot have lost more than it has.
#[test]
fn a_shorter_request_loses_no_more_than_itself() {
    let found = second(Answer {
        before: json!({"isCompactSummary": true}),
        ..Answer::new("m2", 0, 6_000)
    });
    assert_eq!(found.unwrap().tokens, 6_003);
}

/// A cache without writes: only what was read before is sure to have been there.
#[test]
fn an_automatic_cache_is_measured_by_its_reads() {
    let event = |input: u64, cached: u64, total: u64, reads: u64| {
        json!({"timestamp": "2026-11-20T10:00:00Z", "type": "event_msg", "payload": {"type": "token_count", "info": {
            "total_token_usage": {"input_tokens": total, "cached_input_tokens": reads, "output_tokens": total / 100},
            "last_token_usage": {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": input / 100}}}})
    };
    let head = json!({"type": "turn_context", "payload": {"model": "gpt-5.1-codex"}});
    let lines = [
        head,
        event(9_000, 0, 9_000, 0),
        event(10_000, 8_960, 19_000, 8_960),
        event(11_000, 2_048, 30_000, 11_008),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let log = read(contexture_sessions::SessionFormat::Codex, &text);
    let model = Catalogue::builtin().resolve("gpt-5.1-codex").ok();
    assert_eq!(find_break(&log.calls[0], &log.calls[1], model), None);
    let found = find_break(&log.calls[1], &log.calls[2], model).unwrap();
    assert_eq!(found.tokens, 8_960 - 2_048);
}

#[test]
fn breaks_are_summed_by_reason_and_the_dearest_listed() {
    let mut answers = vec![Answer::new("m0", 0, 20_000)];
    for number in 1..40 {
        let pause = if number % 2 == 0 { 400 } else { 20 };
        answers.push(Answer {
            pause,
            ..Answer::new(&format!("m{number}"), 0, 20_000 + 10 * number)
        });
    }
    let options = SpendingOptions {
        listed: 3,
        ..SpendingOptions::default()
    };
    let mut collector = SpendingCollector::new(Catalogue::builtin(), options);
    collector.add_log("a.jsonl", &claude_log("s", "/p", &answers));
    let spending = collector.finish();
    let breaks = spending.breaks;
    assert_eq!(breaks.total.breaks, 39);
    assert_eq!(breaks.reasons.len(), 2);
    let cost: Money = breaks
        .reasons
        .iter()
        .fold(Money::ZERO, |sum, reason| sum + reason.cost);
    assert_eq!(cost, breaks.total.cost);
    assert_eq!(spending.dearest_sessions[0].break_cost, cost);
    let costs: Vec<Money> = breaks.dearest.iter().map(|row| row.cost).collect();
    assert!(costs.len() == 3 && costs.is_sorted_by(|one, other| one >= other));
    assert_eq!(breaks.dearest[0].line, 80);
}
