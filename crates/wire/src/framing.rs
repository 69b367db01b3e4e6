//! Framing: how the events of a streamed answer are cut out of its bytes.
//!
//! A [`FrameReader`] is fed bytes in pieces of any size and gives complete frames with their raw bytes, so that a frame
//! that nobody edits is forwarded byte for byte. Server-sent events are read here; other framings are read in the folder
//! of the format that has them. Not here: what the data of an event says ([`StreamParser`](crate::StreamParser)).

use std::borrow::Cow;
use std::fmt;

/// How the events of a streamed answer are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFraming {
    /// Server-sent events: lines of text.
    ServerSentEvents,
    /// Amazon's event stream: binary frames with checksums.
    AwsEventStream,
}

/// A frame as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// All of its bytes.
    pub raw: Vec<u8>,
    /// Its data, which the format's stream parser takes; `None` where it has none.
    pub data: Option<String>,
    /// Whether bytes of the data were replaced because they are not UTF-8.
    pub is_lossy: bool,
    /// Whether the end of the frame came; it may be missing behind the last one.
    pub is_complete: bool,
}

/// Why bytes are no frames. Nothing can be read behind it, as nobody knows where the next frame begins.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream's framing is broken: {why}")]
pub struct FrameError {
    /// What is wrong.
    pub why: String,
}

/// Cuts frames out of bytes that come in pieces.
pub trait FrameReader: fmt::Debug + Send {
    /// Adds bytes that came.
    fn push(&mut self, bytes: &[u8]);

    /// Returns the next complete frame, if it has come.
    ///
    /// # Errors
    /// [`FrameError`] for bytes that cannot be framed; the same again if it is called again.
    fn next_frame(&mut self) -> Result<Option<Frame>, FrameError>;

    /// Returns what is left behind the last complete frame; `None` if there is nothing, or nothing that can be read.
    fn take_rest(&mut self) -> Option<Frame>;

    /// Returns the number of bytes that wait for the end of a frame.
    fn pending_bytes(&self) -> usize;

    /// Returns the bytes of a frame with other data, which is JSON; all else of it stays.
    fn with_data(&self, frame: &Frame, data: &str) -> Vec<u8>;
}

impl StreamFraming {
    /// Returns the content type of an answer that is framed so.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::ServerSentEvents => "text/event-stream",
            Self::AwsEventStream => "application/vnd.amazon.eventstream",
        }
    }

    /// Reports whether a content type, with parameters or without, is the one of this framing.
    #[must_use]
    pub fn is_content_type(self, value: &str) -> bool {
        let word = value.split(';').next().unwrap_or_default().trim();
        word.eq_ignore_ascii_case(self.content_type())
    }
}

/// The mark that may begin a text in UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Cuts server-sent events out of bytes.
#[derive(Debug, Default)]
pub(crate) struct SseReader {
    bytes: Vec<u8>,
    /// Start of the event that has not ended.
    start: usize,
    /// Start of the line that has not ended.
    line_start: usize,
    /// End of the part of that line that was searched: no byte is searched twice.
    scanned: usize,
    is_behind_first: bool,
}

impl FrameReader for SseReader {
    fn push(&mut self, bytes: &[u8]) {
        // Events that were given are removed here, once per piece, and not one by one.
        self.bytes.drain(..self.start);
        self.line_start -= self.start;
        self.scanned -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        while let Some((line_end, next)) = self.find_line_end() {
            let is_blank = line_end == self.line_start;
            (self.line_start, self.scanned) = (next, next);
            if is_blank {
                return Ok(Some(self.split_frame(next, true)));
            }
        }
        Ok(None)
    }

    // Some hosts omit the empty line behind the last event.
    fn take_rest(&mut self) -> Option<Frame> {
        let rest = self.bytes.get(self.start..)?;
        // A lone carriage return ends a line, which is known only now that no line feed follows.
        let is_complete = rest.ends_with(b"\r\r") || rest.ends_with(b"\n\r");
        (!rest.is_empty()).then(|| self.split_frame(self.bytes.len(), is_complete))
    }

    fn pending_bytes(&self) -> usize {
        self.bytes.len() - self.start
    }

    fn with_data(&self, frame: &Frame, data: &str) -> Vec<u8> {
        let text = String::from_utf8_lossy(&frame.raw);
        let end = match text.ends_with("\r\n") {
            true => "\r\n",
            false => "\n",
        };
        let mut written = String::new();
        // An event has other fields too: its name, its id.
        let others = event_lines(text.trim_start_matches(BYTE_ORDER_MARK));
        let others = others.filter(|line| !line.starts_with("data:"));
        for line in others {
            written.push_str(line);
            written.push_str(end);
        }
        written.push_str(&format!("data: {data}{end}{end}"));
        written.into()
    }
}

impl SseReader {
    /// Returns where the next line ends and where the one behind it begins.
    fn find_line_end(&mut self) -> Option<(usize, usize)> {
        let rest = self.bytes.get(self.scanned..)?;
        let Some(found) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.scanned = self.bytes.len();
            return None;
        };
        let end = self.scanned + found;
        let next = match (self.bytes.get(end), self.bytes.get(end + 1)) {
            (Some(b'\n'), _) => end + 1,
            (Some(b'\r'), Some(b'\n')) => end + 2,
            (Some(b'\r'), Some(_)) => end + 1,
            // A line feed may still come, and belongs to the same end.
            _ => {
                self.scanned = end;
                return None;
            }
        };
        Some((end, next))
    }

    fn split_frame(&mut self, end: usize, is_complete: bool) -> Frame {
        let raw = self.bytes.get(self.start..end).unwrap_or_default().to_vec();
        (self.start, self.line_start, self.scanned) = (end, end, end);
        let is_first = !std::mem::replace(&mut self.is_behind_first, true);
        let (data, is_lossy) = parse_data(&raw, is_first);
        Frame {
            raw,
            data,
            is_lossy,
            is_complete,
        }
    }
}

/// Returns the data of an event, and whether bytes of it were replaced.
fn parse_data(raw: &[u8], is_first: bool) -> (Option<String>, bool) {
    let text = String::from_utf8_lossy(raw);
    let is_lossy = matches!(text, Cow::Owned(_));
    let text = match is_first {
        true => text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text),
        false => &text,
    };
    let lines: Vec<&str> = event_lines(text)
        .filter_map(|line| line.strip_prefix("data:"))
        // One space behind the colon belongs to the syntax, further ones to the data.
        .map(|data| data.strip_prefix(' ').unwrap_or(data))
        .collect();
    ((!lines.is_empty()).then(|| lines.join("\n")), is_lossy)
}

/// Returns the lines of an event that are not blank.
fn event_lines(text: &str) -> impl Iterator<Item = &str> {
    // A pair of carriage return and line feed gives a blank line between them, which is no line of the event.
    text.split(['\r', '\n']).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_in_pieces(text: &[u8], size: usize) -> Vec<Frame> {
        let mut reader = SseReader::default();
        let mut all = Vec::new();
        for piece in text.chunks(size) {
            reader.push(piece);
            all.extend(std::iter::from_fn(|| reader.next_frame().unwrap()));
        }
        all.extend(reader.take_rest());
        assert_eq!(reader.pending_bytes(), 0);
        all
    }

    fn data(frames: &[Frame]) -> Vec<Option<&str>> {
        frames.iter().map(|frame| frame.data.as_deref()).collect()
    }

    #[test]
    fn sse_reader_any_chunking_preserves_bytes() {
        let text =
            "event: a\ndata: {\"n\":\"東\"}\n\n: ping\r\n\r\ndata:1\r\ndata: 2\r\n\r\ndata: last";
        for size in 1..text.len() {
            let all = read_in_pieces(text.as_bytes(), size);
            let raw: Vec<u8> = all.iter().flat_map(|frame| frame.raw.clone()).collect();
            assert_eq!(raw, text.as_bytes());
            assert_eq!(
                data(&all),
                [Some("{\"n\":\"東\"}"), None, Some("1\n2"), Some("last")]
            );
            let complete: Vec<bool> = all.iter().map(|frame| frame.is_complete).collect();
            assert_eq!(complete, [true, true, true, false]);
            let reader = SseReader::default();
            assert_eq!(
                reader.with_data(&all[0], r#"{"m":1}"#),
                b"event: a\ndata: {\"m\":1}\n\n"
            );
            assert_eq!(reader.with_data(&all[2], "3"), b"data: 3\r\n\r\n");
        }
    }

    #[test]
    fn sse_reader_takes_every_line_end_and_byte_order_mark() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("\u{feff}data: 1{end}{end}data: 2{end}data{end}{end}");
            for size in 1..text.len() {
                let all = read_in_pieces(text.as_bytes(), size);
                assert_eq!(data(&all), [Some("1"), Some("2")], "{end:?} {size}");
                assert!(all.iter().all(|frame| frame.is_complete), "{end:?} {size}");
                let rewritten = SseReader::default().with_data(&all[0], "3");
                assert!(rewritten.starts_with(b"data: 3"), "{end:?} {size}");
            }
        }
    }

    #[test]
    fn sse_reader_marks_data_that_is_not_utf8() {
        let all = read_in_pieces(b"data: \xff\n\ndata: x\n\n", 3);
        let lossy: Vec<bool> = all.iter().map(|frame| frame.is_lossy).collect();
        assert_eq!(lossy, [true, false]);
    }

    #[test]
    fn content_type_is_compared_without_parameters() {
        let sse = StreamFraming::ServerSentEvents;
        assert!(sse.is_content_type("Text/Event-Stream; charset=utf-8"));
        assert!(!sse.is_content_type("application/vnd.amazon.eventstream"));
        assert!(
            StreamFraming::AwsEventStream.is_content_type("application/vnd.amazon.eventstream")
        );
    }
}
