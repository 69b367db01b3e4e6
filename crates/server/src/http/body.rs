//! Reading a whole body: within its length, its time, and the memory that there is.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use thiserror::Error;
use tokio::time::Instant;

use crate::config::LimitsConfig;
use crate::problem::{Code, Problem};
use crate::state::body_memory::{MAX_WAIT, MemoryError, MemoryLease};

/// Why a body was not read.
#[derive(Clone, Debug, Error)]
pub(crate) enum ReadBodyError {
    #[error(
        "the body is larger than {most} bytes, the most this server takes (`server.limits.body_bytes`)"
    )]
    TooLong { most: usize },
    #[error("the body took longer than {seconds} s (`server.limits.body_total_seconds`)")]
    TooSlow { seconds: u64 },
    #[error("the body ended before its end")]
    Broken,
    #[error("no memory for the body: {0}")]
    Memory(#[from] MemoryError),
}

/// Bytes of a body after which its announced length is believed. Most bodies are shorter, and a length that is only
/// announced takes no memory.
const BELIEVED_AFTER: usize = 64 << 10;

/// Reads all of a body. The bytes hold the lease, which grows as they come.
pub(crate) async fn read_whole_body(
    mut body: Body,
    mut lease: MemoryLease,
    limits: &LimitsConfig,
) -> Result<Bytes, ReadBodyError> {
    let most = limits.body_bytes;
    let too_long = ReadBodyError::TooLong { most };
    let hint = body.size_hint();
    let announced = usize::try_from(hint.lower()).unwrap_or(usize::MAX);
    if announced > most {
        return Err(too_long);
    }
    let seconds = limits.body_total_seconds;
    let deadline = Instant::now() + Duration::from_secs(seconds);
    // Once for the whole body, however often it grows.
    let mut room_by: Option<Instant> = None;
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    loop {
        let frame = match tokio::time::timeout_at(deadline, body.frame()).await {
            Ok(Some(frame)) => frame.map_err(|_| ReadBodyError::Broken)?,
            Ok(None) => break,
            Err(_) => return Err(ReadBodyError::TooSlow { seconds }),
        };
        // Trailers say nothing that is read here.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let before = first.as_ref().map_or(all.len(), Bytes::len);
        let length = before + data.len();
        if length > most {
            return Err(too_long);
        }
        // At once for all of a long body: many that grow side by side would all be refused, each after having taken much.
        let needed = match length > BELIEVED_AFTER {
            true => announced.max(length),
            false => length,
        };
        match lease.try_grow_to(needed) {
            // The owner's earlier requests are still being stored: its clients are slowed down, not refused.
            Err(MemoryError::OwnerFull { .. }) => {
                let by = *room_by.get_or_insert_with(|| Instant::now() + MAX_WAIT);
                lease.grow_to_by(needed, by).await?;
            }
            done => done?,
        }
        match first.take() {
            // A body that came in one piece is not copied.
            None if all.is_empty() => first = Some(data),
            None => all.extend_from_slice(&data),
            Some(one) => {
                all.reserve(announced.max(length));
                all.extend_from_slice(&one);
                all.extend_from_slice(&data);
            }
        }
    }
    let bytes = first.unwrap_or_else(|| all.freeze());
    // Nothing to hold memory for: most requests have no body.
    Ok(match bytes.is_empty() {
        true => bytes,
        false => lease.attach_to_bytes(bytes),
    })
}

impl From<ReadBodyError> for Problem {
    fn from(error: ReadBodyError) -> Self {
        let detail = error.to_string();
        match error {
            ReadBodyError::TooLong { .. } => Self::new(Code::BodyTooLarge, detail),
            ReadBodyError::Memory(error) => error.into(),
            ReadBodyError::TooSlow { .. } | ReadBodyError::Broken => {
                Self::new(Code::BadBody, detail)
            }
        }
    }
}

impl From<MemoryError> for Problem {
    fn from(error: MemoryError) -> Self {
        let code = match error {
            MemoryError::NeverFits { .. } => Code::BodyTooLarge,
            MemoryError::OwnerFull { .. } => Code::TooManyRequests,
            MemoryError::Full { .. } => Code::Overloaded,
        };
        Self::new(code, error.to_string())
    }
}
