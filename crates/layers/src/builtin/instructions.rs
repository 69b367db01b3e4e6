//! `instructions`: the first instructions in the system prompt.
//!
//! The text is loaded once, when the conversation starts, and is state of its path: a program with other instructions
//! does not change existing conversations, and rewinding restores what was said then. A program changes them by setting
//! another [`InstructionText`] as state.
//!
//! Not here: the renderer of a whole prompt (`contexture-compile`); fragments are written as XML here.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::{Band, Content, Contribution, Stability};
use contexture_ir::{Fragment, FragmentError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::{HookContext, Layer, LayerError, LayerId, LayerSpec, RecallInput};

/// Instructions in the system prompt.
///
/// Without a maximum they are never cut: a request in which they do not fit is refused. With one
/// ([`LayerSpec::budget`]) they are cut from the end, by paragraphs or by fragments.
///
/// ```
/// use contexture_compile::Budget;
/// use contexture_ir::{fragment, hint, role};
/// use contexture_layers::{Layers, builtin::{Instructions, InstructionText}};
///
/// let plain = Instructions::new("You keep the books of a bakery.\n\nAmounts are in cents.");
/// let words = InstructionText::from_fragments([role("bookkeeper"), fragment("domain", (hint("Amounts are in cents."),))])?;
/// let domain = Instructions::new(words).with_spec(|spec| spec.budget = Budget::at_most(2_000));
/// let layers = Layers::new().with_layer(domain)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Instructions {
    spec: LayerSpec,
    source: InstructionSource,
}

#[derive(Clone)]
enum InstructionSource {
    Fixed(InstructionText),
    Loaded(
        Arc<
            dyn Fn(HookContext) -> BoxFuture<'static, Result<InstructionText, LayerError>>
                + Send
                + Sync,
        >,
    ),
}

impl Instructions {
    /// Creates instructions from a text or from fragments.
    #[must_use]
    pub fn new(words: impl Into<InstructionText>) -> Self {
        Self::from_source(InstructionSource::Fixed(words.into()))
    }

    /// Creates instructions that `load` returns when a conversation starts.
    #[must_use]
    pub fn from_loader<F>(load: impl Fn(HookContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<InstructionText, LayerError>> + Send + 'static,
    {
        let load = move |context| load(context).boxed();
        Self::from_source(InstructionSource::Loaded(Arc::new(load)))
    }

    fn from_source(source: InstructionSource) -> Self {
        let spec = LayerSpec::new(LayerId::built_in("instructions"));
        Self {
            spec: spec.with_position(Band::System, 10, Stability::Frozen),
            source,
        }
    }

    /// Changes the name, position or budget.
    #[must_use]
    pub fn with_spec(mut self, change: impl FnOnce(&mut LayerSpec)) -> Self {
        change(&mut self.spec);
        self
    }
}

impl fmt::Debug for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            InstructionSource::Fixed(words) => format!("{words:?}"),
            InstructionSource::Loaded(_) => "loaded".to_owned(),
        };
        f.debug_tuple("Instructions").field(&source).finish()
    }
}

/// Content of instructions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstructionText(InstructionContent);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum InstructionContent {
    Text(String),
    /// As JSON, because fragments cannot be compared.
    Fragments(Vec<Value>),
}

impl Default for InstructionContent {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl InstructionText {
    /// Creates instructions from fragments; the last ones are cut first.
    ///
    /// # Errors
    /// If a fragment contains a message, or is nested too deeply.
    pub fn from_fragments(
        fragments: impl IntoIterator<Item = Fragment>,
    ) -> Result<Self, FragmentError> {
        let each = fragments.into_iter().map(|fragment| fragment.to_json());
        Ok(Self(InstructionContent::Fragments(
            each.collect::<Result<_, _>>()?,
        )))
    }
}

impl<T: Into<String>> From<T> for InstructionText {
    fn from(text: T) -> Self {
        Self(InstructionContent::Text(text.into()))
    }
}

#[async_trait]
impl Layer for Instructions {
    type State = InstructionText;

    fn spec(&self) -> LayerSpec {
        self.spec.clone()
    }

    async fn init(&self, context: &HookContext) -> Result<InstructionText, LayerError> {
        match &self.source {
            InstructionSource::Fixed(words) => Ok(words.clone()),
            InstructionSource::Loaded(load) => load(context.clone()).await,
        }
    }

    async fn recall(
        &self,
        words: &InstructionText,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        match &words.0 {
            InstructionContent::Text(text) if text.is_empty() => Ok(Vec::new()),
            InstructionContent::Text(text) => {
                let paragraphs = text.split("\n\n").map(str::to_owned).collect();
                Ok(vec![call.contribution(Content::Texts(paragraphs))])
            }
            InstructionContent::Fragments(fragments) if fragments.is_empty() => Ok(Vec::new()),
            InstructionContent::Fragments(fragments) => {
                let each = fragments.iter().cloned().map(Fragment::try_from);
                let each: Vec<_> = each
                    .collect::<Result<_, _>>()
                    .map_err(LayerError::from_message)?;
                Ok(vec![call.contribution_from_fragments(each)])
            }
        }
    }
}
