//! Streamed answers: how bytes are cut into events, and how events become an answer.

use contexture_wire::{Accumulator, Format, Frame, lift};

use crate::input::{
    assert_bounded, assert_json, assert_same_value, join_choice, provider_streams, split_choice,
    split_text_choice, value_of,
};

/// One format for each framing: server-sent events, and Amazon's event stream.
const FRAMED: [&str; 2] = ["anthropic", "bedrock"];

/// Events, one a line: whatever came of them, what is left is one JSON document.
pub(crate) fn check_events(data: &[u8]) {
    let Some((format, text)) = split_text_choice(&Format::PROVIDERS, data) else {
        return;
    };
    let mut answer = Accumulator::new(format).unwrap();
    let mut events = Vec::new();
    for line in text.lines() {
        // An event that cannot be read is left out, and what came before stays.
        if let Ok(said) = answer.push(line) {
            events.extend(said);
        }
    }
    // Deltas are of the events' texts: a hostile order of events must not multiply them.
    assert_bounded("deltas", text.len(), format!("{events:?}").len());
    let body = answer.finish_incomplete();
    assert_bounded("an answer", text.len(), body.len());
    if let Ok(complete) = answer.finish() {
        assert_eq!(complete, body);
    }
    assert_json("an answer", &body);
    // A member of a wrong type, or of another name, makes an answer that is refused or read as another document, as it
    // would be if it were not streamed.
    let _ = lift(format, &body);
}

/// The events of recorded streams.
pub(crate) fn event_streams() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (index, format) in Format::PROVIDERS.into_iter().enumerate() {
        for bytes in provider_streams(format) {
            let mut frames = format.spec().frame_reader();
            frames.push(&bytes);
            let mut lines = String::new();
            while let Ok(Some(frame)) = frames.next_frame() {
                lines.push_str(&frame.data.unwrap_or_default());
                lines.push('\n');
            }
            inputs.push(join_choice(index, lines));
        }
    }
    inputs
}

/// Bytes of a stream: the second byte of the input says how long the pieces are in which they come. However they come,
/// the frames are the same, and together they are all bytes.
pub(crate) fn check_frames(data: &[u8]) {
    let Some((name, rest)) = split_choice(&FRAMED, data) else {
        return;
    };
    let format = name.parse().unwrap();
    let Some((size, bytes)) = rest.split_first() else {
        return;
    };
    let whole = read_frames(format, bytes.chunks(bytes.len().max(1)));
    let pieces = read_frames(format, bytes.chunks(usize::from(*size).max(1)));
    assert_eq!(whole, pieces);
    let (frames, is_broken) = whole;
    let raw: Vec<u8> = frames.iter().flat_map(|frame| frame.raw.clone()).collect();
    if is_broken {
        assert!(bytes.starts_with(&raw));
    } else {
        // The proxy forwards frames, so no byte may be missing.
        assert_eq!(raw, bytes);
    }
    for frame in frames.iter().filter(|frame| frame.data.is_some()) {
        check_replaced_data(format, frame);
    }
}

/// The frames of the pieces, and whether the framing broke.
fn read_frames<'b>(format: Format, pieces: impl Iterator<Item = &'b [u8]>) -> (Vec<Frame>, bool) {
    let mut reader = format.spec().frame_reader();
    let mut frames = Vec::new();
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(reader.next_frame(), Err(error));
                    return (frames, true);
                }
            }
        }
    }
    frames.extend(reader.take_rest());
    (frames, false)
}

/// A frame that is given data is one frame with that data.
fn check_replaced_data(format: Format, frame: &Frame) {
    // As the proxy writes it: an object without line ends, of the kind of event that the frame is of.
    let data = frame.data.as_deref().and_then(value_of);
    let Some(data) = data.filter(|data| data.is_object() && frame.is_complete) else {
        return;
    };
    let data = data.to_string();
    let mut reader = format.spec().frame_reader();
    reader.push(&reader.with_data(frame, &data));
    let again = reader.next_frame().unwrap().unwrap();
    let again_data = again.data.unwrap_or_default();
    assert_same_value("data of a frame", &again_data, &data);
    assert!(value_of(&again_data).is_some(), "{frame:?}");
    assert_eq!(reader.pending_bytes(), 0, "{frame:?}");
}

/// Recorded streams as bytes, and the line ends that hosts use.
pub(crate) fn framed_streams() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (index, name) in FRAMED.into_iter().enumerate() {
        let streams = provider_streams(name.parse().unwrap());
        for (size, bytes) in streams.into_iter().enumerate() {
            // Each stream in pieces of another size.
            let mut rest = vec![u8::try_from(size).unwrap()];
            rest.extend(bytes);
            inputs.push(join_choice(index, rest));
        }
    }
    for text in [
        "\u{feff}event: a\r\ndata: {}\r\n\r\ndata: 1\r\rdata:2\n\n: note\n\nid\ndata",
        "data: a\ndata: b\n\ndata\n\nretry: 5\ndata:  c\n\n",
    ] {
        inputs.push(join_choice(0, [b"\x01", text.as_bytes()].concat()));
    }
    inputs
}
