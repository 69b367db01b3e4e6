//! What a sweep of everything costs: linear but for the sorting.

#![expect(clippy::unwrap_used, reason = "a benchmark")]

use bytes::Bytes;
use contexture_ir::{ContentHash, ConversationId, Owner};
use contexture_offload::{
    CopyKey, CopyKind, CopyScope, EvictionLimits, MemoryOffloadStore, OffloadStore, sweep_copies,
};
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};

fn sweeps(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (owner, chat) = (Owner::local(), ConversationId::new("c").unwrap());
    let filled = |count: u64| {
        let store = MemoryOffloadStore::new();
        runtime.block_on(async {
            for n in 0..count {
                let key = CopyKey::new(&owner, &chat, ContentHash::of(&n.to_le_bytes()));
                let at = i64::try_from(n).unwrap();
                let text = Bytes::from_static(b"text");
                store
                    .put_copy(&key, text, CopyKind::Copy, at)
                    .await
                    .unwrap();
            }
        });
        store
    };
    let caps = EvictionLimits {
        max_count: Some(0),
        ..EvictionLimits::default()
    };
    let mut group = c.benchmark_group("sweep everything");
    for count in [1_000, 5_000, 20_000] {
        group.bench_function(BenchmarkId::from_parameter(count), |b| {
            let run = |store: MemoryOffloadStore| {
                runtime
                    .block_on(sweep_copies(&store, &CopyScope::All, &caps, 0))
                    .unwrap()
            };
            b.iter_batched(|| filled(count), run, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, sweeps);
criterion_main!(benches);
