//! What the preview of a tool output of 10 MB costs: a log, one line of JSON, lines that all report errors, a
//! history of flags; and finding something in them.

use std::hint::black_box;

use contexture_compile::{Link, PreviewPolicy, Previewer};
use contexture_ir::ContentHash;
use contexture_tokens::{Encoding, counter_for};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const BYTES: usize = 10 << 20;

fn filled(piece: &str) -> String {
    piece.repeat(BYTES / piece.len() + 1)
}

fn texts() -> [(&'static str, String); 5] {
    [
        (
            "log",
            filled("2026-11-21T10:00:00Z INFO request served path=/v1/items status=200 in 12 ms\n"),
        ),
        (
            "one line of JSON",
            filled("{\"is_error\":false,\"name\":\"mirror\"},"),
        ),
        ("errors only", filled("error: it is not well\n")),
        ("Chinese", filled("纪录 一切正常，没有问题。\n")),
        ("flags", filled("🇩🇪")),
    ]
}

fn previews(c: &mut Criterion) {
    let policy = PreviewPolicy::default();
    let previewer = Previewer {
        policy: &policy,
        counter: counter_for(Encoding::O200kBase),
    };
    let link = Link::new(ContentHash::of(b""));
    let mut group = c.benchmark_group("preview of 10 MB");
    for (name, text) in texts() {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| black_box(previewer.preview_text(&text, link)))
        });
    }
    group.finish();
}

criterion_group!(benches, previews);
criterion_main!(benches);
