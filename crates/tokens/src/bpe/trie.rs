//! A prefix tree over the bytes of all tokens: which is the longest token that starts here?
//!
//! Children live in one hash table keyed by (node, byte). The node at which a token ends has the token's number, so a
//! step takes one look-up; plain arrays over the first two bytes and over three-byte characters save the first
//! steps, and text in such characters goes by whole characters ([`CharTrie`]). Not here: which of several matching tokens an encoding chooses.

use super::char_trie::CharTrie;
use super::table::CompactMap;

/// Stands for "no token" and "no node".
pub(crate) const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;
const PAIRS: usize = 1 << 16;

/// The prefix tree while tokens are added; nodes are numbered as they come, parents before children.
pub(crate) struct TrieBuilder {
    children: CompactMap,
    /// The parent and the byte that leads from it.
    ways: Vec<(u32, u8)>,
    tokens: Vec<u32>,
}

/// The finished prefix tree.
#[derive(Debug)]
pub(crate) struct Trie {
    children: CompactMap,
    /// How many tokens there are: nodes from here on are only prefixes of tokens.
    count: u32,
    /// The token of each single byte.
    singles: Vec<u32>,
    /// The node of each two-byte prefix.
    pairs: Vec<u32>,
    /// The token of each three-byte character that is one.
    chars: Vec<u32>,
    steps: CharTrie,
}

impl TrieBuilder {
    /// Makes a tree with a root, which takes up to `nodes` nodes more.
    pub(crate) fn with_capacity(nodes: usize) -> Self {
        let mut builder = Self {
            // The bound is generous, and this table is soon replaced.
            children: CompactMap::with_slots(nodes + 1),
            ways: Vec::with_capacity(nodes + 1),
            tokens: Vec::with_capacity(nodes + 1),
        };
        builder.ways.push((ROOT, 0));
        builder.tokens.push(NONE);
        builder
    }

    /// Adds a token whose bytes are those on the way to `node` followed by `rest`, and returns the node it ends at.
    pub(crate) fn insert_token(&mut self, node: Option<u32>, rest: &[u8], token: u32) -> u32 {
        let mut at = node.unwrap_or(ROOT);
        for &byte in rest {
            at = self.get_or_add_child(at, byte);
        }
        if let Some(slot) = self.tokens.get_mut(at as usize) {
            *slot = token;
        }
        at
    }

    /// The longest token that is a proper prefix of each token, [`NONE`] for tokens without one.
    pub(crate) fn longest_proper_prefixes(&self, count: usize) -> Vec<u32> {
        let mut shorter = vec![NONE; count];
        let mut above: Vec<u32> = Vec::with_capacity(self.tokens.len());
        for (&token, way) in self.tokens.iter().zip(&self.ways) {
            let prefix = above.get(way.0 as usize).copied().unwrap_or(NONE);
            if let Some(slot) = shorter.get_mut(token as usize) {
                *slot = prefix;
            }
            above.push(if token == NONE { prefix } else { token });
        }
        // Parents come before children, so one pass in order of creation hands every node its nearest token
        // above.
        shorter
    }

    /// Closes the tree over `count` tokens, whose bytes are `words` in order, and gives the nodes of tokens the tokens'
    /// numbers.
    pub(crate) fn finish<'w>(
        self,
        count: u32,
        words: impl Iterator<Item = &'w [u8]> + Clone,
    ) -> Trie {
        let mut children = CompactMap::with_capacity(self.ways.len());
        let mut names: Vec<u32> = Vec::with_capacity(self.ways.len());
        // Nodes of tokens take the tokens' numbers; the others are numbered from `count` on.
        let mut next = count;
        for (index, (&token, way)) in self.tokens.iter().zip(&self.ways).enumerate() {
            let name = if token == NONE {
                next += 1;
                next - 1
            } else {
                token
            };
            names.push(name);
            if index > 0 {
                let parent = names.get(way.0 as usize).copied().unwrap_or(count);
                children.insert(child_key(parent, way.1), name);
            }
        }
        // The root is the first node without a token.
        let steps = words
            .clone()
            .filter(|word| take_three_byte_char(word).is_some())
            .map(|word| word.len() / 3 - 1)
            .sum();
        let steps = CharTrie::with_capacity(steps, next as usize);
        Trie::new(children, count, steps).with_steps(words)
        // Second pass: steps by characters look up nodes by their final numbers.
    }

    fn get_or_add_child(&mut self, node: u32, byte: u8) -> u32 {
        if let Some(child) = self.children.get(child_key(node, byte)) {
            return child;
        }
        let new = self.tokens.len() as u32;
        self.children.insert(child_key(node, byte), new);
        self.tokens.push(NONE);
        self.ways.push((node, byte));
        new
    }
}

impl Trie {
    fn new(children: CompactMap, count: u32, steps: CharTrie) -> Self {
        let child = |node: u32, byte: u8| children.get(child_key(node, byte));
        let bytes = || 0..=u8::MAX;
        let singles: Vec<u32> = bytes()
            .map(|byte| child(count, byte).unwrap_or(NONE))
            .collect();
        let mut pairs = Vec::with_capacity(PAIRS);
        for &single in &singles {
            pairs.extend(bytes().map(|byte| child(single, byte).unwrap_or(NONE)));
        }
        let mut chars = vec![NONE; PAIRS];
        // Only these lead bytes begin three-byte characters.
        for lead in 0xe0..=0xef_u8 {
            for middle in 0x80..=0xbf_u8 {
                let pair = pairs
                    .get(byte_pair_index(lead, middle))
                    .copied()
                    .unwrap_or(NONE);
                for last in 0x80..=0xbf_u8 {
                    if let Some(slot) = chars.get_mut(three_byte_code_point(lead, middle, last))
                        && let Some(node) = child(pair, last)
                        && node < count
                    {
                        *slot = node;
                    }
                }
            }
        }
        Self {
            children,
            count,
            singles,
            pairs,
            chars,
            steps,
        }
    }

    /// Fills the table of steps by whole characters.
    fn with_steps<'w>(mut self, words: impl Iterator<Item = &'w [u8]>) -> Self {
        for word in words {
            let Some((first, mut rest)) = take_three_byte_char(word) else {
                continue;
            };
            let Some(mut node) = self.chars.get(first).copied().filter(|&node| node != NONE) else {
                continue;
            };
            while !rest.is_empty() {
                let step = take_three_byte_char(rest).and_then(|(character, after)| {
                    let whole = rest.len() - after.len();
                    let next = rest
                        .iter()
                        .take(whole)
                        .try_fold(node, |node, &byte| self.children.get(child_key(node, byte)))?;
                    Some((character, after, next))
                });
                // The rest goes on by bytes somewhere below this node, so walking by whole characters would
                // miss a token.
                let Some((character, after, next)) = step else {
                    self.steps.mark_open(node);
                    break;
                };
                self.steps.insert_step(node, character, next);
                (node, rest) = (next, after);
            }
        }
        self
    }

    /// The longest token that `bytes` begin with, [`NONE`] if they begin with none (which is when they are empty,
    /// every byte being a token).
    #[inline]
    pub(crate) fn longest_prefix(&self, bytes: &[u8]) -> u32 {
        if let Some((character, rest)) = take_three_byte_char(bytes) {
            let token = self.chars.get(character).copied();
            if let Some(token) = token.filter(|&token| token != NONE) {
                return self.walk_chars(token, rest);
            }
        }
        match bytes {
            [] => NONE,
            [byte] => self.single_byte_token(*byte),
            [first, second, rest @ ..] => {
                let best = self.single_byte_token(*first);
                match self.pairs.get(byte_pair_index(*first, *second)) {
                    None | Some(&NONE) => best,
                    // A two-byte token is itself the best so far; a mere prefix keeps the one-byte token.
                    Some(&node) if node < self.count => self.walk_bytes(node, node, rest),
                    Some(&node) => self.walk_bytes(node, best, rest),
                }
            }
        }
    }

    /// The longest token on the way down from a token that is one character, by whole characters.
    #[inline]
    fn walk_chars(&self, token: u32, mut rest: &[u8]) -> u32 {
        let (mut node, mut best) = (token, token);
        loop {
            if self.steps.is_open(node) {
                return self.walk_bytes(node, best, rest);
            }
            let step = take_three_byte_char(rest).and_then(|(character, after)| {
                Some((self.steps.next_node(node, character)?, after))
            });
            let Some((next, after)) = step else {
                return best;
            };
            (node, rest) = (next, after);
            if node < self.count {
                best = node;
            }
        }
    }

    /// The longest token on the way down from `node` along `rest`, `best` if there is none.
    #[inline]
    fn walk_bytes(&self, mut node: u32, mut best: u32, rest: &[u8]) -> u32 {
        for &byte in rest {
            match self.children.get(child_key(node, byte)) {
                Some(child) => node = child,
                None => break,
            }
            if node < self.count {
                best = node;
            }
        }
        best
    }

    #[inline]
    fn single_byte_token(&self, byte: u8) -> u32 {
        self.singles.get(usize::from(byte)).copied().unwrap_or(NONE)
    }
}

/// Nodes are fewer than 2^24, so the key of [`NONE`] is no node's key.
#[inline]
fn child_key(node: u32, byte: u8) -> u32 {
    node << 8 | u32::from(byte)
}

#[inline]
fn byte_pair_index(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// Takes a three-byte character off the front, as its code point.
#[inline]
fn take_three_byte_char(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [
            lead @ 0xe0..=0xef,
            middle @ 0x80..=0xbf,
            last @ 0x80..=0xbf,
            rest @ ..,
        ] => Some((three_byte_code_point(*lead, *middle, *last), rest)),
        _ => None,
    }
}

/// The code point of a three-byte character.
#[inline]
fn three_byte_code_point(lead: u8, middle: u8, last: u8) -> usize {
    usize::from(lead & 0x0f) << 12 | usize::from(middle & 0x3f) << 6 | usize::from(last & 0x3f)
}
