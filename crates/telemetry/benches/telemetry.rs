//! What telling costs while nobody listens: no subscriber, no recorder.

use contexture_ir::{ResponseInfo, Usage};
use contexture_telemetry::{ModelCall, Operation, count_appended_items, record_compile};
use contexture_wire::Format;
use criterion::{Criterion, criterion_group, criterion_main};

fn unheard(criterion: &mut Criterion) {
    let info = ResponseInfo {
        usage: Some(Usage {
            input_tokens: Some(12_000),
            output_tokens: Some(300),
            ..Usage::default()
        }),
        ..ResponseInfo::default()
    };
    let mut group = criterion.benchmark_group("unheard");
    group.bench_function("a call of a model", |bench| {
        bench.iter(|| {
            let mut call = ModelCall::begin(Format::Anthropic, "claude-haiku-4-5", Some("c"));
            call.record_response(Some("claude-haiku-4-5-20251001"), &info);
            call.end(None);
        });
    });
    group.bench_function("a call of a tool", |bench| {
        bench.iter(|| Operation::for_tool("search", "call_1").end(None));
    });
    group.bench_function("a compile", |bench| {
        bench.iter(|| record_compile(Format::Anthropic, "claude-haiku-4-5", 12_000, 300));
    });
    group.bench_function("an append", |bench| bench.iter(|| count_appended_items(3)));
    group.finish();
}

criterion_group!(benches, unheard);
criterion_main!(benches);
