//! Tokens of images, files and sound.

use contexture_catalogue::{Catalogue, Encoding, MediaRules, ModelSpec};
use contexture_tokens::media::{
    Detail, Dimensions, audio_tokens, document_tokens, image_tokens, pdf_pages, rules_of,
};
use contexture_tokens::{ExactCounter, TokenCount};
use proptest::prelude::*;

fn rules(model: &str) -> &'static MediaRules {
    rules_of(Catalogue::builtin().resolve(model).unwrap())
}

fn size(width: u32, height: u32) -> Option<Dimensions> {
    Some(Dimensions { width, height })
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend([8, 6, 0, 0, 0]);
    bytes
}

fn jpeg(width: u16, height: u16, metadata: usize) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8];
    for chunk in vec![0xff; metadata].chunks(60_000) {
        bytes.extend([0xff, 0xe1]);
        bytes.extend((chunk.len() as u16 + 2).to_be_bytes());
        bytes.extend(chunk);
    }
    // A Huffman table in the range of frame headers, and fill bytes.
    bytes.extend([0xff, 0xc4, 0, 4, 9, 9, 0xff, 0xff, 0xff, 0xc2, 0, 11, 8]);
    bytes.extend(height.to_be_bytes());
    bytes.extend(width.to_be_bytes());
    bytes.extend([1, 1, 0x11, 0]);
    bytes
}

fn webp(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = b"RIFF\0\0\0\0WEBP".to_vec();
    bytes.extend(kind);
    bytes.extend([0; 4]);
    bytes.extend(data);
    bytes
}

#[test]
fn headers_are_read() {
    let lossless = (640 - 1) | (480 - 1) << 14;
    for (name, bytes, expected) in [
        ("png", png(640, 480), size(640, 480)),
        ("png without pixels", png(0, 480), None),
        ("jpeg", jpeg(640, 480, 0), size(640, 480)),
        (
            "jpeg of a camera",
            jpeg(4000, 3000, 200_000),
            size(4000, 3000),
        ),
        ("gif", b"GIF89a\x80\x02\xe0\x01".to_vec(), size(640, 480)),
        ("old gif", b"GIF87a\x01\0\x01\0".to_vec(), size(1, 1)),
        (
            "webp",
            webp(b"VP8 ", &[0, 0, 0, 0x9d, 1, 0x2a, 0x80, 2, 0xe0, 1]),
            size(640, 480),
        ),
        (
            "lossless webp",
            webp(
                b"VP8L",
                &[&[0x2f], u32::to_le_bytes(lossless).as_slice()].concat(),
            ),
            size(640, 480),
        ),
        (
            "extended webp",
            webp(b"VP8X", &[0, 0, 0, 0, 0x7f, 2, 0, 0xdf, 1, 0]),
            size(640, 480),
        ),
        ("unknown webp", webp(b"ABCD", &[0; 20]), None),
        ("svg", b"<svg width=\"10\" height=\"10\"/>".to_vec(), None),
        ("jpeg of nothing but fill", vec![0xff; 1_000_000], None),
        ("empty", Vec::new(), None),
    ] {
        assert_eq!(Dimensions::read_header(&bytes), expected, "{name}");
        let cut = bytes.len().saturating_sub(bytes.len() / 2);
        assert!(
            Dimensions::read_header(&bytes[..cut]).is_none() || cut > 24,
            "{name}"
        );
    }
}

#[test]
fn base64_is_decoded_as_far_as_needed() {
    let one_pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
    assert_eq!(Dimensions::read_base64_header(one_pixel), size(1, 1));
    assert_eq!(Dimensions::read_base64_header(&one_pixel[..42]), size(1, 1));
    let long = format!("{}{}", &one_pixel[..80], "A".repeat(5_000_000));
    assert_eq!(Dimensions::read_base64_header(&long), size(1, 1));
    for broken in [
        "",
        "=",
        "****",
        "iVBORw0K GgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe",
    ] {
        assert_eq!(Dimensions::read_base64_header(broken), None, "{broken}");
    }
}

/// The examples of the providers' guides.
#[test]
fn images_count_as_documented() {
    for (model, size, detail, expected) in [
        ("gpt-4o", size(1024, 1024), Detail::High, 765),
        ("gpt-4o", size(2048, 4096), Detail::High, 1105),
        ("gpt-4o", size(4096, 8192), Detail::Low, 85),
        ("gpt-4o", size(100, 100), Detail::High, 255),
        ("gpt-5", size(1024, 1024), Detail::High, 630),
        ("o3", size(1024, 1024), Detail::High, 675),
        ("gpt-4o-mini", size(1024, 1024), Detail::High, 25_501),
        ("gpt-4.1-mini", size(1024, 1024), Detail::High, 1659),
        ("gpt-4.1-mini", size(4096, 4096), Detail::High, 2489),
        ("gpt-4.1-mini", size(4096, 4096), Detail::Low, 415),
        ("gpt-5.4", size(1024, 1024), Detail::Auto, 1229),
        ("gpt-5.4", size(1280, 720), Detail::High, 1104),
        ("gpt-5.4", size(4096, 4096), Detail::Auto, 3000),
        ("gpt-5.4", size(4096, 4096), Detail::Original, 12_000),
        ("gpt-5.5", size(4096, 4096), Detail::Auto, 12_000),
        ("gpt-6-astra", size(1280, 720), Detail::Auto, 1104),
        ("gpt-6-astra", size(4032, 3024), Detail::Auto, 14_364),
        ("claude-sonnet-4-5", size(1000, 1000), Detail::Low, 1296),
        ("claude-sonnet-4-5", size(200, 200), Detail::Auto, 64),
        ("claude-sonnet-4-5", size(4000, 3000), Detail::Auto, 1568),
        ("claude-opus-4-8", size(1920, 1080), Detail::Auto, 2691),
        ("claude-opus-4-8", size(2000, 1500), Detail::Auto, 3888),
        ("claude-opus-4-8", size(3840, 2160), Detail::Auto, 4784),
        ("claude-opus-4-8", size(8000, 8000), Detail::Auto, 4784),
        ("gemini-2.5-pro", size(384, 384), Detail::Auto, 258),
        ("gemini-2.5-pro", size(960, 540), Detail::Auto, 1548),
        ("gemini-2.5-pro", size(960, 540), Detail::Low, 64),
        ("gemini-3.1-pro-preview", size(5, 5), Detail::Auto, 1120),
        ("gemini-3.1-pro-preview", None, Detail::Low, 280),
    ] {
        let tokens = image_tokens(rules(model), size, detail);
        assert_eq!(tokens.count, expected, "{model} {size:?} {detail:?}");
        assert!(!tokens.is_exact());
    }
}

/// What the guides give for images that are scaled down, and what was measured where no guide gives a number.
#[test]
fn scaled_images_are_within_the_bounds() {
    for (model, size, detail, documented) in [
        ("gpt-4.1-mini", size(1800, 2400), Detail::High, 2353),
        ("gpt-5.5", size(4032, 3024), Detail::Auto, 11_868),
        ("gpt-5.5", size(3840, 2160), Detail::Auto, 9792),
        ("gpt-6-astra", size(4032, 3024), Detail::High, 2942),
        ("gpt-6-astra", size(3840, 2160), Detail::High, 2931),
        ("claude-sonnet-4-5", size(1920, 1080), Detail::Auto, 1560),
        ("claude-haiku-4-5", size(4032, 3024), Detail::Auto, 1596),
        ("claude-opus-5", size(1080, 1920), Detail::Auto, 2691),
    ] {
        let tokens = image_tokens(rules(model), size, detail);
        assert!(
            tokens.low <= documented && documented <= tokens.high,
            "{model} {size:?}: {tokens:?}, documented {documented}"
        );
    }
}

#[test]
fn a_model_without_rules_gets_careful_ones() {
    let model = ModelSpec::new("ours", 8_000, Encoding::Other);
    assert_eq!(
        image_tokens(rules_of(&model), None, Detail::Auto).high,
        4834
    );
}

#[test]
fn details_parse_by_both_names() {
    for (word, expected) in [
        ("auto", Detail::Auto),
        ("LOW", Detail::Low),
        ("MEDIA_RESOLUTION_MEDIUM", Detail::Medium),
        ("MEDIA_RESOLUTION_ULTRA_HIGH", Detail::Original),
        ("MEDIA_RESOLUTION_UNSPECIFIED", Detail::Auto),
        ("original", Detail::Original),
    ] {
        assert_eq!(word.parse(), Ok(expected), "{word}");
    }
    let error = "crisp".parse::<Detail>().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("unknown image detail \"crisp\"; known are auto")
    );
}

#[test]
fn pages_of_a_pdf_are_counted() {
    for (body, expected) in [
        (
            "/Type /Pages /Count 2 /Type /Page /Parent 1 0 R\n/Type/Page>>",
            Some((2, 2)),
        ),
        ("/Type/Page /Type /Pages /Count 40", Some((1, 40))),
        ("/Type /Pages /Count 7", Some((7, 7))),
        ("/Type /Pages /Count 99999999999999999999", None),
        ("/Type /ObjStm", None),
        ("/Type /PageLabel /Types /Page", None),
        ("", None),
    ] {
        assert_eq!(pdf_pages(body.as_bytes()), expected, "{body}");
    }
}

#[test]
fn files_count_by_what_they_are() {
    let counter = ExactCounter::o200k_base();
    let gemini = rules("gemini-2.5-pro");
    let pdf = b"%PDF-1.7 /Type /Page /Type /Page /Type /Page";
    assert_eq!(document_tokens(gemini, pdf, counter).count, 3 * 258);
    let mut compressed = b"%PDF-1.7 ".to_vec();
    compressed.resize(600_000, 7);
    let tokens = document_tokens(gemini, &compressed, counter);
    assert_eq!((tokens.low, tokens.count), (64, 13 * 258));
    assert_eq!(tokens.high, 401 * 3300);
    let text = "A plain text file.";
    assert_eq!(
        document_tokens(gemini, text.as_bytes(), counter),
        TokenCount::exact(5)
    );
    assert_eq!(document_tokens(gemini, &[0xff; 30], counter).high, 30);
}

#[test]
fn sound_counts_by_its_seconds() {
    let gemini = rules("gemini-2.5-pro");
    let mut wav = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0".to_vec();
    wav.resize(32_000 * 10, 0);
    assert_eq!(audio_tokens(gemini, &wav).count, 320);
    let other = audio_tokens(gemini, &[0; 160_000]);
    assert_eq!((other.low, other.count, other.high), (0, 320, 160 * 32));
    assert!(audio_tokens(rules("claude-opus-4-8"), &[0; 160_000]).high > 0);
}

proptest! {
    #[test]
    fn any_header_is_survived(kind in 0usize..5, tail in proptest::collection::vec(any::<u8>(), 0..80)) {
        let head: &[u8] = [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(), b"\xff\xd8", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8", b""][kind];
        let bytes = [head, &tail].concat();
        if let Some(size) = Dimensions::read_header(&bytes) {
            prop_assert!(size.width > 0 && size.height > 0);
        }
    }

    #[test]
    fn any_image_is_bounded(width in 1u32.., height in 1u32.., small in any::<bool>(), model in 0usize..150) {
        let model = Catalogue::builtin().models().nth(model).unwrap();
        let (width, height) = if small { (width % 4096 + 1, height % 4096 + 1) } else { (width, height) };
        for detail in [Detail::Auto, Detail::Low, Detail::Medium, Detail::High, Detail::Original] {
            let known = image_tokens(rules_of(model), size(width, height), detail);
            let unknown = image_tokens(rules_of(model), None, detail);
            prop_assert!(known.low <= known.count && known.count <= known.high);
            prop_assert!(known.high > 0 && known.high < 100_000);
            // What cannot be measured counts at least as much as an image of any usual size.
            if width <= 4096 && height <= 4096 && width.min(height) >= 256 {
                prop_assert!(known.high <= unknown.high, "{known:?} {unknown:?}");
            }
        }
    }
}
