//! The memo of counts and lowered chunks, by content: bounded, what two generations did not use is
//! forgotten.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use contexture_condense::Statement;
use contexture_ir::ContentHash;
use contexture_tokens::TokenBounds;
use contexture_wire::Chunk;
use indexmap::IndexMap;

/// Counts and chunks.
#[derive(Debug)]
pub(crate) struct Memo {
    counts: GenerationalMap<TokenBounds>,
    chunks: GenerationalMap<Arc<LoweredChunk>>,
    names: Vec<String>,
    statements: GenerationalMap<Arc<[Arc<Statement>]>>,
}

/// One block as the target writes it.
#[derive(Debug)]
pub(crate) struct LoweredChunk {
    pub(crate) key: ContentHash,
    pub(crate) json: Arc<str>,
    pub(crate) chunk: Chunk,
}

/// A content and how it was treated: what was counted by whom, lowered for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemoKey {
    pub(crate) content: ContentHash,
    pub(crate) variant: u32,
}

impl Memo {
    /// An empty memo of about so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            counts: GenerationalMap::new(bytes / 4),
            chunks: GenerationalMap::new(bytes / 4 * 3),
            names: Vec::new(),
            // Most messages state nothing, and take only their entry.
            statements: GenerationalMap::new(bytes / 16),
        }
    }

    /// A small number that stands for a name as long as this memo lives.
    pub(crate) fn variant_id(&mut self, name: &str) -> u32 {
        // A linear search: a process knows a handful of targets, and a key of four bytes keeps entries small.
        let at = self.names.iter().position(|known| known == name);
        let at = at.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    pub(crate) fn get_or_count(
        &mut self,
        key: MemoKey,
        count: impl FnOnce() -> TokenBounds,
    ) -> TokenBounds {
        self.counts.get_or_insert(key, || (count(), 0))
    }

    /// What a person says about rules in an item, by the hash of its content.
    pub(crate) fn get_or_find_statements(
        &mut self,
        content: ContentHash,
        find: impl FnOnce() -> Arc<[Arc<Statement>]>,
    ) -> Arc<[Arc<Statement>]> {
        let key = MemoKey {
            content,
            variant: 0,
        };
        self.statements.get_or_insert(key, || {
            let found = find();
            let size = found
                .iter()
                .map(|one| one.text.len() + size_of::<Statement>());
            let size = size.sum();
            (found, size)
        })
    }

    pub(crate) fn get_or_lower(
        &mut self,
        key: MemoKey,
        lower: impl FnOnce() -> Chunk,
    ) -> Arc<LoweredChunk> {
        let made = || {
            let mut chunk = lower();
            let json: Arc<str> = std::mem::take(&mut chunk.json).into();
            let size = json.len() + size_of::<LoweredChunk>();
            let lowered = LoweredChunk {
                key: key.content,
                json,
                chunk,
            };
            (Arc::new(lowered), size)
        };
        self.chunks.get_or_insert(key, made)
    }
}

/// Two generations: what is used moves to the young one; when that is full it becomes the old one and
/// the old one is forgotten.
#[derive(Debug)]
struct GenerationalMap<V> {
    young: GenerationMap<V>,
    old: GenerationMap<V>,
    weight: usize,
    capacity: usize,
}

type GenerationMap<V> = IndexMap<MemoKey, (V, usize), BuildHasherDefault<Prehashed>>;

impl<V> GenerationalMap<V> {
    fn new(capacity: usize) -> Self {
        Self {
            young: GenerationMap::default(),
            old: GenerationMap::default(),
            weight: 0,
            capacity: capacity / 2,
        }
    }

    fn get_or_insert(&mut self, key: MemoKey, make: impl FnOnce() -> (V, usize)) -> V
    where
        V: Clone,
    {
        // A hit among the old moves to the young, so whatever is used survives the next turnover.
        if let Some((value, _)) = self.young.get(&key) {
            return value.clone();
        }
        // `swap_remove` is constant time; the order of the old generation means nothing.
        let (value, weight) = self.old.swap_remove(&key).unwrap_or_else(make);
        let whole = weight + size_of::<(MemoKey, V)>();
        // Two generations instead of an LRU list: no bookkeeping on a hit, and at most one full
        // generation of dead entries.
        if self.weight + whole > self.capacity {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.weight += whole;
        self.young.insert(key, (value.clone(), weight));
        value
    }
}

/// Content hashes are uniform already: eight of their bytes are the hash.
#[derive(Default)]
struct Prehashed(u64);

impl Hasher for Prehashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            self.0 = self.0.rotate_left(5) ^ u64::from_le_bytes(word);
        }
    }

    // The length of a fixed array carries no information.
    fn write_usize(&mut self, _length: usize) {}

    fn write_u32(&mut self, number: u32) {
        self.0 = self
            .0
            .rotate_left(5)
            .wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}
