//! Sessions compiled again with a policy.

use contexture_catalogue::{Catalogue, Money};
use contexture_compile::{Clear, ClearPolicy, HistoryPolicy, PreviewPolicy};
use contexture_ir::Cancel;
use contexture_sessions::{ReadOptions, SessionFormat, read_sessions};
use contexture_spending::{
    MAX_REPLAYED_CALLS, PolicySavings, ReplayPolicy, SessionReplay, replay_session,
};
use serde_json::json;

use crate::logs::{examples, read};

fn replay(format: SessionFormat, text: &str, history: &HistoryPolicy) -> SessionReplay {
    let options = ReadOptions {
        keep_going: true,
        source_name: "a.jsonl",
    };
    let sessions = read_sessions(format, text, &options).unwrap();
    let policy = ReplayPolicy {
        history,
        limit_tokens: None,
    };
    let log = read(format, text);
    replay_session(
        &sessions[0],
        &log,
        policy,
        Catalogue::builtin(),
        &Cancel::new(),
    )
}

/// A policy that does nothing to a history that fits.
fn nothing() -> HistoryPolicy {
    HistoryPolicy {
        clear: Clear::Never,
        ..HistoryPolicy::default()
    }
}

#[test]
fn a_policy_that_does_nothing_saves_nothing() {
    for (name, format, text) in examples() {
        let replay = replay(format, &text, &nothing());
        assert_eq!(replay.skipped_calls, 0, "{name}");
        assert!(replay.calls > 0, "{name}");
        assert_eq!(replay.predicted, replay.with_policy, "{name}");
        assert_eq!(replay.predicted_tokens, replay.policy_tokens, "{name}");
    }
}

/// The examples' usage follows a cache as it is described, so the prediction is near it. It cannot know what another version
/// of the program says to begin with, which one of them pays for.
#[test]
fn the_prediction_is_near_the_bill() {
    for (name, format, text) in examples() {
        if format != SessionFormat::ClaudeCode {
            continue;
        }
        let mut savings = PolicySavings::new("nothing", "as it was");
        savings.add_session(&replay(format, &text, &nothing()));
        let error = savings.prediction_error_percent();
        assert!(error.abs() < 20.0, "{name}: {error} %");
    }
}

/// A session in which long outputs are read one after the other.
fn long_outputs(pause: i64) -> String {
    let mut lines = String::new();
    let mut now = 1_795_170_000_000_i64;
    let mut add =
        |mut record: serde_json::Value, at: usize, above: Option<String>, seconds: i64| {
            now += seconds * 1_000;
            record["parentUuid"] = above.into();
            record["sessionId"] = "s".into();
            record["timestamp"] = jiff::Timestamp::from_millisecond(now)
                .unwrap()
                .to_string()
                .into();
            record["uuid"] = format!("r{at}").into();
            lines.push_str(&format!("{record}\n"));
        };
    let mut sent = 15_000;
    add(
        json!({"type": "user", "message": {"role": "user", "content": "read all files"}}),
        0,
        None,
        0,
    );
    for step in 0..20 {
        let (call, output) = (2 * step + 1, 2 * step + 2);
        let usage = json!({"input_tokens": 3, "cache_creation_input_tokens": 4_000, "cache_read_input_tokens": sent,
            "output_tokens": 60});
        let block = json!({"type": "tool_use", "id": format!("t{step}"), "name": "Read", "input": {"file": step}});
        let message = json!({"id": format!("m{step}"), "role": "assistant", "model": "claude-sonnet-5",
            "content": [block], "stop_reason": "tool_use", "usage": usage});
        add(
            json!({"type": "assistant", "message": message}),
            call,
            Some(format!("r{}", call - 1)),
            5,
        );
        let text: String = (0..500)
            .map(|line| format!("line {line} of file {step} says nothing\n"))
            .collect();
        let block =
            json!({"type": "tool_result", "tool_use_id": format!("t{step}"), "content": text});
        let message = json!({"role": "user", "content": [block]});
        add(
            json!({"type": "user", "message": message}),
            output,
            Some(format!("r{call}")),
            pause,
        );
        sent += 4_000;
    }
    lines
}

#[test]
fn previews_of_long_outputs_save() {
    let policy = HistoryPolicy {
        preview: Some(PreviewPolicy::default()),
        ..nothing()
    };
    let replay = replay(SessionFormat::ClaudeCode, &long_outputs(10), &policy);
    assert_eq!((replay.calls, replay.skipped_calls), (20, 0));
    assert!(
        replay.policy_tokens < replay.predicted_tokens / 2,
        "{replay:?}"
    );
    assert!(replay.with_policy < replay.predicted, "{replay:?}");
}

/// A policy that clears the tenth output back with every call writes ten of them anew each time: it costs more, and says so.
#[test]
fn a_policy_that_costs_more_is_admitted() {
    let policy = HistoryPolicy {
        clear: Clear::By(ClearPolicy {
            trigger: 1,
            low_water: 1,
            keep_recent: 10,
            always: true,
            ..ClearPolicy::default()
        }),
        ..HistoryPolicy::default()
    };
    let mut savings = PolicySavings::new("eager", "clears with every call");
    savings.add_session(&replay(
        SessionFormat::ClaudeCode,
        &long_outputs(10),
        &policy,
    ));
    assert!(
        savings.policy_tokens < savings.predicted_tokens,
        "{savings:?}"
    );
    assert!(savings.with_policy > savings.predicted, "{savings:?}");
    assert!(savings.saved_percent() < 0.0);
    assert_eq!(savings.dearer_sessions, 1);
    assert_eq!(
        savings.dearer,
        savings.with_policy.saturating_sub(savings.predicted)
    );
    // Beside a session in which it saves nothing, it is still told of the one where it costs more.
    savings.add_session(&replay(
        SessionFormat::ClaudeCode,
        &long_outputs(10),
        &nothing(),
    ));
    assert_eq!((savings.sessions, savings.dearer_sessions), (2, 1));
}

#[test]
fn an_unknown_model_is_skipped() {
    let text = long_outputs(10).replace("claude-sonnet-5", "house-model");
    let replay = replay(SessionFormat::ClaudeCode, &text, &nothing());
    assert_eq!((replay.calls, replay.skipped_calls), (0, 20));
    let mut savings = PolicySavings::new("nothing", "as it was");
    savings.add_session(&replay);
    assert_eq!((savings.sessions, savings.billed), (0, Money::ZERO));
}

/// After a compaction the model was given the summary and what follows, and no more.
#[test]
fn a_compacted_history_begins_with_its_summary() {
    let text = long_outputs(10);
    let (before, after) = text.split_at(text.match_indices('\n').nth(20).unwrap().0 + 1);
    let summary = json!({"type": "user", "uuid": "sum", "parentUuid": "r20", "isCompactSummary": true, "sessionId": "s",
        "message": {"role": "user", "content": "What was done so far."}});
    let after = after.replacen("\"parentUuid\":\"r20\"", "\"parentUuid\":\"sum\"", 1);
    let compacted = format!("{before}{summary}\n{after}");
    let whole = replay(SessionFormat::ClaudeCode, &text, &nothing());
    let short = replay(SessionFormat::ClaudeCode, &compacted, &nothing());
    assert_eq!(short.skipped_calls, 0);
    assert!(
        short.predicted_tokens < whole.predicted_tokens * 3 / 4,
        "{short:?} {whole:?}"
    );
}

/// A log of more calls than are compiled again: the rest is skipped and said to be.
#[test]
fn a_log_of_very_many_calls_is_cut() {
    let mut lines = String::from(
        "{\"type\":\"user\",\"uuid\":\"u\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n",
    );
    let calls = MAX_REPLAYED_CALLS + 7;
    for call in 0..calls {
        // Each goes on from the first message, so that all of them are short.
        let usage = json!({"input_tokens": 9, "output_tokens": 1});
        let block = json!({"type": "text", "text": "done"});
        let message = json!({"id": format!("m{call}"), "role": "assistant", "model": "claude-sonnet-5",
            "content": [block], "usage": usage});
        let record = json!({"type": "assistant", "uuid": format!("a{call}"), "parentUuid": "u", "message": message});
        lines.push_str(&format!("{record}\n"));
    }
    let replay = replay(SessionFormat::ClaudeCode, &lines, &nothing());
    assert_eq!(
        (replay.calls, replay.skipped_calls),
        (MAX_REPLAYED_CALLS as u64, 7)
    );
}
