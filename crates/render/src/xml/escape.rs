//! Text made XML character data.
//!
//! `& < > " '` become entities. XML 1.0 has no form at all, not even a reference, for most control
//! characters and for U+FFFE and U+FFFF: the controls are replaced by their pictures (ESC U+001B by
//! `␛` U+241B, so that a terminal's colour codes stay recognisable), the two others by U+FFFD.
//! Everything else stands as it is, carriage returns included (an XML reader takes `\r\n` and `\r`
//! for `\n`).

use crate::primitives::push_spaces;

/// Bytes looked at in one step where nothing needs escaping.
const CHUNK: usize = 32;

/// Appends a text.
pub(super) fn escape_text(out: &mut String, text: &str) {
    escape_with_newline(out, text, |out| out.push('\n'));
}

/// Appends a text of several lines, each but the first indented by `spaces`.
pub(super) fn escape_lines(out: &mut String, text: &str, spaces: usize) {
    escape_with_newline(out, text, |out| {
        out.push('\n');
        push_spaces(out, spaces);
    });
}

fn escape_with_newline(out: &mut String, text: &str, mut newline: impl FnMut(&mut String)) {
    let bytes = text.as_bytes();
    let (mut done, mut at) = (0, 0);
    // Runs without specials are copied whole; only their ends are looked at byte by byte.
    while let Some(found) = next_special(bytes, at) {
        at = found + 1;
        let (replacement, width) = match bytes.get(found) {
            Some(b'&') => ("&amp;", 1),
            Some(b'<') => ("&lt;", 1),
            Some(b'>') => ("&gt;", 1),
            Some(b'"') => ("&quot;", 1),
            Some(b'\'') => ("&apos;", 1),
            Some(b'\n') => ("", 1),
            // U+FFFE and U+FFFF are the only characters beginning with this byte that XML forbids.
            Some(0xEF) if matches!(bytes.get(found + 1..found + 3), Some([0xBF, 0xBE | 0xBF])) => {
                ("\u{fffd}", 3)
            }
            // Allowed as they are, or a harmless character that begins with 0xEF.
            Some(b'\t' | b'\r' | 0xEF) | None => continue,
            Some(control) => (control_picture(*control), 1),
        };
        out.push_str(text.get(done..found).unwrap_or_default());
        if replacement.is_empty() {
            newline(out);
        } else {
            out.push_str(replacement);
        }
        done = found + width;
        at = done;
    }
    out.push_str(text.get(done..).unwrap_or_default());
}

/// Where the next byte stands that may need escaping.
fn next_special(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    let mut rest = bytes.get(from..)?;
    // Without an early exit inside the chunk, the comparison becomes vector instructions.
    while let Some((chunk, after)) = rest.split_at_checked(CHUNK) {
        if chunk
            .iter()
            .fold(false, |any, byte| any | is_special(*byte))
        {
            break;
        }
        at += CHUNK;
        rest = after;
    }
    rest.iter()
        .position(|byte| is_special(*byte))
        .map(|offset| at + offset)
}

fn is_special(byte: u8) -> bool {
    (byte < 0x20)
        | (byte == b'&')
        | (byte == b'<')
        | (byte == b'>')
        | (byte == b'"')
        | (byte == b'\'')
        | (byte == 0xEF)
}

/// The picture of a control character.
fn control_picture(control: u8) -> &'static str {
    const PICTURES: &str = "␀␁␂␃␄␅␆␇␈␉␊␋␌␍␎␏␐␑␒␓␔␕␖␗␘␙␚␛␜␝␞␟";
    let start = 3 * usize::from(control);
    PICTURES.get(start..start + 3).unwrap_or("\u{fffd}")
}
