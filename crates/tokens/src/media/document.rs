//! Tokens of a file that is sent as it is.

use contexture_catalogue::MediaRules;

use crate::count::TokenCount;
use crate::counter::TokenCounter;
use crate::media::multiply_bounds;

/// No provider takes a PDF of more pages.
const MOST_PAGES: u64 = 1_000;
/// What a page of a PDF takes in the file: hardly less than `SMALL_PAGE`, usually `USUAL_PAGE` bytes.
const SMALL_PAGE: u64 = 1_500;
const USUAL_PAGE: u64 = 50_000;

/// The tokens of a file: a PDF by its pages, anything that is text as text.
///
/// A PDF that hides its page objects in compressed streams counts by its length: one page for every 1,500 bytes, at most
/// 1,000, is the upper bound. Other bytes count as one token each at most.
#[must_use]
pub fn document_tokens(rules: &MediaRules, bytes: &[u8], counter: &dyn TokenCounter) -> TokenCount {
    // Readers of PDF accept junk before the header, within the first kilobyte.
    let head = bytes.get(..bytes.len().min(1024)).unwrap_or_default();
    let length = bytes.len() as u64;
    if find_bytes(head, b"%PDF-").is_some() {
        return match pdf_pages(bytes) {
            Some((pages, most)) => multiply_bounds(rules.page, (pages, pages, most)),
            None => {
                let most = (length / SMALL_PAGE + 1).min(MOST_PAGES);
                multiply_bounds(rules.page, (1, (length / USUAL_PAGE + 1).min(most), most))
            }
        };
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => counter.count(text),
        Err(_) => TokenCount::estimate(0, length / 3, length),
    }
}

/// How many pages a PDF has, and how many it has at most; `None` if its page objects are compressed.
///
/// Page objects are counted; the largest count in a page tree is the bound, as some pages may be hidden. One pass over the
/// bytes, no decompression.
#[must_use]
pub fn pdf_pages(bytes: &[u8]) -> Option<(u64, u64)> {
    let (mut pages, mut announced) = (0u64, 0u64);
    let mut rest = bytes;
    // A scan for `/` visits every name of the file, compressed streams included, in one pass.
    while let Some(at) = rest.iter().position(|&byte| byte == b'/') {
        rest = rest.get(at + 1..)?;
        if let Some(tail) = rest.strip_prefix(b"Type") {
            let tail = tail.trim_ascii_start();
            if tail
                .strip_prefix(b"/Page")
                .is_some_and(|after| !after.first().is_some_and(u8::is_ascii_alphanumeric))
            {
                pages += 1;
            }
        } else if let Some(tail) = rest.strip_prefix(b"Count") {
            announced = announced.max(leading_number(tail));
        }
    }
    // Hidden pages are announced but have no object, so the count of objects is only the lower bound.
    match (pages, announced.min(MOST_PAGES)) {
        (0, 0) => None,
        (0, announced) => Some((announced, announced)),
        (pages, announced) => Some((pages, pages.max(announced))),
    }
}

/// The number behind white space; 0 if there is none, and for numbers of more than six digits.
fn leading_number(bytes: &[u8]) -> u64 {
    // White space is only looked at as far as a writer would put it, so that blanks cannot be read again and again.
    let bytes = bytes.get(..bytes.len().min(16)).unwrap_or_default();
    let digits = bytes.trim_ascii_start();
    let length = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if length > 6 {
        return 0;
    }
    let digits = digits.get(..length).unwrap_or_default();
    digits
        .iter()
        .fold(0, |sum, &digit| sum * 10 + u64::from(digit - b'0'))
}

fn find_bytes(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes
        .windows(needle.len())
        .position(|window| window == needle)
}
