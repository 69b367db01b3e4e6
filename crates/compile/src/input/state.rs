//! What is so now: a typed value, shown to the model at the tail of every call.
//!
//! Nothing here edits what was sent before: state stands behind the history, as a message of its own, and the
//! next call's state stands behind the next call's history. It is written by a renderer, so no value breaks out
//! of its place.
//!
//! Not here: JSON Schemas (`contexture_tools::SchemaValidator::check_value`), state that rewinds with a conversation (the engine).

use std::sync::Arc;

use contexture_ir::{Fragment, FragmentData};
use contexture_render::{Renderer, XmlRenderer};
use serde::Serialize;

use crate::input::contribution::{Band, Content, Contribution, Stability};

/// The name of the fragment, and of the contribution.
const STATE: &str = "state";

/// Where state stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Behind the history: as it may change with every call, it changes no byte before it. Where the model
    /// takes system messages there it is one, else it is a message of the user.
    #[default]
    Tail,
    /// In the system prompt. For what seldom changes: each change opens an epoch, and costs a cache.
    System,
}

/// Why a value cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// It cannot be written as JSON: a map whose keys are no texts, say.
    #[error("the state is not data: {reason}")]
    NotData {
        /// What the serialiser says.
        reason: String,
    },
    /// The renderer refuses it: it is nested too deeply, say.
    #[error("the state cannot be rendered: {reason}")]
    NotRendered {
        /// What the renderer says.
        reason: String,
    },
}

impl Contribution {
    /// A value as XML, `<state>…</state>`: kept whole or left out.
    ///
    /// The same value gives the same bytes. Two contributions of state are two texts: hosts that set state
    /// anew keep it in a [`CallContext`](crate::CallContext).
    ///
    /// # Errors
    /// A value that JSON cannot hold, or that is nested too deeply.
    ///
    /// ```
    /// use contexture_compile::{Contribution, Placement};
    ///
    /// #[derive(serde::Serialize)]
    /// struct Task { open: u32, next: &'static str }
    ///
    /// let state = Contribution::state(&Task { open: 2, next: "ship </state> it" }, Placement::Tail)?;
    /// assert_eq!(state.source, "state");
    /// # Ok::<(), contexture_compile::StateError>(())
    /// ```
    pub fn state(value: &impl Serialize, placement: Placement) -> Result<Self, StateError> {
        Self::state_with(value, placement, Arc::new(XmlRenderer::default()))
    }

    /// Shows a value as [`Contribution::state`] does, written by another renderer.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use contexture_compile::{Contribution, Placement};
    /// use contexture_render::ToonRenderer;
    ///
    /// let toon = Arc::new(ToonRenderer::default());
    /// let state = Contribution::state_with(&[1, 2], Placement::Tail, toon)?;
    /// assert_eq!(state.source, "state");
    /// # Ok::<(), contexture_compile::StateError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Contribution::state`].
    pub fn state_with(
        value: &impl Serialize,
        placement: Placement,
        renderer: Arc<dyn Renderer>,
    ) -> Result<Self, StateError> {
        let value = serde_json::to_value(value).map_err(|error| StateError::NotData {
            reason: error.to_string(),
        })?;
        let refused = |error: &dyn std::error::Error| StateError::NotRendered {
            reason: error.to_string(),
        };
        let data = FragmentData::literal_data(value).map_err(|error| refused(&error))?;
        let fragments = vec![Fragment::new(STATE, data)];
        // What cannot be rendered is refused here, where the value is known, and not by the compile.
        renderer
            .render(&fragments)
            .map_err(|error| refused(&error))?;
        let content = Content::Fragments {
            fragments,
            renderer,
        };
        let (band, stability) = match placement {
            Placement::Tail => (Band::Tail, Stability::Volatile),
            Placement::System => (Band::System, Stability::Epoch),
        };
        Ok(Self {
            stability,
            ..Self::new(STATE, band, content)
        })
    }

    /// A text that belongs to the call and not to the conversation, at the tail, as XML: `<name>text</name>`.
    #[must_use]
    pub fn context(name: impl Into<String>, text: impl Into<String>) -> Self {
        let name = name.into();
        let content = Content::Fragments {
            fragments: vec![Fragment::new(&name, text.into())],
            renderer: Arc::new(XmlRenderer::default()),
        };
        Self::new(name, Band::Tail, content)
    }
}
