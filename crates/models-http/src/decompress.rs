//! Decompression of bodies as they come (gzip, deflate, brotli, Zstandard), and the events of a stream.
//!
//! Used by readers of what is passed through; what is passed through stays compressed.

use std::io;
use std::pin::Pin;

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use bytes::{Bytes, BytesMut};
use contexture_wire::Format;
use futures_util::{Stream, StreamExt, stream};
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use tokio::io::AsyncRead;
use tokio_util::io::{ReaderStream, StreamReader};

use crate::frames::{FrameStreamError, LossyFrames, read_frames};

/// A body in pieces.
pub type BodyStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The most encodings that may be nested.
const LAYERS: usize = 3;

/// Decompresses a body as its headers declare. Encodings are undone in the reverse order of their names.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] for a packing that is not known, or more than three of them.
pub fn decompress_stream(headers: &HeaderMap, body: BodyStream) -> io::Result<BodyStream> {
    let encodings = headers.get_all(CONTENT_ENCODING).iter();
    let mut names = Vec::new();
    // A header may be repeated and may hold a list; together they are one list in the order of encoding.
    for value in encodings {
        let value = value
            .to_str()
            .map_err(|_| unknown_encoding_error("one with strange characters"))?;
        names.extend(
            value
                .split(',')
                .map(|name| name.trim().to_ascii_lowercase()),
        );
    }
    names.retain(|name| !name.is_empty() && name != "identity");
    // Each layer multiplies the size of what is decoded: a bomb needs few of them.
    if names.len() > LAYERS {
        return Err(unknown_encoding_error("more than three"));
    }
    let mut body = body;
    for name in names.iter().rev() {
        let packed = StreamReader::new(body);
        body = match name.as_str() {
            "gzip" | "x-gzip" => {
                let mut gzip = GzipDecoder::new(packed);
                // Some servers flush by starting a new gzip member.
                gzip.multiple_members(true);
                into_body_stream(gzip)
            }
            "deflate" => into_body_stream(ZlibDecoder::new(packed)),
            "br" => into_body_stream(BrotliDecoder::new(packed)),
            "zstd" => into_body_stream(ZstdDecoder::new(packed)),
            other => return Err(unknown_encoding_error(other)),
        };
    }
    Ok(body)
}

/// Decompresses a whole body.
///
/// # Errors
/// As [`decompress_stream`]; [`io::ErrorKind::FileTooLarge`] beyond so many bytes; what unpacking says.
pub async fn decompress_to_end(headers: &HeaderMap, body: Bytes, most: usize) -> io::Result<Bytes> {
    let whole = decompress_while(headers, body, |length| length <= most).await?;
    whole.ok_or_else(|| {
        let why = format!("it is longer than {most} bytes when unpacked");
        io::Error::new(io::ErrorKind::FileTooLarge, why)
    })
}

/// Decompresses a whole body as long as `goes_on` returns true for its length so far; `None` if it did not. A
/// body that is not compressed is returned as it is, without asking.
///
/// # Errors
/// As [`decompress_stream`]; what unpacking says.
pub async fn decompress_while(
    headers: &HeaderMap,
    body: Bytes,
    mut goes_on: impl FnMut(usize) -> bool,
) -> io::Result<Option<Bytes>> {
    // Without a copy: most bodies are not compressed.
    if !headers.contains_key(CONTENT_ENCODING) {
        return Ok(Some(body));
    }
    let mut pieces = decompress_stream(headers, stream::iter([Ok(body)]).boxed())?;
    let mut whole = BytesMut::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        // Asked before the piece is kept, so that the limit holds for what is in memory.
        if !goes_on(whole.len().saturating_add(piece.len())) {
            return Ok(None);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(Some(whole.freeze()))
}

/// Data of an event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventData {
    /// The text of the event.
    pub text: String,
    /// The bytes of the whole event if they are not UTF-8: in `text`, U+FFFD stands for those that are not.
    pub damaged: Option<Vec<u8>>,
}

/// Reads the data of a stream's events, as the format frames them.
pub fn event_data(
    format: Format,
    body: BodyStream,
) -> impl Stream<Item = io::Result<EventData>> + Send {
    let reader = format.spec().frame_reader();
    read_frames(reader, LossyFrames::Kept, body).map(|frame| match frame {
        Ok(frame) => Ok(EventData {
            text: frame.data.unwrap_or_default(),
            damaged: frame.is_lossy.then_some(frame.raw),
        }),
        Err(FrameStreamError::Body(error)) => Err(error),
        Err(FrameStreamError::Frame(error)) => {
            Err(io::Error::new(io::ErrorKind::InvalidData, error))
        }
    })
}

fn into_body_stream(reader: impl AsyncRead + Send + 'static) -> BodyStream {
    ReaderStream::new(reader).boxed()
}

fn unknown_encoding_error(name: &str) -> io::Error {
    let why = format!("this packing is not known: {name}");
    io::Error::new(io::ErrorKind::Unsupported, why)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(text: &str) -> Bytes {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap().into()
    }

    fn headers(encoding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_ENCODING, encoding.parse().unwrap())])
    }

    #[tokio::test]
    async fn a_body_is_unpacked_within_its_limit() {
        let text = "to be or not to be ".repeat(1000);
        let whole = decompress_to_end(&headers("gzip"), packed(&text), text.len()).await;
        assert_eq!(whole.unwrap(), text.as_bytes());
        let error = decompress_to_end(&headers("gzip"), packed(&text), text.len() - 1).await;
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let error = decompress_to_end(&headers("pack200"), packed(&text), 1 << 20).await;
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::Unsupported);
        let error =
            decompress_to_end(&headers("gzip"), Bytes::from_static(b"plain"), 1 << 20).await;
        assert!(error.is_err());
    }

    #[tokio::test]
    async fn events_come_out_of_packed_pieces() {
        let text = "event: a\ndata: {\"n\":1}\n\n: still here\n\ndata: [DONE]\n\n";
        let bytes = packed(text);
        let one_by_one: Vec<_> = bytes
            .iter()
            .map(|byte| Ok(Bytes::copy_from_slice(&[*byte])))
            .collect();
        let body = decompress_stream(&headers("gzip"), stream::iter(one_by_one).boxed()).unwrap();
        let data: Vec<String> = event_data(Format::OpenAiChat, body)
            .map(|event| event.unwrap().text)
            .collect()
            .await;
        assert_eq!(data, ["{\"n\":1}", "[DONE]"]);
    }

    #[tokio::test]
    async fn an_event_that_is_not_utf8_keeps_its_bytes() {
        let pieces: [&[u8]; 2] = [b"data: {\"a\":\"\xff\"}\n\nda", b"ta: 1\n\n"];
        let pieces = pieces.map(|piece| Ok(Bytes::from_static(piece)));
        let events: Vec<EventData> = event_data(Format::OpenAiChat, stream::iter(pieces).boxed())
            .map(Result::unwrap)
            .collect()
            .await;
        let damaged = EventData {
            text: "{\"a\":\"\u{fffd}\"}".to_owned(),
            damaged: Some(b"data: {\"a\":\"\xff\"}\n\n".to_vec()),
        };
        let whole = EventData {
            text: "1".to_owned(),
            damaged: None,
        };
        assert_eq!(events, [damaged, whole]);
    }
}
