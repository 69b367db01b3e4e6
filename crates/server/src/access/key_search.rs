//! Search for keys of this server in what leaves it, in whatever spelling: percent-encoded, in base64 or hexadecimal, alone
//! or within other text.
//!
//! Keys are known by their hashes only. So every piece of a text that could be a key is hashed, and each key that this
//! program made is recognised by its beginning, wherever it stands.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode;

use crate::access::api_keys::ApiKeys;
use crate::access::new_key::{KEY_LENGTH, KEY_PREFIX};

/// How often a text may have been encoded, one encoding within the other.
const MAX_DEPTH: usize = 4;

/// Bytes of decoded text for each byte searched, at most. It bounds the work: who nests deeper hides a key on purpose,
/// which no search prevents.
const MAX_GROWTH: usize = 16;

/// The shortest piece of a text that is taken for a key.
const MIN_KEY_LENGTH: usize = 8;

/// Base64 with or without padding, and with any bits behind the last byte.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Whether a text holds a key of this server in any spelling.
pub(crate) fn holds_key(keys: &ApiKeys, text: &[u8]) -> bool {
    if !keys.is_key_required() {
        return false;
    }
    let mut room = text.len().saturating_mul(MAX_GROWTH);
    let mut level = vec![text.to_vec()];
    for _ in 0..=MAX_DEPTH {
        if level.iter().any(|text| holds_plain_key(keys, text)) {
            return true;
        }
        let decoded = level.iter().flat_map(|text| decoded_forms(text));
        level = decoded
            .take_while(|text| {
                let fits = text.len() <= room;
                room = room.saturating_sub(text.len());
                fits
            })
            .collect();
    }
    false
}

fn holds_plain_key(keys: &ApiKeys, text: &[u8]) -> bool {
    let is_known = |piece: &[u8]| {
        piece.len() >= MIN_KEY_LENGTH
            && std::str::from_utf8(piece).is_ok_and(|piece| keys.is_known(piece))
    };
    let made_here = text
        .windows(KEY_LENGTH)
        .filter(|piece| piece.starts_with(KEY_PREFIX.as_bytes()));
    // Twice, since a key that somebody made up may have the wider separators in it.
    let narrow = text.split(|byte| is_separator(*byte));
    let wide = text.split(|byte| is_separator(*byte) || b"=:/@|?#.".contains(byte));
    made_here.chain(narrow).chain(wide).any(is_known)
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte.is_ascii_control() || b",;&\"'<>()[]{}\\".contains(&byte)
}

/// Returns what a text, and each piece of it, may have been before it was encoded.
fn decoded_forms(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let escaped = text.contains(&b'%').then(|| percent_decode(text).collect());
    let is_piece = |piece: &&[u8]| piece.len() >= MIN_KEY_LENGTH;
    let standard = text
        .split(|byte| !byte.is_ascii_alphanumeric() && !b"+/".contains(byte))
        .filter(is_piece)
        .flat_map(|piece| decoded_base64(&STANDARD, piece));
    // Also where a path's slashes stand around it.
    let url_safe = text
        .split(|byte| !byte.is_ascii_alphanumeric() && !b"-_".contains(byte))
        .filter(is_piece)
        .flat_map(|piece| decoded_base64(&URL_SAFE, piece));
    let hex = text
        .split(|byte| !byte.is_ascii_hexdigit())
        .filter(|piece| piece.len() >= 2 * MIN_KEY_LENGTH)
        .flat_map(decoded_hex);
    escaped
        .into_iter()
        .chain(standard)
        .chain(url_safe)
        .chain(hex)
}

/// Decodes from each of the first four characters on: what was encoded need not begin where the piece does.
fn decoded_base64(base64: &GeneralPurpose, piece: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..4).filter_map(|skipped| {
        let piece = piece.get(skipped..)?;
        // One character more than whole bytes is none of the encoding.
        let whole = match piece.len() % 4 {
            1 => piece.len() - 1,
            _ => piece.len(),
        };
        base64.decode(piece.get(..whole)?).ok()
    })
}

/// Decodes from each of the first two digits on.
fn decoded_hex(piece: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let value = |digit: &u8| char::from(*digit).to_digit(16).unwrap_or_default() as u8;
    (0..2).filter_map(move |skipped| {
        let pairs = piece.get(skipped..)?.chunks_exact(2);
        Some(
            pairs
                .map(|pair| {
                    pair.iter()
                        .fold(0_u8, |byte, digit| byte << 4 | value(digit))
                })
                .collect(),
        )
    })
}
