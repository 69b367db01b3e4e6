//! Width and height of an image from the first bytes of its file.
//!
//! PNG, JPEG, GIF and WebP, the formats that models take. The bytes are not trusted: nothing is believed beyond the two
//! numbers, and a file that is cut, broken or of another kind has no dimensions.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The size of an image in pixels, both sides at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dimensions {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

/// Cameras put up to a few hundred kilobytes of metadata before a JPEG's dimensions.
const MOST_BASE64: usize = 512 * 1024;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

impl Dimensions {
    /// Reads the header of a PNG, JPEG, GIF or WebP file; `None` if there is none or it says nothing sensible.
    #[must_use]
    pub fn read_header(bytes: &[u8]) -> Option<Self> {
        let (width, height) = match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => png_size(bytes),
            [0xff, 0xd8, ..] => jpeg_size(bytes),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => gif_size(bytes),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => webp_size(bytes),
            _ => None,
        }?;
        (width > 0 && height > 0).then_some(Self { width, height })
    }

    /// Reads the header of an image in base64, of which only the beginning is decoded.
    ///
    /// The text is standard base64, padded or not, without line breaks, as in the data of a `data:` URL.
    #[must_use]
    pub fn read_base64_header(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        let whole = text.len().min(MOST_BASE64);
        // Decoding goes by groups of four; the rest of a cut text is not needed.
        let cut = if whole < text.len() {
            whole / 4 * 4
        } else {
            whole
        };
        let bytes = LENIENT.decode(text.get(..cut)?).ok()?;
        Self::read_header(&bytes)
    }
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.get(12..16)? != b"IHDR" {
        return None;
    }
    Some((big_endian(bytes, 16, 4)?, big_endian(bytes, 20, 4)?))
}

fn gif_size(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((little_endian(bytes, 6, 2)?, little_endian(bytes, 8, 2)?))
}

/// Walks the segments up to the first frame header.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        // Any number of fill bytes may stand before a marker.
        while *bytes.get(at)? == 0xff {
            at += 1;
        }
        let marker = *bytes.get(at)?;
        at += 1;
        match marker {
            // Frame headers, without the tables that share their range.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((big_endian(bytes, at + 5, 2)?, big_endian(bytes, at + 3, 2)?));
            }
            // Markers without a segment.
            0x01 | 0xd0..=0xd8 => {}
            // End of the image, or its data begin before any frame.
            0xd9 | 0xda => return None,
            _ => {
                let length = big_endian(bytes, at, 2)?;
                at = at.checked_add(length.max(2) as usize)?;
            }
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => {
            if bytes.get(23..26)? != [0x9d, 0x01, 0x2a] {
                return None;
            }
            Some((
                little_endian(bytes, 26, 2)? & 0x3fff,
                little_endian(bytes, 28, 2)? & 0x3fff,
            ))
        }
        b"VP8L" => {
            if *bytes.get(20)? != 0x2f {
                return None;
            }
            let bits = little_endian(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((
            little_endian(bytes, 24, 3)? + 1,
            little_endian(bytes, 27, 3)? + 1,
        )),
        _ => None,
    }
}

fn big_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(
        bytes
            .iter()
            .fold(0, |sum, &byte| sum << 8 | u32::from(byte)),
    )
}

fn little_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u32::from(byte)),
    )
}
