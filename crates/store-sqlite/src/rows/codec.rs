//! How the bytes of items, state values and blobs stand in the file: as they are, or compressed.
//!
//! The shortest bytes stay as they are; others are compressed with zstd where that saves a tenth at
//! least. Each is a frame of its own, so it is read, redacted and deleted alone. What short items
//! have in common (the shapes of their JSON, the calls of tools, common words) is in a dictionary
//! that is part of the program. Hashes and limits are those of the plain bytes. A stored size is
//! never believed beyond [`MAX_PLAIN`], so that no row can ask for more memory.
//!
//! Not here: how the dictionary was made (`dictionary/README.md`), and checks, which the rows have.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::LazyLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::get_frame_content_size;

/// The bytes as they are.
pub(crate) const PLAIN: u8 = 0;
/// One zstd frame that says how long its content is.
const ZSTD: u8 = 1;
/// The same, made with [`DICTIONARY`].
const ZSTD_2: u8 = 2;

/// The dictionary of [`ZSTD_2`]. Its bytes never change: what was packed with them cannot be
/// unpacked with others. A better one is another codec.
const DICTIONARY: &[u8] = include_bytes!("../../dictionary/2.zdict");

/// Bytes from which on compression is tried.
const MIN_PLAIN: usize = 96;
/// Bytes up to which it is tried, and beyond which no frame is unpacked.
const MAX_PLAIN: usize = 64 << 20;
const LEVEL: i32 = 3;

static ENCODER: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));
static DECODER: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    // Making these costs more than a small item does; there is one writer thread and few readers.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static PLAIN_DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The bytes as they are to be stored, and their codec.
pub(crate) fn encode_bytes(plain: &[u8]) -> (u8, Cow<'_, [u8]>) {
    if (MIN_PLAIN..=MAX_PLAIN).contains(&plain.len())
        && let Some(frame) = compress_frame(plain)
        && frame.len() <= plain.len() - plain.len() / 10
    {
        return (ZSTD_2, Cow::Owned(frame));
    }
    (PLAIN, Cow::Borrowed(plain))
}

/// The bytes that were packed, or why there are none.
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

/// `None`: zstd refuses; then the bytes are kept as they are.
fn compress_frame(plain: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut new = Compressor::with_prepared_dictionary(&ENCODER).ok()?;
            // The codec says it.
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

    /// What a version before this one wrote.
    #[test]
    fn a_frame_without_dictionary_is_unpacked() {
        let plain = b"words ".repeat(100);
        let frame = zstd::bulk::compress(&plain, LEVEL).unwrap();
        assert!(decode_bytes(ZSTD, &frame).unwrap() == plain);
    }

    /// The dictionary is the one that stored frames were made with.
    #[test]
    fn the_dictionary_is_what_it_was() {
        let hash = blake3::hash(DICTIONARY).to_hex();
        assert_eq!(&hash[..16], "53b151600e26f732");
    }

    /// A frame of a few bytes that claims anything else than it holds is refused, and nothing is
    /// made room for beyond the cap.
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
        // The bytes that say the size: another size is never the content's.
        for at in 0..frame.len().min(10) {
            let mut other = frame.to_vec();
            other[at] ^= 0xff;
            let got = decode_bytes(codec, &other);
            assert!(got.is_err() || got.unwrap().len() == 100_000, "byte {at}");
        }
    }
}
