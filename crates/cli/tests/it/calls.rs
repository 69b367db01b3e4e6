//! The record of calls, as the command shows it.

use contexture::Owner;
use contexture::compile::{
    BandPart, CallBand, EpochReason, PrefixBreak, SegmentRule, SegmentVerdict,
};
use contexture::ir::CallId;
use contexture::store::{CallDetails, CallNames, CallOutcome, CallRecord, CallTokens, Store as _};
use contexture::store_sqlite::SqliteStore;

use crate::command::Place;

/// A band with a part of each verdict, and a break.
fn band() -> CallBand {
    let part = |band, source, verdict, rule, span, tokens| BandPart {
        band: Some(band),
        source: Some(source),
        verdict: Some(verdict),
        rule: Some(rule),
        items: 3,
        span,
        tokens,
        omitted_tokens: 41_000,
    };
    let (required, cleared) = (SegmentVerdict::Required, SegmentVerdict::Cleared);
    let (tools, old) = (SegmentRule::OfferedTools, SegmentRule::OldOutputs);
    CallBand {
        limit: 100_000,
        path_items: 120,
        parts: vec![
            part("tools", "tools", required, tools, None, 2_500),
            part("history", "rounds", cleared, old, Some((4, 90)), 31_000),
        ],
        cache_read: 2_500,
        prefix_break: Some(PrefixBreak {
            reason: EpochReason::HistoryCleared,
            lost_tokens: 31_000,
            pico_dollars: Some(46_500_000_000),
        }),
        ..CallBand::default()
    }
}

/// A place whose database has a call of each outcome, an hour apart, the last one now.
async fn with_calls() -> Place {
    let place = Place::new();
    std::fs::create_dir_all(place.database().parent().unwrap()).unwrap();
    let store = SqliteStore::open(place.database()).unwrap();
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_millis()).unwrap();
    let call = |(number, outcome): (usize, CallOutcome)| {
        let age = i64::try_from(number).unwrap() * 3_600_000;
        CallRecord {
            outcome,
            names: CallNames {
                upstream: "openai".to_owned(),
                model: "a-model-with-a-name-that-is-long-enough-to-fill-a-narrow-terminal"
                    .to_owned(),
                ..CallNames::default()
            },
            details: CallDetails {
                status: Some(200),
                tokens: Some(CallTokens {
                    input: 1_234_567,
                    output: 89,
                    ..CallTokens::default()
                }),
                pico_dollars: Some(250_000_000_000),
                ..CallDetails::default()
            },
            band: (number == 0).then(|| band().to_bytes().into()),
            ..CallRecord::new(CallId::from_time(now - age, [0; 10]), "")
        }
    };
    let calls = CallOutcome::ALL.into_iter().enumerate().map(call).collect();
    let record = store.calls().unwrap();
    record.record_calls(&Owner::local(), calls).await.unwrap();
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_usage_keep_to_the_terminal() {
    let place = with_calls().await;
    for columns in ["50", "80", "120"] {
        for line in ["calls", "usage", "usage --by model,outcome"] {
            let mut command = place.command();
            let output = command
                .env("COLUMNS", columns)
                .args(line.split(' '))
                .output();
            let out = String::from_utf8(output.unwrap().stdout).unwrap();
            assert!(
                out.contains("$0.25") || out.contains("$1.50"),
                "{line}: {out}"
            );
            for shown in out.lines() {
                let width = shown.chars().count();
                assert!(width <= columns.parse().unwrap(), "{width}: {shown}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_shows_its_band() {
    let place = with_calls().await;
    let listed = place.json("calls --json");
    let id = |at: usize| listed["calls"][at]["id"].as_str().unwrap().to_owned();
    let shown = place.json(&format!("calls --json {}", id(0)));
    assert_eq!(shown["band"]["tokens"], 33_500);
    assert_eq!(shown["band"]["parts"][1]["verdict"], "cleared");
    assert_eq!(shown["band"]["prefix_break"]["dollars"], "0.0465");
    assert!(listed["calls"][0].get("band").is_none());
    for columns in ["50", "80", "120"] {
        let mut command = place.command();
        let output = command.env("COLUMNS", columns).args(["calls", &id(0)]);
        let out = String::from_utf8(output.output().unwrap().stdout).unwrap();
        for part in ["33,500 of 100,000", "4–90", "history cleared", "2,500 read"] {
            assert!(out.contains(part), "{part}: {out}");
        }
        let width = out.lines().map(|line| line.chars().count()).max();
        assert!(width <= columns.parse().ok(), "{out}");
    }
    let plain = place.run(&format!("calls {}", id(1)));
    assert!(plain.out.contains("sent as it came"), "{}", plain.out);
    let unknown = place.run("calls req_00000000000070008000000000000000");
    assert!(unknown.code != 0 && unknown.err.contains("not found"));
    let both = place.run(&format!("calls {} --since 7d", id(0)));
    assert!(both.code != 0 && both.err.contains("cannot be used with"));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_filtered_and_summed_up() {
    let place = with_calls().await;
    let all = place.json("calls --json");
    assert_eq!(all["calls"].as_array().unwrap().len(), 6);
    assert_eq!(all["calls"][0]["outcome"], "completed");
    assert_eq!(all["calls"][0]["dollars"], "0.25");
    let some = place.json("calls --json --outcome refused");
    assert_eq!(some["calls"].as_array().unwrap().len(), 1);
    let new = place.json("calls --json --since 90m -n 1");
    assert_eq!(new["calls"].as_array().unwrap().len(), 1);
    let usage = place.json("usage --json --by outcome");
    assert_eq!(usage["total"]["calls"], 6);
    assert_eq!(usage["total"]["dollars"], "1.5");
    assert_eq!(usage["groups"].as_array().unwrap().len(), 6);
    let owners = place.json("usage --json --by owner,outcome");
    assert_eq!(owners["by"], serde_json::json!(["owner", "outcome"]));
    assert_eq!(owners["total"]["dollars"], "1.5");
    assert_eq!(owners["groups"][0]["owner"], "local");
    let owners = place.ok("usage --by owner");
    assert!(
        owners.contains("owner") && owners.contains("local"),
        "{owners}"
    );
    let wrong = place.run("usage --by nothing");
    assert!(
        wrong.code != 0 && wrong.err.contains("expected some of day"),
        "{}",
        wrong.err
    );
    let none = place.run("calls --model unknown");
    assert!(none.err.contains("no calls"), "{}", none.err);
}

#[test]
fn a_call_is_written_as_it_was_sent_and_answered() {
    let place = Place::new();
    place.write("said.txt", "What shall I pack?\n");
    place.write("answers.jsonl", "\"Rice crackers.\"\n\"An apple.\"\n");
    for _ in 0..2 {
        place.ok("run said.txt --script answers.jsonl -c trip --to openai-chat --model gpt-4o");
    }
    let listed = place.json("calls --json");
    let id = |at: usize| listed["calls"][at]["id"].as_str().unwrap().to_owned();
    let (last, first) = (id(0), id(1));
    let sent = place.run(&format!("calls {last} --as-sent"));
    assert_eq!((sent.code, sent.err.as_str()), (0, ""), "it is exact");
    let request: serde_json::Value = serde_json::from_str(&sent.out).unwrap();
    assert_eq!(
        request["messages"].as_array().unwrap().len(),
        3,
        "{request}"
    );
    let report = place.run(&format!("calls {last} --report"));
    assert!(report.out.contains("\"segments\""), "{}", report.err);
    let answer = place.json(&format!("calls {first} --answer"));
    assert_eq!(
        answer["items"][0]["item"]["content"][0]["text"],
        "Rice crackers."
    );
    let data = place.json(&format!("calls {last} --as-sent --json"));
    assert_eq!(
        (&data["sent"]["exact"], &data["sent"]["request"]),
        (&true.into(), &request)
    );
    // No client sent it.
    let came = place.run(&format!("calls {last} --as-came"));
    assert_eq!(came.code, 5, "{}", came.err);
    assert!(came.err.contains("no request came"), "{}", came.err);
    let alone = place.run("calls --as-sent");
    assert_eq!(alone.code, 2, "{}", alone.err);
    // The second begins with the first.
    let same = place.run(&format!("diff {first} {last}"));
    assert_eq!(same.code, 0, "{} {}", same.out, same.err);
    assert!(same.out.contains("holds"), "{}", same.out);
    let unknown = place.run(&format!(
        "diff {first} req_00000000000070008000000000000000"
    ));
    assert!(unknown.err.contains("not in the record"), "{}", unknown.err);
}
