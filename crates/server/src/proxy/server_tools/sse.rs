//! Server-sent events with their raw bytes, so that an unchanged event is forwarded byte for byte.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

/// An event as it came, with the empty line that ends it.
#[derive(Clone, Debug)]
pub(crate) struct SseEvent {
    pub(crate) raw: Bytes,
    /// Its data; empty where it has none.
    pub(crate) data: String,
}

/// Splits incoming bytes into events.
#[derive(Debug, Default)]
pub(crate) struct SseEventBuffer {
    bytes: BytesMut,
    /// Start of the line that has not ended.
    line_start: usize,
    /// End of the part of that line that was searched: no byte is searched twice.
    scanned: usize,
}

impl SseEventBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the number of bytes that wait for the end of an event.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the next complete event.
    pub(crate) fn next_event(&mut self) -> Option<SseEvent> {
        loop {
            let rest = self.bytes.get(self.scanned..)?;
            let Some(feed) = rest.iter().position(|byte| *byte == b'\n') else {
                self.scanned = self.bytes.len();
                return None;
            };
            let end = self.scanned + feed;
            let line = self.bytes.get(self.line_start..end)?;
            let is_end = line.is_empty() || line == b"\r";
            (self.line_start, self.scanned) = (end + 1, end + 1);
            if is_end {
                return Some(self.split_event(end + 1));
            }
        }
    }

    /// Returns what is left behind the last empty line: some hosts omit that line after the last event.
    pub(crate) fn take_unterminated(&mut self) -> Option<SseEvent> {
        let length = self.bytes.len();
        (length > 0).then(|| self.split_event(length))
    }

    fn split_event(&mut self, length: usize) -> SseEvent {
        let raw = self.bytes.split_to(length).freeze();
        (self.line_start, self.scanned) = (0, 0);
        let text = String::from_utf8_lossy(&raw);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let data: Vec<&str> = data
            // One space behind the colon belongs to the syntax, further ones to the data.
            .map(|data| data.strip_prefix(' ').unwrap_or(data))
            .collect();
        SseEvent {
            data: data.join("\n"),
            raw,
        }
    }
}

impl SseEvent {
    /// Returns the bytes of the event with other data; its other fields and its line ends stay.
    pub(crate) fn with_data(&self, data: &Value) -> Bytes {
        let text = String::from_utf8_lossy(&self.raw);
        let end = match text.ends_with("\r\n") {
            true => "\r\n",
            false => "\n",
        };
        let mut written = String::new();
        let others = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("data:"));
        for line in others {
            written.push_str(line);
            written.push_str(end);
        }
        written.push_str(&format!("data: {data}{end}{end}"));
        written.into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn event_buffer_any_chunking_preserves_event_bytes() {
        let text =
            "event: a\ndata: {\"n\":\"東\"}\n\n: ping\r\n\r\ndata:1\r\ndata: 2\r\n\r\ndata: last";
        for size in 1..text.len() {
            let mut events = SseEventBuffer::default();
            let mut all = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                events.push(piece);
                all.extend(std::iter::from_fn(|| events.next_event()));
            }
            all.extend(events.take_unterminated());
            let raw: Vec<&[u8]> = all.iter().map(|event| event.raw.as_ref()).collect();
            assert_eq!(raw.concat(), text.as_bytes());
            let data: Vec<&str> = all.iter().map(|event| event.data.as_str()).collect();
            assert_eq!(data, ["{\"n\":\"東\"}", "", "1\n2", "last"]);
            assert_eq!(
                all[0].with_data(&json!({"m": 1})),
                "event: a\ndata: {\"m\":1}\n\n"
            );
            assert_eq!(all[2].with_data(&json!(3)), "data: 3\r\n\r\n");
        }
    }
}
