//! What is known about one model.

use serde::{Deserialize, Serialize};

use crate::encoding::Encoding;
use crate::media::MediaRules;
use crate::price::{Price, Prices};

/// A model: its limits, prices, encoding and capabilities.
///
/// ```
/// use contexture_catalogue::{Encoding, ModelSpec};
///
/// let mut model = ModelSpec::new("our-model", 32_768, Encoding::Other);
/// model.output_limit = Some(4_096);
/// model.capabilities.tools = true;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelSpec {
    /// The name the provider knows the model by.
    pub id: String,
    /// Other names of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    // Aliases are found by the same rules as ids; see `aliases`.
    pub aliases: Vec<String>,
    /// Who runs it: `openai`, `anthropic`, `google`, …; empty if not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Which line of models it belongs to: `gpt`, `claude`, `gemini`, …; empty if not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub family: String,
    /// The most tokens of input and output together.
    pub context_window: u64,
    /// The most tokens of input, where that is a limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_limit: Option<u64>,
    /// The most tokens of output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_limit: Option<u64>,
    /// How it cuts text into tokens.
    pub encoding: Encoding,
    /// What its provider does with a request that is longer than the model can hold; absent if not known.
    #[serde(default, skip_serializing_if = "Overflow::is_unknown")]
    pub overflow: Overflow,
    /// How it counts media; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaRules>,
    /// The system prompt that the provider adds to requests with tools; absent if nothing is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_prompt: Option<ToolPrompt>,
    /// The most tools that a request may offer; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_limit: Option<usize>,
    /// What it costs.
    #[serde(default)]
    pub prices: Prices,
    /// What it can do.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// How it caches prompts.
    #[serde(default)]
    pub cache: CacheSupport,
    /// The day the provider stops answering for it (`YYYY-MM-DD`), where announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retires: Option<String>,
}

impl ModelSpec {
    /// A model of which only the window is known: its tokens are estimates, it has no prices, and may be offered tools.
    ///
    /// ```
    /// use contexture_catalogue::ModelSpec;
    ///
    /// let spec = ModelSpec::of_unknown("qwen3-coder:30b", 32_768);
    /// assert!(spec.capabilities.tools && spec.provider.is_empty());
    /// ```
    #[must_use]
    pub fn of_unknown(id: impl Into<String>, context_window: u64) -> Self {
        let mut spec = Self::new(id, context_window, Encoding::Other);
        spec.capabilities.tools = true;
        spec
    }

    /// A model of which only the necessary is known: no prices, no cache, no capabilities.
    ///
    /// Of a Claude it is assumed that it binds its thinking, as the newest do: to leave thinking out is accepted by all.
    #[must_use]
    pub fn new(id: impl Into<String>, context_window: u64, encoding: Encoding) -> Self {
        let id = id.into();
        let capabilities = Capabilities {
            bound_thinking: id.contains("claude"),
            ..Capabilities::default()
        };
        Self {
            id,
            aliases: Vec::new(),
            provider: String::new(),
            family: String::new(),
            context_window,
            input_limit: None,
            output_limit: None,
            encoding,
            overflow: Overflow::Unknown,
            media: None,
            tool_prompt: None,
            tool_limit: None,
            prices: Prices::default(),
            capabilities,
            cache: CacheSupport::default(),
            retires: None,
        }
    }
}

/// What a provider does with a request that is longer than its model can hold.
///
/// It holds for the provider's own address. Another host that serves the model may cut such a request without a word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Overflow {
    /// Nothing is known: it may drop a part of the request without a word.
    #[default]
    Unknown,
    /// It refuses the request, bills nothing, and says that it is too long.
    Refuses,
}

impl Overflow {
    /// Whether nothing is known.
    // By reference, as serde asks for it.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

/// How long the system prompt is that a provider adds to requests with tools, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPrompt {
    /// Where the model may do without tools.
    pub optional: u32,
    /// Where it must call one.
    pub forced: u32,
    /// The shortest that was billed or published, whatever the choice, where the provider has changed it; absent if it
    /// is the same as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<u32>,
}

/// What a model can do. `false` also stands for "not known".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Capabilities {
    /// Continues a trailing assistant message.
    pub prefill: bool,
    /// Takes system or developer messages between the others.
    pub mid_conversation_system: bool,
    /// Refuses a call in the history that carries no thought signature.
    pub signed_calls: bool,
    /// Whether it calls functions.
    pub tools: bool,
    /// Calls several functions in one response.
    pub parallel_tools: bool,
    /// Whether it accepts images.
    pub images: bool,
    /// Reads files, PDF at least.
    pub files: bool,
    /// Whether it accepts audio.
    pub audio: bool,
    /// Thinks before it answers.
    pub reasoning: bool,
    /// Answers in a JSON schema.
    pub structured_output: bool,
    /// Searches tools whose definitions are deferred, by the provider's own tool for that.
    pub tool_search: bool,
    /// Refuses thinking in the history that stands behind another system prompt, other tools or other messages than
    /// those it was answered to.
    pub bound_thinking: bool,
}

/// How a model caches prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CacheSupport {
    /// Who decides what is cached.
    pub kind: CacheKind,
    /// The shortest prefix that is cached, in tokens; absent if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_tokens: Option<u64>,
    /// In steps of how many tokens a prefix is cached where no mark ends it; absent if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_tokens: Option<u64>,
    /// For how many seconds without use a prefix is kept at least that nothing marks; absent if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
    /// How many marks a request may carry.
    pub max_marks: u32,
    /// How many content blocks before a mark, its own included, are searched for what earlier marks wrote; absent if
    /// there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lookback_blocks: Option<u32>,
    /// How long a marked prefix can be kept, in seconds, shortest first; empty if the caller has no choice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ttls_seconds: Vec<u64>,
    /// What it costs to keep a cache object for an hour, in dollars per million tokens; absent where there are none or
    /// it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_hour: Option<Price>,
}

/// Who decides what is cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheKind {
    /// There is no cache, or nothing is known of one.
    #[default]
    None,
    /// The provider, by equal prefixes; the request may carry marks as well if [`CacheSupport::max_marks`] says so.
    Automatic,
    /// The request, by marks on its blocks.
    Explicit,
    /// The provider by equal prefixes, and the caller by cache objects made beforehand (Gemini's `cachedContents`).
    CachedContent,
}
