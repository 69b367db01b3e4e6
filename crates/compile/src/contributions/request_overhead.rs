//! What stands around the history: model, options, tools, system prompt.

use contexture_ir::{
    ContentHash, Fields, Message, Raw, RequestOptions, ResponseFormat, Role, ToolChoice,
    ToolDefinition, Transcript, finish_content_hash,
};
use contexture_prompt_cache::EditedThinking;
use contexture_tokens::TokenBounds;
use contexture_wire::{Envelope, Thinking, lower_envelope, remove_thinking};

use crate::blocks::{Lowerer, Memo};
use crate::contributions::params::overlay_params;
use crate::contributions::place::{PayloadSlot, PlacedContribution};
use crate::contributions::request_fields::{carried_fields, fields_weight};
use crate::error::Refusal;
use crate::input::{Band, CompileRequest};

/// The weight of what every payload of a request has.
#[derive(Debug)]
pub(crate) struct RequestOverhead {
    /// The tools' definitions.
    pub(crate) tools: TokenBounds,
    /// What the format adds to the request, its tools and its system prompt, and the form of the answer.
    pub(crate) framing: TokenBounds,
    pub(crate) tools_hash: ContentHash,
}

impl RequestOverhead {
    pub(crate) fn measure_request(
        request: &CompileRequest,
        slots: &[PayloadSlot<'_>],
        lowerer: &Lowerer<'_>,
        memo: &mut Memo,
    ) -> Self {
        let framing = lowerer.framing();
        let mut around = framing.request + fields_weight(request, lowerer, memo);
        if slots.iter().any(|slot| slot.band == Band::System) {
            around += framing.system;
        }
        if !request.tools.is_empty() {
            // The catalogue knows the exact prompt of some models; for the others the bounds of the
            // format hold.
            around += tool_prompt(request).unwrap_or(framing.tools);
            around += framing.tool.times(request.tools.len() as u64);
        }
        // A model may also be told to think by a member that is no option.
        if request.options.reasoning.is_some() || request.thinking() != Thinking::Off {
            around += framing.reasoning;
        }
        if let Some(ResponseFormat::JsonSchema { schema, .. }) = &request.options.response_format {
            let text = lowerer.count_text(schema.get(), memo);
            // Providers compile the schema into a grammar or a prompt; whether it is billed is not
            // documented, so from nothing to all of it.
            around += framing.schema + TokenBounds::between(0, text.high);
        }
        let mut tools = TokenBounds::ZERO;
        let mut hasher = blake3::Hasher::new();
        for tool in &request.tools {
            let hash = tool_hash(tool);
            // The order counts: tools in another order are another prefix to every cache.
            hasher.update(hash.as_bytes());
            tools += lowerer.count_tool(tool, hash, memo);
        }
        Self {
            tools,
            framing: around,
            tools_hash: finish_content_hash(&hasher),
        }
    }

    /// What it takes of the budget.
    pub(crate) const fn weight(&self) -> u64 {
        self.tools.high.saturating_add(self.framing.high)
    }

    /// The payload without its history.
    pub(crate) fn build_envelope(
        request: &CompileRequest,
        refuses_thinking: bool,
        slots: &[PayloadSlot<'_>],
        placed: &[PlacedContribution],
    ) -> Result<Envelope, Refusal> {
        // Without a stated limit the reserve is what the budget has kept free: a longer answer would
        // not fit the window.
        let max_output_tokens = request.options.max_output_tokens.or(Some(request.reserve));
        let mut transcript = Transcript {
            model: Some(request.model.clone()),
            instructions: system_messages(slots, placed),
            tools: request.tools.clone(),
            options: RequestOptions {
                max_output_tokens,
                ..request.options.clone()
            },
            extra: carried_fields(request),
            ..Transcript::default()
        };
        let format = request.dialect.format;
        if !refuses_thinking {
            let envelope = lower_envelope(&request.dialect, &transcript);
            return overlay_params(envelope, format, &request.params);
        }
        let loss = remove_thinking(format, &mut transcript);
        let mut params = request.params.clone();
        params.retain(|(name, _)| Some(name.as_str()) != format.spec().thinking_member());
        let mut envelope = lower_envelope(&request.dialect, &transcript);
        envelope.losses.push(loss);
        overlay_params(envelope, format, &params)
    }

    /// What becomes of thinking behind an edit; nothing where the model takes it there, or the request has the
    /// provider drop it.
    pub(crate) fn edited_thinking(request: &CompileRequest) -> Option<EditedThinking> {
        if !request.bound_thinking {
            return None;
        }
        // Read where the provider would: wherever the caller has said it, it ends up in the envelope.
        let envelope = Self::build_envelope(request, false, &[], &[]).ok()?;
        let around = format!("{}{}", envelope.before, envelope.after);
        let fields = Fields::parse(&around).ok()?;
        let dropped = request.dialect.format.spec().drops_edited_thinking(&fields);
        (!dropped).then_some(request.history.edited_thinking)
    }

    /// The identity of the system prompt.
    pub(crate) fn system_hash(placed: &[PlacedContribution]) -> ContentHash {
        let mut hasher = blake3::Hasher::new();
        for placed in placed {
            let messages = placed
                .instructions
                .iter()
                .map(|message| contexture_ir::Item::Message(message.clone()).to_json());
            for text in placed.system.iter().cloned().chain(messages) {
                // Lengths keep two texts from hashing like one.
                hasher.update(&(text.len() as u64).to_le_bytes());
                hasher.update(text.as_bytes());
            }
        }
        finish_content_hash(&hasher)
    }
}

/// The prompt that the provider adds for tools, where the catalogue knows it.
fn tool_prompt(request: &CompileRequest) -> Option<TokenBounds> {
    let prompt = request.tool_prompt?;
    let (optional, forced) = (u64::from(prompt.optional), u64::from(prompt.forced));
    let (low, high) = match &request.options.tool_choice {
        Some(ToolChoice::Required | ToolChoice::Function { .. }) => (forced, forced),
        Some(ToolChoice::Other { .. }) => (optional.min(forced), optional.max(forced)),
        None | Some(ToolChoice::Auto | ToolChoice::None) => (optional, optional),
    };
    // The provider has changed it behind the model's name before.
    let least = prompt.least.map_or(low, |least| low.min(least.into()));
    Some(TokenBounds::between(least, high))
}

/// The system prompt: texts that follow each other are one message, whole messages stay whole.
fn system_messages(slots: &[PayloadSlot<'_>], placed: &[PlacedContribution]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    let mut open = String::new();
    let close = |open: &mut String, messages: &mut Vec<Message>| {
        if !open.is_empty() {
            messages.push(Message::text(Role::System, std::mem::take(open)));
        }
    };
    for (_, placed) in slots.iter().zip(placed) {
        if let Some(text) = &placed.system {
            if !open.is_empty() {
                open.push_str("\n\n");
            }
            open.push_str(text);
        }
        if !placed.instructions.is_empty() {
            close(&mut open, &mut messages);
            messages.extend(placed.instructions.iter().cloned());
        }
    }
    close(&mut open, &mut messages);
    messages
}

fn tool_hash(tool: &ToolDefinition) -> ContentHash {
    let mut hasher = blake3::Hasher::new();
    let mut field = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    match tool {
        ToolDefinition::Function(tool) => {
            field(&tool.name);
            field(tool.description.as_deref().unwrap_or_default());
            field(tool.parameters.as_ref().map_or("", Raw::get));
            field(match tool.strict {
                None => "",
                Some(true) => "strict",
                Some(false) => "loose",
            });
            for (name, value) in tool.extra.iter() {
                field(name);
                field(value.get());
            }
        }
        ToolDefinition::Provider(tool) => {
            field(&tool.format);
            field(tool.raw.get());
        }
    }
    finish_content_hash(&hasher)
}
