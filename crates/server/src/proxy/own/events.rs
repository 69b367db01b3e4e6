//! Server-sent events as they were written, one by one: so that what is not changed stays byte for byte.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

/// An event as it came, with the empty line behind it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) raw: Bytes,
    /// Its data; empty where it has none.
    pub(crate) data: String,
}

/// Bytes on their way to events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    bytes: BytesMut,
    /// Where the line begins that has not ended.
    line: usize,
    /// How far that line was looked at.
    seen: usize,
}

impl Events {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// How much waits for the end of an event.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// The next event that has come whole.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            let rest = self.bytes.get(self.seen..)?;
            let Some(feed) = rest.iter().position(|byte| *byte == b'\n') else {
                self.seen = self.bytes.len();
                return None;
            };
            let end = self.seen + feed;
            let line = self.bytes.get(self.line..end)?;
            let is_end = line.is_empty() || line == b"\r";
            (self.line, self.seen) = (end + 1, end + 1);
            if is_end {
                return Some(self.take(end + 1));
            }
        }
    }

    /// What is left behind the last empty line, if anything is: some hosts forget that line.
    pub(crate) fn rest(&mut self) -> Option<Event> {
        let length = self.bytes.len();
        (length > 0).then(|| self.take(length))
    }

    fn take(&mut self, length: usize) -> Event {
        let raw = self.bytes.split_to(length).freeze();
        (self.line, self.seen) = (0, 0);
        let text = String::from_utf8_lossy(&raw);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let data: Vec<&str> = data
            .map(|data| data.strip_prefix(' ').unwrap_or(data))
            .collect();
        Event {
            data: data.join("\n"),
            raw,
        }
    }
}

impl Event {
    /// The same event with other data.
    pub(crate) fn with(&self, data: &Value) -> Bytes {
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
    fn events_come_out_as_they_were_written_wherever_the_bytes_are_cut() {
        let text =
            "event: a\ndata: {\"n\":\"東\"}\n\n: ping\r\n\r\ndata:1\r\ndata: 2\r\n\r\ndata: last";
        for size in 1..text.len() {
            let mut events = Events::default();
            let mut all = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                events.push(piece);
                all.extend(std::iter::from_fn(|| events.next()));
            }
            all.extend(events.rest());
            let raw: Vec<&[u8]> = all.iter().map(|event| event.raw.as_ref()).collect();
            assert_eq!(raw.concat(), text.as_bytes());
            let data: Vec<&str> = all.iter().map(|event| event.data.as_str()).collect();
            assert_eq!(data, ["{\"n\":\"東\"}", "", "1\n2", "last"]);
            assert_eq!(
                all[0].with(&json!({"m": 1})),
                "event: a\ndata: {\"m\":1}\n\n"
            );
            assert_eq!(all[2].with(&json!(3)), "data: 3\r\n\r\n");
        }
    }
}
