//! What is told, as a collector on the loopback reads it.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is the failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use contexture_ir::FinishReason;
use contexture_otlp::{Otlp, OtlpError, OtlpOptions, build_otlp};
use contexture_telemetry::{METRICS, ModelCall, Operation, SCHEMA_URL, count_appended_items};
use contexture_wire::{Format, StreamEvent};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message;
use tracing_subscriber::layer::SubscriberExt;

/// A request as it came: its head in lower case, its body.
type Request = (String, Vec<u8>);

/// A collector that answers every request with a status.
fn collector(status: &'static str) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/", listener.local_addr().unwrap());
    let (tell, told) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let request = loop {
                let mut more = [0; 4096];
                let read = stream.read(&mut more).unwrap();
                bytes.extend_from_slice(more.get(..read).unwrap());
                let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                    assert!(read > 0, "a request without an end");
                    continue;
                };
                let head = String::from_utf8_lossy(bytes.get(..end).unwrap()).to_lowercase();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.unwrap().parse().unwrap();
                let body = bytes.get(end + 4..).unwrap();
                if body.len() >= length {
                    break (head, body.to_vec());
                }
            };
            // The test may have seen enough.
            let _ = tell.send(request);
            let answer =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (endpoint, told)
}

fn options(endpoint: String) -> OtlpOptions {
    OtlpOptions {
        endpoint: Some(endpoint),
        headers: vec![("x-key".to_owned(), "hunter2".to_owned())],
        service: Some("tester".to_owned()),
        export_interval: None,
    }
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |one: &KeyValue| {
        let value = one.value.clone().and_then(|value| value.value);
        let value = match value {
            Some(Value::StringValue(text)) => text,
            other => format!("{other:?}"),
        };
        (one.key.clone(), value)
    };
    attributes.iter().map(text).collect()
}

/// A tool that failed, in an agent's work; three items; and what is nobody's business.
fn work() {
    let agent = Operation::for_agent("tester", "c", "r1", 0);
    agent.span().in_scope(|| {
        tracing::debug!("an event");
        let tool = Operation::for_tool("search", "c1");
        tool.end(Some("tool_failed"));
        let mut chat = ModelCall::begin(Format::OpenAiChat, "gpt-4o", Some("c"));
        chat.record_event(&StreamEvent::Finished {
            finish: Some(FinishReason::ToolCalls),
        });
        chat.end(None);
        count_appended_items(3);
        drop(tracing::debug_span!(target: "elsewhere", "of another crate"));
        drop(tracing::info_span!(target: "hyper::client", "of what sends"));
    });
    agent.end(None);
    metrics::gauge!("of.another").increment(2.0);
    metrics::gauge!("of.another").decrement(0.5);
}

#[test]
fn a_collector_reads_the_names() {
    let (endpoint, told) = collector("200 OK");
    let Otlp {
        layer,
        recorder,
        guard,
    } = build_otlp(&options(endpoint)).unwrap();
    let subscriber = tracing_subscriber::registry().with(layer);
    metrics::with_local_recorder(&recorder, || {
        tracing::subscriber::with_default(subscriber, work);
    });
    guard.force_flush().unwrap();

    let requests: Vec<Request> = told.try_iter().collect();
    let of = |path: &str| {
        let mut all = requests
            .iter()
            .filter(|(head, _)| head.starts_with(&format!("post {path} ")));
        let (head, body) = all.next().unwrap();
        assert!(head.contains("\r\nx-key: hunter2"), "{head}");
        assert!(
            head.contains("\r\ncontent-type: application/x-protobuf"),
            "{head}"
        );
        assert!(all.next().is_none());
        body.as_slice()
    };
    let traces = ExportTraceServiceRequest::decode(of("/v1/traces")).unwrap();
    let [resource] = traces.resource_spans.as_slice() else {
        unreachable!("{traces:?}")
    };
    let who = texts(&resource.resource.as_ref().unwrap().attributes);
    assert_eq!(who["service.name"], "tester");
    let spans: Vec<_> = resource
        .scope_spans
        .iter()
        .flat_map(|scope| &scope.spans)
        .collect();
    let names: BTreeSet<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        BTreeSet::from(["chat gpt-4o", "execute_tool search", "invoke_agent tester"])
    );
    let named = |name: &str| *spans.iter().find(|span| span.name == name).unwrap();
    let (agent, tool) = (named("invoke_agent tester"), named("execute_tool search"));
    assert_eq!(tool.parent_span_id, agent.span_id);
    assert!(agent.events.is_empty());
    let chat = named("chat gpt-4o");
    assert_eq!(chat.kind(), SpanKind::Client);
    assert_eq!(
        (agent.kind(), tool.kind()),
        (SpanKind::Internal, SpanKind::Internal)
    );
    let reasons = &texts(&chat.attributes)["gen_ai.response.finish_reasons"];
    assert!(
        reasons.contains("ArrayValue") && reasons.contains("tool_calls"),
        "{reasons}"
    );
    let scopes = &resource.scope_spans;
    assert!(
        scopes.iter().all(|scope| scope.schema_url == SCHEMA_URL),
        "{scopes:?}"
    );
    let tool = texts(&tool.attributes);
    assert_eq!(tool["gen_ai.tool.name"], "search");
    assert_eq!(tool["gen_ai.tool.type"], "function");
    assert_eq!(tool["error.type"], "tool_failed");
    assert_eq!(texts(&agent.attributes)["gen_ai.conversation.id"], "c");

    let figures = ExportMetricsServiceRequest::decode(of("/v1/metrics")).unwrap();
    let scopes = figures
        .resource_metrics
        .iter()
        .flat_map(|one| &one.scope_metrics);
    let figures: BTreeMap<&str, _> = scopes
        .flat_map(|scope| &scope.metrics)
        .map(|metric| (metric.name.as_str(), metric))
        .collect();
    let names: Vec<&str> = figures.keys().copied().collect();
    assert_eq!(
        names,
        [
            "ctx.items.appended",
            "gen_ai.client.operation.duration",
            "gen_ai.client.operation.time_to_first_chunk",
            "gen_ai.execute_tool.duration",
            "gen_ai.invoke_agent.duration",
            "of.another"
        ]
    );
    for metric in METRICS {
        if let Some(sent) = figures.get(metric.name) {
            assert_eq!(
                (sent.unit.as_str(), sent.description.as_str()),
                (metric.unit, metric.about)
            );
        }
    }
    let Some(Data::Sum(sum)) = &figures["ctx.items.appended"].data else {
        unreachable!()
    };
    let point = format!("{:?}", sum.data_points);
    assert!(sum.is_monotonic && point.contains("AsInt(3)"), "{point}");
    let Some(Data::Gauge(level)) = &figures["of.another"].data else {
        unreachable!()
    };
    assert!(format!("{level:?}").contains("AsDouble(1.5)"), "{level:?}");
    let Some(Data::Histogram(times)) = &figures["gen_ai.execute_tool.duration"].data else {
        unreachable!()
    };
    let [times] = times.data_points.as_slice() else {
        unreachable!("{times:?}")
    };
    assert_eq!((times.count, times.explicit_bounds.len()), (1, 14));
    let wanted = [
        ("error.type", "tool_failed"),
        ("gen_ai.tool.name", "search"),
        ("gen_ai.tool.type", "function"),
    ];
    let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(texts(&times.attributes), BTreeMap::from(wanted));
}

#[test]
fn a_collector_that_refuses_harms_nobody() {
    let (endpoint, told) = collector("400 Bad Request");
    let Otlp {
        layer,
        recorder,
        guard,
    } = build_otlp(&options(endpoint)).unwrap();
    let subscriber = tracing_subscriber::registry().with(layer);
    metrics::with_local_recorder(&recorder, || {
        tracing::subscriber::with_default(subscriber, work);
    });
    let error = guard.force_flush().unwrap_err();
    assert!(matches!(error, OtlpError::NotSent { .. }), "{error}");
    assert!(told.try_iter().count() >= 1);
    drop(guard);
}

#[test]
fn what_is_no_address_is_named_and_no_header_shown() {
    let bad = options("no address".to_owned());
    assert!(!format!("{bad:?}").contains("hunter2"));
    let error = build_otlp::<tracing_subscriber::Registry>(&bad).unwrap_err();
    assert!(
        error.to_string().contains("http://localhost:4318"),
        "{error}"
    );
}
