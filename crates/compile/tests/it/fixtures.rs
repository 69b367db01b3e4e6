//! Items, sessions and a counter for the tests.

use contexture_catalogue::{Bounds, ImageRule, MediaRules};
use contexture_compile::{
    BudgetCount, CachePolicy, CompileInput, CompileRequest, Compiled, Contribution, HistoryPolicy,
    PathItem, Plan, Refusal, Scratch, TokenCounter, compile,
};
use contexture_ir::{
    Extra, FunctionCall, FunctionCallOutput, Item, Message, Output, RequestOptions, Role,
};
use contexture_tokens::{Encoding, TokenCount, counter_for};
use contexture_wire::{Dialect, Format, lift};
use serde_json::Value;

/// Four bytes a token, rounded up: exact, fast, and easy to check by hand.
#[derive(Debug)]
pub(crate) struct Quarter;

impl TokenCounter for Quarter {
    fn name(&self) -> &str {
        "quarter"
    }

    fn count(&self, text: &str) -> TokenCount {
        TokenCount::exact(text.len().div_ceil(4) as u64)
    }
}

pub(crate) fn user(text: &str) -> Item {
    Message::text(Role::User, text).into()
}

pub(crate) fn assistant(text: &str) -> Item {
    Message::text(Role::Assistant, text).into()
}

pub(crate) fn call(id: &str, arguments: &str) -> Item {
    FunctionCall::new(id, "look_up", arguments).into()
}

pub(crate) fn output(id: &str, text: &str) -> Item {
    FunctionCallOutput::new(id, Output::Text(text.to_owned())).into()
}

/// A request with a window and no reserve but one token.
pub(crate) fn request(format: Format, limit: u64) -> CompileRequest {
    CompileRequest {
        adapter: None,
        dialect: Dialect::of(format),
        model: "model".to_owned(),
        window: limit + 500,
        reserve: 500,
        options: RequestOptions::default(),
        fields: Extra::new(),
        params: Vec::new(),
        tools: Vec::new(),
        offer: None,
        media: MediaRules {
            image: ImageRule::Fixed {
                low: 100,
                medium: 100,
                high: 100,
                original: 100,
            },
            page: Bounds {
                low: 50,
                count: 50,
                high: 50,
            },
            audio_second: None,
        },
        prefill: false,
        bound_thinking: false,
        tool_limit: None,
        calibrated_range: None,
        count: BudgetCount::Upper,
        tool_prompt: None,
        history: HistoryPolicy::default(),
        cache: CachePolicy::none(format),
    }
}

/// Compiles with an empty scratch and no plan.
pub(crate) fn once(
    path: &[PathItem],
    contributions: &[Contribution],
    request: &CompileRequest,
) -> Result<Compiled, Refusal> {
    with(
        path,
        contributions,
        request,
        &Plan::default(),
        &mut Scratch::new(),
    )
}

pub(crate) fn with(
    path: &[PathItem],
    contributions: &[Contribution],
    request: &CompileRequest,
    plan: &Plan,
    scratch: &mut Scratch,
) -> Result<Compiled, Refusal> {
    let input = CompileInput {
        path: path.into(),
        covers: &[],
        dropped_rules: &[],
        passes: &[],
        contributions,
        plan,
        request,
        counter: &Quarter,
        cancel: None,
    };
    compile(&input, scratch)
}

/// What counts for the current models of a format.
pub(crate) fn counter_of(format: Format) -> &'static dyn TokenCounter {
    counter_for(match format {
        Format::Anthropic => Encoding::ClaudeV2,
        Format::Gemini => Encoding::Gemma4,
        _ => Encoding::O200kBase,
    })
}

/// A real session: its name, its instructions and its history.
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) system: Vec<Contribution>,
    pub(crate) path: Vec<PathItem>,
}

/// All 200 tau-bench and 5 SWE-agent sessions.
pub(crate) fn sessions() -> Vec<Session> {
    let chats = contexture_testdata::chat_histories().into_iter();
    let sessions = chats.map(|(name, messages)| session_of(name, &messages));
    sessions.collect()
}

/// The lengths of a path at which its model was asked: what stands there is not the model's, and what
/// follows is, or nothing.
pub(crate) fn calls(path: &[PathItem]) -> impl Iterator<Item = usize> {
    let said = |at: usize| path.get(at).map(|one| one.item.is_model_output());
    (1..=path.len())
        .filter(move |length| said(length - 1) == Some(false) && said(*length) != Some(false))
}

fn session_of(name: String, messages: &Value) -> Session {
    let lifted = lift(Format::OpenAiChat, &messages.to_string())
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let instructions = lifted.transcript.instructions;
    let system = Contribution::new(
        "instructions",
        contexture_compile::Band::System,
        contexture_compile::Content::Instructions(instructions),
    );
    Session {
        name,
        system: vec![system],
        path: PathItem::from_items(lifted.transcript.items),
    }
}
