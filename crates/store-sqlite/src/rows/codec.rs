//! Storage encoding of items, state values and blobs: plain or compressed.
//!
//! Very short bytes stay plain; others are compressed with zstd if that saves at least a tenth.
//! Each value is a frame of its own, so it is read, redacted and deleted alone. A dictionary that
//! is compiled into the program has what short items share (JSON keys, tool calls, common words).
//! Hashes and limits refer to the plain bytes. A stored size above [`MAX_PLAIN`] is refused, so
//! that no row can cause a huge allocation.
//!
//! Not here: how the dictionary was made (`dictionary/README.md`), and checksums, which the rows
//! have.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::LazyLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::get_frame_content_size;

/// Codec of plain bytes.
pub(crate) const PLAIN: u8 = 0;
/// Codec of one zstd frame with its content size, without a dictionary.
const ZSTD: u8 = 1;
/// Codec of the same with [`DICTIONARY`].
const ZSTD_2: u8 = 2;

/// Dictionary of [`ZSTD_2`]. Its bytes must never change, or stored frames could not be
/// decompressed. A better dictionary needs a new codec.
const DICTIONARY: &[u8] = include_bytes!("../../dictionary/2.zdict");

/// Smallest number of bytes that is compressed.
const MIN_PLAIN: usize = 96;
/// Largest number of bytes that is compressed, and largest size of a frame's content.
const MAX_PLAIN: usize = 64 << 20;
const LEVEL: i32 = 3;

static ENCODER: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));
static DECODER: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    // Creating these costs more than a small item does; there is one writer thread and few readers.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static PLAIN_DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Encodes bytes for storage; returns their codec too.
pub(crate) fn encode_bytes(plain: &[u8]) -> (u8, Cow<'_, [u8]>) {
    if (MIN_PLAIN..=MAX_PLAIN).contains(&plain.len())
        && let Some(frame) = compress_frame(plain)
        && frame.len() <= plain.len() - plain.len() / 10
    {
        return (ZSTD_2, Cow::Owned(frame));
    }
    (PLAIN, Cow::Borrowed(plain))
}

/// Decodes stored bytes, or says what is wrong with them.
pub(crate) fn decode_bytes(codec: u8, stored: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    match codec {
        PLAIN => return Ok(Cow::Borrowed(stored)),
        ZSTD => PLAIN_DECOMPRESSOR.with_borrow_mut(|slot| {
            let make = || Decompressor::new().ok();
            decompress_frame(slot, make, stored)
        }),
        ZSTD_2 => DECOMPRESSOR.with_borrow_mut(|slot| {
            let make = || Decompressor::with_prepared_dictionary(&DECODER).ok();
            decompress_frame(slot, make, stored)
        }),
        _ => Err("its bytes have an unknown codec"),
    }
    .map(Cow::Owned)
}

/// Compresses bytes; returns `None` if zstd fails, and then they are stored plain.
fn compress_frame(plain: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut new = Compressor::with_prepared_dictionary(&ENCODER).ok()?;
            // The codec already identifies the dictionary.
            new.include_dictid(false).ok()?;
            *slot = Some(new);
        }
        slot.as_mut()?.compress(plain).ok()
    })
}

fn decompress_frame(
    slot: &mut Option<Decompressor<'static>>,
    make: impl Fn() -> Option<Decompressor<'static>>,
    frame: &[u8],
) -> Result<Vec<u8>, &'static str> {
    let size = get_frame_content_size(frame).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok());
    let size = size.ok_or("its compressed bytes do not say how many they were")?;
    if size > MAX_PLAIN {
        return Err("its compressed bytes claim to be too many");
    }
    if slot.is_none() {
        *slot = make();
    }
    let plain = slot.as_mut().and_then(|d| d.decompress(frame, size).ok());
    let plain = plain.filter(|plain| plain.len() == size);
    plain.ok_or("its compressed bytes are damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize) -> Vec<u8> {
        let mut hash = blake3::Hasher::new().finalize_xof();
        let mut bytes = vec![0; count];
        hash.fill(&mut bytes);
        bytes
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        for (plain, wanted) in [
            (Vec::new(), PLAIN),
            (b"words ".repeat(15), PLAIN),
            (b"words ".repeat(16), ZSTD_2),
            (noise(5000), PLAIN),
            (vec![b'a'; 20 << 20], ZSTD_2),
            (vec![b'a'; MAX_PLAIN + 1], PLAIN),
        ] {
            let (codec, stored) = encode_bytes(&plain);
            assert_eq!(codec, wanted, "{} bytes", plain.len());
            assert!(
                decode_bytes(codec, &stored).unwrap() == plain,
                "{}",
                plain.len()
            );
        }
    }

    /// Frames of older versions of this program can be read.
    #[test]
    fn a_frame_without_dictionary_is_unpacked() {
        let plain = b"words ".repeat(100);
        let frame = zstd::bulk::compress(&plain, LEVEL).unwrap();
        assert!(decode_bytes(ZSTD, &frame).unwrap() == plain);
    }

    /// The dictionary has not changed since frames were stored with it.
    #[test]
    fn the_dictionary_is_what_it_was() {
        let hash = blake3::hash(DICTIONARY).to_hex();
        assert_eq!(&hash[..16], "53b151600e26f732");
    }

    /// A frame whose claimed size is not that of its content is refused, and nothing is allocated
    /// beyond the limit.
    #[test]
    fn claims_are_not_believed() {
        let (codec, frame) = encode_bytes(&[b'a'; 100_000]);
        assert!(decode_bytes(9, &frame).is_err());
        assert!(decode_bytes(codec, b"").is_err());
        assert!(decode_bytes(codec, b"no frame at all").is_err());
        let huge = zstd::bulk::compress(&vec![0; MAX_PLAIN + 1], 1).unwrap();
        assert!(huge.len() < 10_000);
        assert!(decode_bytes(codec, &huge).is_err());
        let unsized_frame = zstd::stream::encode_all(&[0_u8; 5000][..], 1).unwrap();
        assert!(decode_bytes(codec, &unsized_frame).is_err());
        for end in 0..frame.len() {
            assert!(decode_bytes(codec, &frame[..end]).is_err(), "{end} bytes");
        }
        // The bytes of the frame header with the content size.
        for at in 0..frame.len().min(10) {
            let mut other = frame.to_vec();
            other[at] ^= 0xff;
            let got = decode_bytes(codec, &other);
            assert!(got.is_err() || got.unwrap().len() == 100_000, "byte {at}");
        }
    }
}
