//! What is told, as a recorder hears it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed unwrap is the failed test"
)]

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{FinishReason, ResponseInfo, Usage};
use contexture_telemetry::{
    METRICS, MetricKind, ModelCall, Operation, count_appended_items, count_client_retry,
    count_compaction, count_layer_failure, describe_metrics, record_cache_read, record_call_cost,
    record_compile,
};
use contexture_wire::{Format, StreamEvent};
use metrics_util::MetricKind as Heard;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tracing::Span;

/// Each metric, its attributes as `name=value`, and what was told: sums of counters, values of histograms.
type Told = BTreeMap<(String, Vec<String>), Vec<f64>>;

fn told(tell: impl FnOnce()) -> Told {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, tell);
    let heard = recorder.snapshotter().snapshot().into_vec();
    let row = |(key, _, _, value): (metrics_util::CompositeKey, _, _, DebugValue)| {
        let (kind, key) = key.into_parts();
        let labels = key.labels();
        let labels: Vec<String> = labels
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let values = match (kind, value) {
            (Heard::Counter, DebugValue::Counter(sum)) => {
                vec![f64::from(u32::try_from(sum).unwrap())]
            }
            (Heard::Histogram, DebugValue::Histogram(values)) => {
                values.into_iter().map(f64::from).collect()
            }
            other => panic!("{key}: {other:?}"),
        };
        ((key.name().to_owned(), labels), values)
    };
    heard.into_iter().map(row).collect()
}

fn labels(told: &Told, metric: &str) -> Vec<String> {
    let rows = told.iter().filter(|((name, _), _)| name == metric);
    rows.map(|((_, labels), values)| format!("{} x{}", labels.join(" "), values.len()))
        .collect()
}

const ASKED: &str =
    "gen_ai.provider.name=anthropic gen_ai.request.model=fast gen_ai.operation.name=chat";

fn answer() -> ResponseInfo {
    ResponseInfo {
        id: Some("msg_1".to_owned()),
        finish: Some(FinishReason::Stop),
        usage: Some(Usage {
            input_tokens: Some(24),
            output_tokens: Some(3),
            ..Usage::default()
        }),
    }
}

#[test]
fn a_call_says_how_long_it_took_and_what_it_used() {
    let heard = told(|| {
        let mut call = ModelCall::begin(Format::Anthropic, "fast", Some("c"));
        call.record_response(Some("fast-2"), &answer());
        call.end(None);
    });
    let who = format!("{ASKED} gen_ai.response.model=fast-2");
    assert_eq!(
        labels(&heard, "gen_ai.client.operation.duration"),
        [format!("{who} x1")]
    );
    let usage = |what| {
        let labels = format!("{who} gen_ai.token.type={what}");
        let labels = labels.split(' ').map(str::to_owned).collect();
        heard[&("gen_ai.client.token.usage".to_owned(), labels)].clone()
    };
    assert_eq!((usage("input"), usage("output")), (vec![24.0], vec![3.0]));
    assert_eq!(heard.len(), 3, "{heard:?}");
}

#[test]
fn a_stream_says_when_it_began_and_its_usage_once() {
    let usage = |input, output| {
        StreamEvent::Usage(Usage {
            input_tokens: input,
            output_tokens: output,
            ..Usage::default()
        })
    };
    let heard = told(|| {
        let mut call = ModelCall::begin(Format::Anthropic, "fast", None);
        // The beginning says what was read, the end what was written.
        call.record_event(&usage(Some(24), Some(1)));
        call.record_event(&usage(None, Some(3)));
        drop(call);
    });
    assert_eq!(
        labels(&heard, "gen_ai.client.operation.time_to_first_chunk"),
        [format!("{ASKED} x1")]
    );
    let usage: Vec<_> = heard
        .iter()
        .filter(|((name, _), _)| name == "gen_ai.client.token.usage")
        .map(|(_, values)| values.clone())
        .collect();
    assert_eq!(usage, [vec![24.0], vec![3.0]]);
    // It was dropped before its end.
    assert_eq!(
        labels(&heard, "gen_ai.client.operation.duration"),
        [format!("{ASKED} error.type=cancelled x1")]
    );
}

#[test]
fn what_failed_says_how() {
    let heard = told(|| {
        Operation::for_tool("search", "c1").end(Some("tool_failed"));
        Operation::for_tool("search", "c2").end(None);
        Operation::for_tool("search", "c3").end(None);
        drop(Operation::for_agent("tester", "c", "r", 0));
    });
    let tool = "gen_ai.tool.name=search gen_ai.tool.type=function";
    assert_eq!(
        labels(&heard, "gen_ai.execute_tool.duration"),
        [
            format!("{tool} x2"),
            format!("{tool} error.type=tool_failed x1")
        ]
    );
    assert_eq!(
        labels(&heard, "gen_ai.invoke_agent.duration"),
        ["gen_ai.agent.name=tester error.type=cancelled x1"]
    );
}

#[test]
fn a_cache_that_was_not_reported_is_not_compared() {
    let read = |tokens| Usage {
        cache_read_tokens: tokens,
        ..Usage::default()
    };
    let heard = told(|| {
        record_cache_read(Format::OpenAiChat, "m", None, 100);
        record_cache_read(Format::OpenAiChat, "m", Some(&read(None)), 100);
        record_cache_read(Format::OpenAiChat, "m", Some(&read(Some(0))), 7);
        record_cache_read(Format::OpenAiChat, "m", Some(&read(Some(5))), 6);
    });
    let sums: Vec<_> = heard
        .into_iter()
        .map(|((name, _), sum)| (name, sum))
        .collect();
    assert_eq!(
        sums,
        [
            ("ctx.cache.predicted_read_tokens".to_owned(), vec![13.0]),
            ("ctx.cache.read_tokens".to_owned(), vec![5.0])
        ]
    );
}

#[test]
fn all_that_is_told_is_listed() {
    let heard = told(|| {
        let mut call = ModelCall::begin(Format::Gemini, "m", None);
        call.record_event(&StreamEvent::Started {
            id: None,
            model: Some("m-2".to_owned()),
        });
        call.record_response(Some("m-2"), &answer());
        call.end(Some("model_timeout"));
        Operation::for_tool("t", "c").end(Some("denied"));
        Operation::for_agent("a", "c", "r", 1).end(Some("denied"));
        Operation::for_compile(Format::Gemini, "m", Span::none()).end(Some("refused"));
        record_compile(Format::Gemini, "m", 10, 5);
        let usage = Usage {
            cache_read_tokens: Some(1),
            ..Usage::default()
        };
        record_cache_read(Format::Gemini, "m", Some(&usage), 1);
        count_appended_items(2);
        count_compaction();
        record_call_cost(&tracing::Span::none(), Format::Gemini, "m", 0.01);
        count_layer_failure("memory", "recall", "timed_out");
        count_client_retry(Format::Gemini, "m", "model_timeout");
    });
    let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, labels) in heard.keys() {
        let attributes = labels.iter().map(|label| label.split('=').next().unwrap());
        seen.entry(name).or_default().extend(attributes);
    }
    let listed: BTreeMap<&str, BTreeSet<&str>> = METRICS
        .iter()
        .map(|metric| (metric.name, metric.attributes.iter().copied().collect()))
        .collect();
    assert_eq!(seen, listed);
}

#[test]
fn the_page_shows_every_metric_as_it_is() {
    let page = include_str!("../../../../docs/observability.md");
    for metric in METRICS {
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Histogram { .. } => "histogram",
        };
        let attributes: Vec<String> = metric
            .attributes
            .iter()
            .map(|one| format!("`{one}`"))
            .collect();
        let row = format!(
            "| `{}` | {kind} | `{}` | {} | {} |\n",
            metric.name,
            metric.unit,
            attributes.join(", "),
            metric.about
        );
        assert!(
            page.contains(&row),
            "docs/observability.md has no row\n{row}"
        );
    }
    // The page also has the metrics of the server, which are named otherwise.
    let is_row = |line: &&str| line.starts_with("| `gen_ai.") || line.starts_with("| `ctx.");
    assert_eq!(page.lines().filter(is_row).count(), METRICS.len());
}

#[test]
fn a_recorder_is_told_what_metrics_are() {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        describe_metrics();
        count_appended_items(1);
        drop(Operation::for_tool("t", "c"));
    });
    let heard = recorder.snapshotter().snapshot().into_vec();
    let units: Vec<_> = heard
        .iter()
        .map(|(key, unit, about, _)| (key.key().name(), *unit, about.is_some()))
        .collect();
    assert_eq!(units.len(), 2);
    assert!(units.contains(&("ctx.items.appended", Some(metrics::Unit::Count), true)));
    assert!(units.contains(&(
        "gen_ai.execute_tool.duration",
        Some(metrics::Unit::Seconds),
        true
    )));
}
