//! Tokens of sound.

use contexture_catalogue::MediaRules;

use crate::count::TokenCount;
use crate::media::{fallback_rules, multiply_bounds};

/// Bytes per second of sound: hardly more than `DENSE`, usually `USUAL`, hardly less than `THIN` (8 kbit/s speech).
const DENSE: u64 = 192_000;
const USUAL: u64 = 16_000;
const THIN: u64 = 1_000;

/// The tokens of a sound file, by its seconds: from the header of a WAV file, else bounded by its length in bytes at
/// 8 to 1,536 kbit/s.
#[must_use]
pub fn audio_tokens(rules: &MediaRules, bytes: &[u8]) -> TokenCount {
    // Where the model's provider publishes nothing, the careful rule decides.
    let second = rules.audio_second.or(fallback_rules().audio_second);
    let length = bytes.len() as u64;
    let seconds = match wav_bytes_per_second(bytes) {
        Some(rate) => {
            let seconds = length.div_ceil(rate);
            (seconds, seconds, seconds)
        }
        None => (
            length / DENSE,
            length.div_ceil(USUAL),
            length.div_ceil(THIN),
        ),
    };
    match second {
        Some(second) => multiply_bounds(second, seconds),
        // No rule at all: between nothing and one token a byte.
        None => TokenCount::estimate(0, length / 500, length),
    }
}

/// The rate in a WAV header; sound slower than 8 kbit/s is not believed.
fn wav_bytes_per_second(bytes: &[u8]) -> Option<u64> {
    let header = bytes.get(..32)?;
    let parts = (header.get(..4)?, header.get(8..16)?);
    if parts != (b"RIFF".as_slice(), b"WAVEfmt ".as_slice()) {
        return None;
    }
    let rate = u32::from_le_bytes(header.get(28..32)?.try_into().ok()?);
    (u64::from(rate) >= THIN).then_some(rate.into())
}
