//! Sums over days, models and folders, and what counts once.

use contexture_catalogue::Catalogue;
use contexture_sessions::SessionFormat;
use contexture_spending::{
    Spending, SpendingCollector, SpendingGroup, SpendingOptions, Tally, estimate_session,
};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::logs::{Answer, claude_log, examples, read};

fn collect(options: SpendingOptions, logs: &[(&str, contexture_sessions::LogUsage)]) -> Spending {
    let mut collector = SpendingCollector::new(Catalogue::builtin(), options);
    for (file, log) in logs {
        collector.add_log(file, log);
    }
    collector.finish()
}

fn figures(tally: &Tally) -> [u128; 7] {
    [
        tally.calls.into(),
        tally.input_tokens.into(),
        tally.cache_read_tokens.into(),
        tally.cache_written_tokens.into(),
        tally.output_tokens.into(),
        tally.cost.pico_dollars(),
        tally.unpriced_calls.into(),
    ]
}

fn sum(groups: &[SpendingGroup]) -> [u128; 7] {
    groups.iter().fold([0; 7], |sum, group| {
        let more = figures(&group.tally);
        std::array::from_fn(|at| sum[at] + more[at])
    })
}

fn assert_sums_agree(spending: &Spending) {
    let total = figures(&spending.total);
    for groups in [&spending.days, &spending.models, &spending.projects] {
        assert_eq!(sum(groups), total);
    }
}

proptest! {
    #[test]
    fn sums_over_any_grouping_are_the_total(
        answers in prop::collection::vec((0..5_usize, 0..4_usize, 0..90_000_i64, 0..50_000_u64, 0..50_000_u64), 1..60),
    ) {
        let models = ["claude-sonnet-5", "claude-opus-5", "gpt-5.1-codex", "house-model"];
        let logs: Vec<(String, contexture_sessions::LogUsage)> = (0..5)
            .map(|session| {
                let own = answers.iter().enumerate().filter(|(_, answer)| answer.0 == session);
                let own: Vec<Answer> = own
                    .map(|(number, (_, model, pause, read, written))| Answer {
                        pause: *pause,
                        model: models[*model].to_owned(),
                        ..Answer::new(&format!("m{number}"), *read, *written)
                    })
                    .collect();
                let folder = format!("/src/{}", session % 2);
                (format!("{session}.jsonl"), claude_log(&session.to_string(), &folder, &own))
            })
            .collect();
        let logs: Vec<(&str, contexture_sessions::LogUsage)> =
            logs.iter().map(|(name, log)| (name.as_str(), log.clone())).collect();
        let spending = collect(SpendingOptions::default(), &logs);
        assert_sums_agree(&spending);
        prop_assert_eq!(spending.total.calls, answers.len() as u64);
        // Two spans of time that meet have what the whole has.
        let middle = 1_795_170_000_000 + 86_400_000;
        let early = SpendingOptions { until_ms: Some(middle), ..SpendingOptions::default() };
        let late = SpendingOptions { since_ms: Some(middle), ..SpendingOptions::default() };
        let (early, late) = (collect(early, &logs), collect(late, &logs));
        let parts: Vec<u128> = figures(&early.total)
            .iter()
            .zip(figures(&late.total))
            .map(|(one, other)| one + other)
            .collect();
        prop_assert_eq!(parts, figures(&spending.total).to_vec());
        let broken = early.breaks.total.breaks + late.breaks.total.breaks;
        prop_assert_eq!(broken, spending.breaks.total.breaks);
    }
}

#[test]
fn the_examples_add_up() {
    let logs = examples();
    let logs: Vec<_> = logs
        .iter()
        .map(|(name, format, text)| (name.as_str(), read(*format, text)))
        .collect();
    let spending = collect(SpendingOptions::default(), &logs);
    assert_sums_agree(&spending);
    assert_eq!(spending.sessions, 3);
    assert_eq!(spending.total.unpriced_calls, 0);
    assert!(spending.breaks.total.breaks >= 3);
}

#[test]
fn an_answer_in_two_logs_counts_once() {
    let answers = [Answer::new("m1", 0, 5_000), Answer::new("m2", 5_000, 700)];
    let mut resumed = answers.to_vec();
    resumed.push(Answer::new("m3", 0, 6_000));
    let first = claude_log("one", "/p", &answers);
    let second = claude_log("two", "/p", &resumed);
    let spending = collect(
        SpendingOptions::default(),
        &[("1.jsonl", first), ("2.jsonl", second)],
    );
    assert_eq!((spending.total.calls, spending.copied_calls), (3, 2));
    // What the copy goes on from is known, though it was counted elsewhere.
    assert_eq!(spending.breaks.total.breaks, 1);
    assert_eq!(spending.sessions, 2);
}

fn rollout(id: &str, fork_of: Option<&str>, totals: &[u64]) -> contexture_sessions::LogUsage {
    let mut meta = json!({"id": id});
    if let Some(fork_of) = fork_of {
        meta["forked_from_id"] = fork_of.into();
    }
    let counts = |input: u64| json!({"input_tokens": input, "cached_input_tokens": 0, "output_tokens": input / 10});
    let mut lines = vec![json!({"type": "session_meta", "payload": meta})];
    let mut before = 0;
    for total in totals {
        let info = json!({"total_token_usage": counts(*total), "last_token_usage": counts(total - before)});
        lines.push(json!({"type": "event_msg", "payload": {"type": "token_count", "info": info}}));
        before = *total;
    }
    let text: String = lines
        .iter()
        .map(|line: &Value| format!("{line}\n"))
        .collect();
    read(SessionFormat::Codex, &text)
}

/// A fork begins with its parent's totals, whichever of the two is read first; equal totals of two sessions are two.
#[test]
fn forks_of_codex_count_once() {
    let parent = rollout("p", None, &[1_000, 3_000, 6_000]);
    let fork = rollout("f", Some("p"), &[1_000, 3_000, 9_000]);
    let other = rollout("o", None, &[1_000, 3_000]);
    let backup = rollout("p", None, &[1_000, 3_000, 6_000]);
    let named = |logs: Vec<contexture_sessions::LogUsage>| {
        let logs: Vec<_> = logs.into_iter().map(|log| ("x.jsonl", log)).collect();
        collect(SpendingOptions::default(), &logs)
            .total
            .input_tokens
    };
    assert_eq!(named(vec![parent.clone(), fork.clone()]), 12_000);
    assert_eq!(named(vec![fork.clone(), parent.clone()]), 12_000);
    assert_eq!(named(vec![parent.clone(), other]), 9_000);
    assert_eq!(named(vec![parent, backup]), 6_000);
}

#[test]
fn days_are_those_of_the_time_zone() {
    let log = claude_log("s", "/p", &[Answer::new("m", 0, 10)]);
    let day = |zone: &str| {
        let options = SpendingOptions {
            time_zone: TimeZone::get(zone).unwrap(),
            ..SpendingOptions::default()
        };
        let spending = collect(options, &[("a", log.clone())]);
        (spending.days[0].name.clone(), spending.time_zone)
    };
    let (utc, tokyo) = (day("UTC"), day("Asia/Tokyo"));
    assert_eq!(utc, ("2026-11-20".to_owned(), "UTC".to_owned()));
    assert_eq!(tokyo.1, "Asia/Tokyo");
    assert_eq!(day("Etc/Unknown"), utc);
}

#[test]
fn only_the_wanted_folders_are_summed() {
    let logs = [
        (
            "a",
            claude_log("1", "/src/shop", &[Answer::new("m1", 0, 10)]),
        ),
        (
            "b",
            claude_log("2", "/src/game", &[Answer::new("m2", 0, 10)]),
        ),
    ];
    let options = SpendingOptions {
        project: Some("shop".to_owned()),
        ..SpendingOptions::default()
    };
    let spending = collect(options, &logs);
    assert_eq!((spending.total.calls, spending.projects.len()), (1, 1));
    assert_eq!(spending.filters, ["folders with `shop`"]);
}

#[test]
fn an_unknown_model_has_tokens_and_no_price() {
    let answer = Answer {
        model: "house-model".to_owned(),
        ..Answer::new("m1", 40, 60)
    };
    let spending = collect(
        SpendingOptions::default(),
        &[("a", claude_log("1", "/p", &[answer]))],
    );
    assert_eq!(spending.models[0].name, "house-model");
    assert!(spending.total.is_unpriced() && spending.total.input_tokens == 103);
}

#[test]
fn a_log_without_usage_is_estimated() {
    let counter = contexture_tokens::counter_for(contexture_catalogue::Encoding::O200kBase);
    let text = r#"[{"role":"user","content":"hi there"},{"role":"assistant","content":"hello"},
        {"role":"user","content":"and now"},{"role":"assistant","content":"good bye"}]"#;
    let format = contexture_sessions::detect_format(text, "chat.json")
        .unwrap()
        .format;
    let sessions = contexture_sessions::read_sessions(
        format,
        text,
        &contexture_sessions::ReadOptions::default(),
    );
    let estimate = estimate_session(&sessions.unwrap()[0], counter);
    assert_eq!(estimate.calls, 2);
    let count = |text: &str| counter.count(text).count;
    let first = count("hi there");
    assert_eq!(
        estimate.input_tokens,
        first + first + count("hello") + count("and now")
    );
    assert_eq!(estimate.output_tokens, count("hello") + count("good bye"));
    let mut collector = SpendingCollector::new(Catalogue::builtin(), SpendingOptions::default());
    collector.add_estimate(format, estimate);
    let spending = collector.finish();
    assert_eq!((spending.total.calls, spending.estimates[0].calls), (0, 2));
}
