//! Makes `data/*.bpe` from the vocabularies that the `bpe-openai` crate carries.
//!
//! Run as `cargo run --release -p contexture-tokens --example pack-vocabularies`. The test
//! `vocabularies_are_those_of_the_oracle` checks the result token by token.

use std::collections::HashMap;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    for (name, oracle) in [
        ("o200k_base", bpe_openai::o200k_base()),
        ("cl100k_base", bpe_openai::cl100k_base()),
    ] {
        let tokens: Vec<&[u8]> = (0..oracle.bpe.num_tokens() as u32)
            .map(|token| oracle.bpe.token_bytes(token))
            .collect();
        std::fs::write(data.join(name).with_extension("bpe"), pack(&tokens)?)?;
    }
    Ok(())
}

/// Writes the layout that `src/bpe/packed.rs` describes.
fn pack(tokens: &[&[u8]]) -> Result<Vec<u8>, String> {
    let ranks: HashMap<&[u8], u32> = tokens.iter().copied().zip(0..).collect();
    let mut packed = b"CTXBPE1\n".to_vec();
    number(&mut packed, tokens.len() as u32);
    for (rank, token) in tokens.iter().enumerate() {
        if rank < 256 {
            let [byte] = token else {
                return Err(format!("token {rank} is not a single byte"));
            };
            packed.push(*byte);
        } else {
            let (left, right) = split(token, &ranks)
                .ok_or_else(|| format!("token {rank} is not merged from two tokens"))?;
            number(&mut packed, left);
            number(&mut packed, right);
        }
    }
    Ok(packed)
}

/// Merges the bytes of a token as the encoding would, up to the last merge, and returns its two parts.
fn split(token: &[u8], ranks: &HashMap<&[u8], u32>) -> Option<(u32, u32)> {
    let mut bounds: Vec<usize> = (0..=token.len()).collect();
    while bounds.len() > 3 {
        let (_, at) = (0..bounds.len() - 2)
            .filter_map(|at| {
                let merged = token.get(*bounds.get(at)?..*bounds.get(at + 2)?)?;
                Some((*ranks.get(merged)?, at))
            })
            .min()?;
        bounds.remove(at + 1);
    }
    let middle = *bounds.get(1)?;
    Some((
        *ranks.get(token.get(..middle)?)?,
        *ranks.get(token.get(middle..)?)?,
    ))
}

fn number(packed: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        packed.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    packed.push(value as u8);
}
