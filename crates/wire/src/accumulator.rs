//! Streams into answers: events in, one by one; deltas out; in the end the body of the answer as if it had
//! not been streamed. So there is one road from an answer to items, [`crate::lift()`], however it came.
//!
//! Not here: cutting bytes into events (a client's work), what each format's events mean
//! (`<format>/stream.rs`).

use contexture_ir::{Fields, replace_lone_surrogates};

use crate::model::format::Format;
use crate::stream::{ParsedEvent, StreamError, StreamEvent, StreamFailure, StreamParser};

/// The default of [`Accumulator::with_limit`].
const LIMIT: usize = 64 << 20;
/// The data of the event by which some providers end a stream.
const DONE: &str = "[DONE]";

/// Puts a streamed answer together, event by event.
///
/// ```
/// use contexture_wire::{Accumulator, Format, StreamEvent, lift};
///
/// let mut answer = Accumulator::new(Format::OpenAiChat)?;
/// for data in [
///     r#"{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"Ba"}}]}"#,
///     r#"{"id":"1","choices":[{"index":0,"delta":{"content":"mako"},"finish_reason":"stop"}]}"#,
///     "[DONE]",
/// ] {
///     for event in answer.push(data)? {
///         if let StreamEvent::TextDelta { delta, .. } = event {
///             print!("{delta}");
///         }
///     }
/// }
/// let lifted = lift(Format::OpenAiChat, &answer.finish()?)?;
/// assert_eq!(lifted.transcript.items[0].text(), "Bamako");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Accumulator {
    format: Format,
    stream: Box<dyn StreamParser>,
    limit: usize,
    bytes: usize,
    events: usize,
    ignored: usize,
    failure: Option<StreamFailure>,
}

impl Accumulator {
    /// Creates an empty accumulator for a provider's format; it accepts at most 64 MiB of events.
    ///
    /// # Errors
    /// [`StreamError::NoStream`] for a format that is no provider's.
    pub fn new(format: Format) -> Result<Self, StreamError> {
        let stream = format.spec().stream();
        let stream = stream.ok_or(StreamError::NoStream { format })?;
        Ok(Self {
            format,
            stream,
            limit: LIMIT,
            bytes: 0,
            events: 0,
            ignored: 0,
            failure: None,
        })
    }

    /// Sets the limit on the bytes of all events together.
    #[must_use]
    pub fn with_limit(self, bytes: usize) -> Self {
        Self {
            limit: bytes,
            ..self
        }
    }

    /// Takes the data of one event and returns what it says. An event that is not understood says nothing and
    /// is counted.
    ///
    /// # Errors
    /// [`StreamError::Malformed`] and [`StreamError::TooLong`]; the event is then left out, and what came
    /// before stays.
    pub fn push(&mut self, data: &str) -> Result<Vec<StreamEvent>, StreamError> {
        self.events += 1;
        // Some hosts pad events or send empty ones to keep a connection open.
        let data = data.trim();
        if data.is_empty() {
            return Ok(Vec::new());
        }
        // Counted before parsing, so that a stream without end cannot fill the memory.
        self.bytes = self.bytes.saturating_add(data.len());
        if self.bytes > self.limit {
            return Err(StreamError::TooLong {
                format: self.format,
                limit: self.limit,
            });
        }
        let mut events = Vec::new();
        let understood = if data == DONE {
            self.stream.finish_stream();
            ParsedEvent::Recognized
        } else {
            self.check_object(data)?;
            // Some hosts cut a text between the halves of a pair: no string can hold one of them.
            let data = replace_lone_surrogates(data);
            self.stream.push_event(&data, &mut events)
        };
        if understood == ParsedEvent::Ignored {
            self.ignored += 1;
        }
        // The first failure is the cause; what follows it is often only a consequence.
        if let Some(StreamEvent::Failed(failure)) = events.last() {
            self.failure.get_or_insert_with(|| failure.clone());
        }
        Ok(events)
    }

    /// Reports whether the provider said that the answer is complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failure.is_none() && self.stream.is_complete()
    }

    /// Returns the number of events received.
    #[must_use]
    pub const fn event_count(&self) -> usize {
        self.events
    }

    /// Returns the number of events that were not understood.
    #[must_use]
    pub const fn ignored_count(&self) -> usize {
        self.ignored
    }

    /// Returns the body of the complete answer, as if it had not been streamed.
    ///
    /// # Errors
    /// [`StreamError::Failed`] if the provider said so, [`StreamError::Cut`] if the answer did not end; what
    /// there is of it gives [`Accumulator::finish_incomplete`].
    pub fn finish(&self) -> Result<String, StreamError> {
        match &self.failure {
            Some(failure) => Err(StreamError::Failed(failure.clone())),
            None if !self.stream.is_complete() => Err(StreamError::Cut {
                format: self.format,
                events: self.events,
            }),
            None => Ok(self.stream.response_body()),
        }
    }

    /// The body of what came. If the answer did not end, lifting it gives the finish reason `incomplete`, and
    /// the items that were not whole have the status `incomplete`; a call's unfinished arguments are the text
    /// that came.
    #[must_use]
    pub fn finish_incomplete(&self) -> String {
        self.stream.response_body()
    }

    fn check_object(&self, data: &str) -> Result<(), StreamError> {
        let shape = |source| StreamError::Malformed {
            format: self.format,
            number: self.events,
            expected: "a JSON object",
            source,
        };
        // The syntax first, for a source of the error; `Fields` alone would only say that it is no
        // object.
        serde_json::from_str::<serde::de::IgnoredAny>(data).map_err(|error| shape(Some(error)))?;
        Fields::parse(data).map(drop).map_err(|_| shape(None))
    }
}
