//! The binary framing of AWS event streams, in which Bedrock streams its answers.
//!
//! A frame is `total length · length of the headers · CRC of both · headers · payload · CRC of everything before`, all
//! numbers big-endian. [`EventStreamReader`] cuts bytes into frames as they arrive. The data of a frame is the JSON object
//! that the service model describes: one member, named after the event, with the payload as its value. Exceptions have the
//! same form; errors of the transport become `{"error": {"type", "message"}}`.
//!
//! Not here: what the events mean (`stream.rs`).

use contexture_ir::{Fields, quote_json};

use super::block::single_member;
use crate::framing::{Frame, FrameError, FrameReader};
use crate::model::json::ObjectWriter;

/// The bytes of a frame's prelude: two lengths and their CRC.
const PRELUDE: usize = 12;
/// The bytes of a CRC.
const CHECKSUM: usize = 4;
/// The most bytes of headers that the framing allows.
const MAX_HEADERS: usize = 128 << 10;
/// The most bytes of a payload that AWS's own clients accept.
const MAX_PAYLOAD: usize = 24 << 20;
/// The header that says whether a frame is an event, an exception or an error.
const MESSAGE_TYPE: &str = ":message-type";
/// The header that names an event.
const EVENT_TYPE: &str = ":event-type";
/// The header that names an exception.
const EXCEPTION_TYPE: &str = ":exception-type";
/// The header with the code of an error.
const ERROR_CODE: &str = ":error-code";
/// The header with the text of an error.
const ERROR_MESSAGE: &str = ":error-message";

/// Reads frames from bytes that arrive piece by piece.
#[derive(Clone, Debug, Default)]
pub(super) struct EventStreamReader {
    buffer: Vec<u8>,
    /// Where the next frame begins in the buffer.
    start: usize,
    failure: Option<EventStreamError>,
}

/// What a frame holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FrameContent<'a> {
    /// The headers whose value is a string, in order; those of other types are checked and left out.
    headers: Vec<(&'a str, &'a str)>,
    /// All headers as they came.
    header_bytes: &'a [u8],
    /// The payload: JSON for every event of Bedrock.
    payload: &'a [u8],
}

/// Describes why bytes are no event stream. The position of later frames is unknown then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum EventStreamError {
    /// A CRC does not match: the bytes were damaged, or are no event stream.
    #[error("the checksum of the {part} is {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// Which part: `prelude` or `frame`.
        part: &'static str,
        /// The checksum of the bytes.
        found: u32,
        /// The checksum that they came with.
        expected: u32,
    },
    /// A length is larger than allowed, or the lengths contradict each other.
    #[error(
        "event stream: a frame of {total} bytes with {headers} bytes of headers is not possible"
    )]
    Length {
        /// The stated bytes of the frame.
        total: usize,
        /// The stated bytes of its headers.
        headers: usize,
    },
    /// The headers cannot be read.
    #[error("the headers cannot be read")]
    Headers,
}

impl FrameReader for EventStreamReader {
    fn push(&mut self, bytes: &[u8]) {
        // Bytes after a failure cannot be framed; keeping them would only fill the memory.
        if self.failure.is_none() {
            // Frames that were given are removed here, once per piece, and not one by one.
            self.buffer.drain(..self.start.min(self.buffer.len()));
            self.start = 0;
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let result = match self.failure {
            Some(failure) => Err(failure),
            None => whole_frame(rest),
        };
        match result {
            Ok(Some(raw)) => {
                let frame = read_frame(raw);
                self.start += raw.len();
                match frame {
                    Some(frame) => Ok(Some(frame)),
                    None => self.fail(EventStreamError::Headers),
                }
            }
            Ok(None) => Ok(None),
            Err(failure) => self.fail(failure),
        }
    }

    fn take_rest(&mut self) -> Option<Frame> {
        // A part of a frame has no data, but whoever forwards the stream has to forward it too.
        let raw = self.buffer.get(self.start..)?.to_vec();
        self.start = self.buffer.len();
        (!raw.is_empty()).then(|| Frame {
            raw,
            ..Frame::default()
        })
    }

    fn pending_bytes(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn with_data(&self, frame: &Frame, data: &str) -> Vec<u8> {
        let fields = Fields::parse(data).unwrap_or_default();
        let Some((name, payload)) = single_member(&fields) else {
            return frame.raw.clone();
        };
        let payload = payload.get().as_bytes();
        // The same event keeps its headers, which may say more than its name.
        match frame_content(&frame.raw) {
            Some(old) if old.event_name() == Some(name.as_str()) => {
                write_frame(old.header_bytes, payload)
            }
            _ => write_frame(&event_headers(&name), payload),
        }
    }
}

impl EventStreamReader {
    fn fail(&mut self, failure: EventStreamError) -> Result<Option<Frame>, FrameError> {
        self.failure = Some(failure);
        self.buffer = Vec::new();
        self.start = 0;
        Err(FrameError {
            why: failure.to_string(),
        })
    }
}

impl FrameContent<'_> {
    /// The value of a string header.
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    }

    /// The name of the event or exception.
    fn event_name(&self) -> Option<&str> {
        self.header(EXCEPTION_TYPE).or(self.header(EVENT_TYPE))
    }

    /// The frame as a JSON object.
    fn event_json(&self) -> String {
        if self.header(MESSAGE_TYPE) == Some("error") {
            let mut error = ObjectWriter::new();
            error.string("type", self.header(ERROR_CODE).unwrap_or_default());
            error.string("message", self.header(ERROR_MESSAGE).unwrap_or_default());
            return format!(r#"{{"error":{}}}"#, error.finish());
        }
        let payload = String::from_utf8_lossy(self.payload);
        // A payload that is no JSON is quoted, so that the object is JSON in any case.
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&payload).is_ok();
        let value = if is_json {
            payload.into_owned()
        } else {
            quote_json(&payload)
        };
        let name = self.event_name().unwrap_or_default();
        format!("{{{}:{value}}}", quote_json(name))
    }
}

/// Reads a whole frame, whose checksums are right; `None` if its headers cannot be read.
fn read_frame(raw: &[u8]) -> Option<Frame> {
    let content = frame_content(raw)?;
    Some(Frame {
        raw: raw.to_vec(),
        data: Some(content.event_json()),
        is_lossy: std::str::from_utf8(content.payload).is_err(),
        is_complete: true,
    })
}

/// What a whole frame holds.
fn frame_content(raw: &[u8]) -> Option<FrameContent<'_>> {
    let length = length_at(raw, 4)?;
    let body = raw.get(PRELUDE..raw.len().checked_sub(CHECKSUM)?)?;
    let (header_bytes, payload) = body.split_at_checked(length)?;
    Some(FrameContent {
        headers: parse_headers(header_bytes)?,
        header_bytes,
        payload,
    })
}

/// The headers of an event or exception of this name.
fn event_headers(name: &str) -> Vec<u8> {
    let (kind, key) = if name.ends_with("Exception") {
        ("exception", EXCEPTION_TYPE)
    } else {
        ("event", EVENT_TYPE)
    };
    let mut bytes = Vec::new();
    for (name, value) in [
        (key, name),
        (":content-type", "application/json"),
        (MESSAGE_TYPE, kind),
    ] {
        let lengths = (u8::try_from(name.len()), u16::try_from(value.len()));
        if let (Ok(name_length), Ok(value_length)) = lengths {
            bytes.push(name_length);
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(STRING);
            bytes.extend_from_slice(&value_length.to_be_bytes());
            bytes.extend_from_slice(value.as_bytes());
        }
    }
    bytes
}

fn write_frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = PRELUDE + headers.len() + payload.len() + CHECKSUM;
    let mut bytes = Vec::with_capacity(total);
    for length in [total, headers.len()] {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_be_bytes());
    }
    let checksum = crc32(&bytes);
    bytes.extend_from_slice(&checksum.to_be_bytes());
    bytes.extend_from_slice(headers);
    bytes.extend_from_slice(payload);
    let checksum = crc32(&bytes);
    bytes.extend_from_slice(&checksum.to_be_bytes());
    bytes
}

/// The bytes of the frame that the bytes begin with; `None` if it is not whole yet.
fn whole_frame(bytes: &[u8]) -> Result<Option<&[u8]>, EventStreamError> {
    let (Some(total), Some(headers)) = (length_at(bytes, 0), length_at(bytes, 4)) else {
        return Ok(None);
    };
    let Some(expected) = number_at(bytes, 8) else {
        return Ok(None);
    };
    // The prelude is checked first: a damaged length would make the reader wait for bytes that never come.
    check("prelude", bytes.get(..8).unwrap_or_default(), expected)?;
    let around = PRELUDE.saturating_add(headers).saturating_add(CHECKSUM);
    let payload = total.checked_sub(around);
    let is_possible = headers <= MAX_HEADERS && payload.is_some_and(|bytes| bytes <= MAX_PAYLOAD);
    if !is_possible {
        return Err(EventStreamError::Length { total, headers });
    }
    let Some(frame) = bytes.get(..total) else {
        return Ok(None);
    };
    let (body, checksum) = frame.split_at(total - CHECKSUM);
    check("frame", body, number_at(checksum, 0).unwrap_or_default())?;
    Ok(Some(frame))
}

fn check(part: &'static str, bytes: &[u8], expected: u32) -> Result<(), EventStreamError> {
    let found = crc32(bytes);
    if found == expected {
        return Ok(());
    }
    Err(EventStreamError::Checksum {
        part,
        found,
        expected,
    })
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    let number = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*number))
}

fn length_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(number_at(bytes, at)?).ok()
}

/// The type of a header that is a string.
const STRING: u8 = 7;

/// The string headers; `None` if a header is cut off or of an unknown type.
fn parse_headers(mut bytes: &[u8]) -> Option<Vec<(&str, &str)>> {
    let mut headers = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let (length, rest) = match kind {
            // A boolean is its type.
            0 | 1 => (0, rest),
            // Numbers of one, two, four and eight bytes, a time, an id.
            2 => (1, rest),
            3 => (2, rest),
            4 => (4, rest),
            5 | 8 => (8, rest),
            9 => (16, rest),
            // Bytes and strings state their length.
            6 | &STRING => {
                let (length, rest) = rest.split_first_chunk()?;
                (usize::from(u16::from_be_bytes(*length)), rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        if *kind == STRING {
            let name = std::str::from_utf8(name).ok()?;
            headers.push((name, std::str::from_utf8(value).ok()?));
        }
        bytes = rest;
    }
    Some(headers)
}

/// The CRC-32 of IEEE 802.3, as zlib computes it.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        let [low, ..] = crc.to_le_bytes();
        let entry = CRC_TABLE.get(usize::from(low ^ byte));
        (crc >> 8) ^ entry.copied().unwrap_or_default()
    };
    !bytes.iter().fold(u32::MAX, step)
}

/// The remainder of each byte.
static CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    /// The polynomial, reflected.
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    let mut table = [0; 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        let mut crc = byte;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ POLYNOMIAL
            } else {
                crc >> 1
            };
            bit += 1;
        }
        #[expect(
            clippy::indexing_slicing,
            reason = "the loop ends at the table's length"
        )]
        {
            table[byte as usize] = crc;
        }
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"{"contentBlockDelta":{"delta":{"text":"é"}}}"#;

    fn frame_of(json: &str) -> Vec<u8> {
        EventStreamReader::default().with_data(&Frame::default(), json)
    }

    fn read(bytes: &[u8]) -> Result<Vec<Frame>, FrameError> {
        let mut reader = EventStreamReader::default();
        reader.push(bytes);
        std::iter::from_fn(|| reader.next_frame().transpose()).collect()
    }

    #[test]
    fn crc32_matches_the_published_check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn frames_arrive_byte_by_byte() {
        let bytes = [frame_of(SAMPLE), frame_of(SAMPLE)].concat();
        let mut reader = EventStreamReader::default();
        let mut raw = Vec::new();
        for byte in &bytes {
            reader.push(&[*byte]);
            if let Some(frame) = reader.next_frame().unwrap() {
                assert_eq!(frame.data.as_deref(), Some(SAMPLE));
                assert!(frame.is_complete && !frame.is_lossy);
                raw.extend(frame.raw);
            }
        }
        assert_eq!(raw, bytes);
        assert_eq!((reader.pending_bytes(), reader.take_rest()), (0, None));
    }

    #[test]
    fn a_changed_byte_is_an_error() {
        let bytes = frame_of(SAMPLE);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let error = read(&damaged).unwrap_err();
            let part = if at < PRELUDE { "prelude" } else { "frame" };
            let expected = format!("the checksum of the {part} is ");
            assert!(error.why.starts_with(&expected), "{at}: {error}");
        }
    }

    #[test]
    fn a_cut_stream_gives_its_whole_frames_and_the_rest() {
        let bytes = [frame_of(SAMPLE), frame_of(SAMPLE)].concat();
        for end in 0..bytes.len() {
            let mut reader = EventStreamReader::default();
            reader.push(&bytes[..end]);
            let frames = std::iter::from_fn(|| reader.next_frame().unwrap());
            let mut raw: Vec<u8> = frames.flat_map(|frame| frame.raw).collect();
            assert_eq!(raw.len(), end / (bytes.len() / 2) * (bytes.len() / 2));
            raw.extend(reader.take_rest().map(|rest| rest.raw).unwrap_or_default());
            assert_eq!(raw, bytes[..end]);
        }
    }

    #[test]
    fn impossible_lengths_are_an_error_that_stays() {
        for (total, headers) in [
            (u32::MAX, 0),
            (16, 1),
            (0, 0),
            (200_000, 150_000),
            (9, u32::MAX),
        ] {
            let mut bytes: Vec<u8> = [total, headers].map(u32::to_be_bytes).concat();
            bytes.extend(crc32(&bytes).to_be_bytes());
            let mut reader = EventStreamReader::default();
            reader.push(&bytes);
            let error = reader.next_frame().unwrap_err();
            assert!(error.why.ends_with("is not possible"), "{error}");
            reader.push(&frame_of(SAMPLE));
            assert_eq!(reader.next_frame(), Err(error));
            assert_eq!(reader.take_rest(), None);
        }
    }

    #[test]
    fn headers_of_every_type_are_passed_over() {
        let mut headers = Vec::new();
        for (kind, value) in [
            (0, vec![]),
            (1, vec![]),
            (2, vec![1]),
            (3, vec![1; 2]),
            (4, vec![1; 4]),
            (5, vec![1; 8]),
            (6, vec![0, 1, 255]),
            (8, vec![1; 8]),
            (9, vec![1; 16]),
            (7, vec![0, 1, b'v']),
        ] {
            headers.extend([1, b'n', kind]);
            headers.extend(value);
        }
        assert_eq!(parse_headers(&headers), Some(vec![("n", "v")]));
        for end in 1..headers.len() {
            // A cut between two headers is a shorter list; inside one it is an error.
            let _parsed = parse_headers(&headers[..end]);
        }
        for other in [
            &[1, b'n', 10][..],
            &[1, b'n', 7, 0, 2, b'v'],
            &[1, b'n', 7, 0, 1, 0xFF],
        ] {
            assert_eq!(parse_headers(other), None);
            let error = read(&write_frame(other, b"{}")).unwrap_err();
            assert_eq!(error.why, "the headers cannot be read");
        }
    }

    #[test]
    fn exceptions_and_errors_have_their_own_headers() {
        let json = r#"{"throttlingException":{"message":"slow down"}}"#;
        let exception = frame_of(json);
        let content = frame_content(&exception).unwrap();
        assert_eq!(content.header(":message-type"), Some("exception"));
        assert_eq!(content.event_json(), json);
        let content = FrameContent {
            headers: vec![
                (MESSAGE_TYPE, "error"),
                (ERROR_CODE, "InternalFailure"),
                (ERROR_MESSAGE, "a \"quote\""),
            ],
            ..FrameContent::default()
        };
        assert_eq!(
            content.event_json(),
            r#"{"error":{"type":"InternalFailure","message":"a \"quote\""}}"#
        );
        let content = FrameContent {
            headers: vec![(EVENT_TYPE, "x")],
            payload: b"1},\"y\":{",
            ..FrameContent::default()
        };
        assert_eq!(content.event_json(), r#"{"x":"1},\"y\":{"}"#);
    }

    #[test]
    fn other_data_leaves_the_headers_as_they_are() {
        let reader = EventStreamReader::default();
        let headers = [event_headers("metadata"), vec![1, b'n', 1]].concat();
        let [frame] = read(&write_frame(&headers, b"{}"))
            .unwrap()
            .try_into()
            .unwrap();
        assert_eq!(
            reader.with_data(&frame, r#"{"metadata":{"a":1}}"#),
            write_frame(&headers, br#"{"a":1}"#)
        );
        let json = r#"{"messageStop":{}}"#;
        assert_eq!(reader.with_data(&frame, json), frame_of(json));
        assert_eq!(reader.with_data(&frame, "{}"), frame.raw);
    }
}
