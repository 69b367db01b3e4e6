//! What a call was compiled from beside its path and plan, as JSON, so that it can be compiled again.
//!
//! The request is kept with all its facts (window, media rules, cache rules, …), so that a catalogue
//! that says otherwise since changes nothing. Fragments are kept as they were rendered. Every field is
//! named here: a new one does not compile until it is kept too.
//!
//! Not here: the path, the plan and what is in effect on it, which are stored where they belong; where
//! the JSON is kept.

use std::sync::Arc;

use contexture_catalogue::{MediaRules, ToolPrompt};
use contexture_ir::{Fragment, Item, Message, Raw, Transcript};
use contexture_render::{RenderError, Renderer};
use contexture_wire::{Dialect, DocumentKind, Format, lift, lower};
use serde::{Deserialize, Serialize};

use crate::input::{
    Band, Budget, BudgetCount, CachePolicy, CalibratedRange, CompileRequest, Content, Contribution,
    HistoryPolicy, SharedAdapter, Stability,
};

/// The version of this compiler. Another one may compile the same input to other bytes.
pub const COMPILER: &str = env!("CARGO_PKG_VERSION");

/// A stored call that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored call cannot be read: {reason}")]
pub struct StoredCallError {
    /// What is wrong with it.
    pub reason: String,
}

/// A request and what is said beside the history, as JSON that [`load_call`] reads.
///
/// # Errors
/// A renderer's that refuses its fragments.
pub fn store_call(
    request: &CompileRequest,
    contributions: &[Contribution],
) -> Result<Raw, RenderError> {
    let contributions = contributions
        .iter()
        .map(StoredContribution::from_contribution);
    // Every field is copied by name in `from_request`: a new field of a request does not compile until
    // it is stored as well.
    let call = StoredCall {
        request: StoredRequest::from_request(request),
        contributions: contributions.collect::<Result<_, _>>()?,
    };
    Ok(Raw::from_value(&call).unwrap_or_else(|_| Raw::null()))
}

/// Finds a program's target adapter by its name.
pub type AdapterLookup<'a> = &'a dyn Fn(&str) -> Option<SharedAdapter>;

/// The request and the contributions that were stored. They compile to the same bytes.
///
/// Target adapters are code and not stored; `adapters` finds them by name.
///
/// # Errors
/// [`StoredCallError`] for what [`store_call`] does not write, and for an adapter that is not found.
pub fn load_call(
    stored: &Raw,
    adapters: AdapterLookup<'_>,
) -> Result<(CompileRequest, Vec<Contribution>), StoredCallError> {
    let call: StoredCall = serde_json::from_str(stored.get()).map_err(stored_call_error)?;
    let contributions = call.contributions.into_iter();
    let contributions = contributions.map(StoredContribution::into_contribution);
    Ok((
        call.request.into_request(adapters)?,
        contributions.collect::<Result<_, _>>()?,
    ))
}

fn stored_call_error(why: impl ToString) -> StoredCallError {
    StoredCallError {
        reason: why.to_string(),
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredCall {
    request: StoredRequest,
    contributions: Vec<StoredContribution>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredRequest {
    format: Format,
    mid_system: bool,
    developer_role: bool,
    signed_calls: bool,
    /// The name of the target adapter: code, which cannot be stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adapter: Option<String>,
    model: String,
    window: u64,
    reserve: u64,
    /// Options, tools and fields of the request, as a document of items.
    asked: Raw,
    params: Vec<(String, Raw)>,
    prefill: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    bound_thinking: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_limit: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    narrowing: Option<CalibratedRange>,
    #[serde(default, skip_serializing_if = "BudgetCount::is_upper")]
    count: BudgetCount,
    media: MediaRules,
    tool_prompt: Option<ToolPrompt>,
    history: HistoryPolicy,
    cache: CachePolicy,
}

impl StoredRequest {
    fn from_request(request: &CompileRequest) -> Self {
        let CompileRequest {
            dialect,
            adapter,
            model,
            window,
            reserve,
            options,
            fields,
            params,
            tools,
            // Decides nothing about the payload.
            offer: _,
            prefill,
            bound_thinking,
            tool_limit,
            calibrated_range: narrowing,
            count,
            media,
            tool_prompt,
            history,
            cache,
        } = request.clone();
        let Dialect {
            format,
            mid_system,
            developer_role,
            signed_calls,
        } = dialect;
        let asked = Transcript {
            options,
            tools,
            extra: fields,
            ..Transcript::default()
        };
        // Options and tools go through the format of items, which is lossless and has a stable shape
        // of its own.
        let asked = lower(&Dialect::of(Format::Items), DocumentKind::Request, &asked).json;
        Self {
            format,
            mid_system,
            developer_role,
            signed_calls,
            adapter: adapter.map(|adapter| adapter.name().to_owned()),
            model,
            window,
            reserve,
            asked: Raw::parse(asked.as_str()).unwrap_or_else(|_| Raw::null()),
            params,
            prefill,
            bound_thinking,
            tool_limit,
            narrowing,
            count,
            media,
            tool_prompt,
            history,
            cache,
        }
    }

    fn into_request(self, adapters: AdapterLookup<'_>) -> Result<CompileRequest, StoredCallError> {
        let adapter = self.adapter.map(|name| {
            let missing =
                || stored_call_error(format!("its target adapter `{name}` is not registered"));
            adapters(&name).ok_or_else(missing)
        });
        let asked = lift(Format::Items, self.asked.get()).map_err(stored_call_error)?;
        Ok(CompileRequest {
            dialect: Dialect {
                format: self.format,
                mid_system: self.mid_system,
                developer_role: self.developer_role,
                signed_calls: self.signed_calls,
            },
            adapter: adapter.transpose()?,
            model: self.model,
            window: self.window,
            reserve: self.reserve,
            options: asked.transcript.options,
            fields: asked.transcript.extra,
            params: self.params,
            tools: asked.transcript.tools,
            offer: None,
            prefill: self.prefill,
            bound_thinking: self.bound_thinking,
            tool_limit: self.tool_limit,
            calibrated_range: self.narrowing,
            count: self.count,
            media: self.media,
            tool_prompt: self.tool_prompt,
            history: self.history,
            cache: self.cache,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredContribution {
    source: String,
    band: Band,
    stability: Stability,
    order: i32,
    budget: Budget,
    pinned: bool,
    content: StoredContent,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredContent {
    Text(String),
    Texts(Vec<String>),
    /// The text of the first fragment, of the first two, and so on: it may be cut after each.
    Rendered(Vec<String>),
    Instructions(Raw),
    Items(Raw),
}

impl StoredContribution {
    fn from_contribution(of: &Contribution) -> Result<Self, RenderError> {
        let items = |items: &[Item]| Raw::from_value(&items).unwrap_or_else(|_| Raw::null());
        let content = match &of.content {
            Content::Text(text) => StoredContent::Text(text.clone()),
            Content::Texts(texts) => StoredContent::Texts(texts.clone()),
            Content::Fragments {
                fragments,
                renderer,
                // What is required is never shortened, so one text is enough.
            } if of.is_required() => StoredContent::Text(renderer.render(fragments)?),
            Content::Fragments {
                fragments,
                renderer,
            } => {
                // Fragments are stored as text: a renderer is code, and a later version of it may
                // write other bytes. Every beginning is kept, as the budget may cut after any of them.
                let counts = 1..=fragments.len();
                let beginnings = counts.filter_map(|count| fragments.get(..count));
                let texts = beginnings.map(|some| renderer.render(some));
                StoredContent::Rendered(texts.collect::<Result<_, _>>()?)
            }
            Content::Instructions(messages) => {
                let messages: Vec<Item> = messages.iter().cloned().map(Item::from).collect();
                StoredContent::Instructions(items(&messages))
            }
            Content::Items(given) => StoredContent::Items(items(given)),
        };
        Ok(Self {
            source: of.source.clone(),
            band: of.band,
            stability: of.stability,
            order: of.order,
            budget: of.budget,
            pinned: of.pinned,
            content,
        })
    }

    fn into_contribution(self) -> Result<Contribution, StoredCallError> {
        let items = |raw: &Raw| Item::parse_all(raw.get()).map_err(stored_call_error);
        let content = match self.content {
            StoredContent::Text(text) => Content::Text(text),
            StoredContent::Texts(texts) => Content::Texts(texts),
            StoredContent::Rendered(texts) => Content::Fragments {
                // Only the number of fragments matters: the renderer below answers by it.
                fragments: texts.iter().map(|_| Fragment::new("", "")).collect(),
                renderer: Arc::new(PrerenderedTexts(texts)),
            },
            StoredContent::Instructions(raw) => {
                let messages = items(&raw)?.into_iter().map(|item| match item {
                    Item::Message(message) => Ok(message),
                    _ => Err(stored_call_error("instructions have only messages")),
                });
                Content::Instructions(messages.collect::<Result<Vec<Message>, _>>()?)
            }
            StoredContent::Items(raw) => Content::Items(items(&raw)?),
        };
        Ok(Contribution {
            source: self.source,
            band: self.band,
            stability: self.stability,
            order: self.order,
            budget: self.budget,
            content,
            pinned: self.pinned,
        })
    }
}

/// Gives the text that so many fragments had.
#[derive(Debug)]
struct PrerenderedTexts(Vec<String>);

impl Renderer for PrerenderedTexts {
    fn name(&self) -> &str {
        "rendered"
    }

    fn render(&self, fragments: &[Fragment]) -> Result<String, RenderError> {
        let last = fragments.len().checked_sub(1);
        let text = last.and_then(|last| self.0.get(last));
        Ok(text.cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use contexture_catalogue::Catalogue;
    use contexture_ir::{FunctionTool, RequestOptions, Role, ToolChoice, ToolDefinition};
    use contexture_render::XmlRenderer;
    use contexture_tokens::counter_for;

    use super::*;
    use crate::Plan;
    use crate::Scratch;
    use crate::Target;
    use crate::input::CompileInput;
    use crate::input::PathItem;
    use crate::pipeline::compile;

    fn raw(json: &str) -> Raw {
        Raw::parse(json).unwrap()
    }

    #[test]
    fn what_was_stored_compiles_to_the_same_bytes() {
        let fragments = |count: usize| Content::Fragments {
            fragments: (0..count)
                .map(|at| Fragment::new("hint", format!("hint number {at}")))
                .collect(),
            renderer: Arc::new(XmlRenderer::default()),
        };
        let contributions = [
            Contribution::system("text", "Be brief."),
            Contribution::new("required", Band::System, fragments(3)),
            Contribution::new("cut", Band::Anchor, fragments(40)).with_budget(Budget::at_most(60)),
            Contribution::new(
                "texts",
                Band::Tail,
                Content::Texts(vec!["a".to_owned(), "b".to_owned()]),
            ),
            Contribution::new(
                "messages",
                Band::System,
                Content::Instructions(vec![Message::text(Role::Developer, "Of another system.")]),
            ),
            Contribution::new(
                "items",
                Band::Live,
                Content::Items(vec![Message::text(Role::User, "An item.").into()]),
            ),
        ];
        let tool = ToolDefinition::Function(FunctionTool {
            name: "look".to_owned(),
            parameters: Some(raw(r#"{"type":"object", "b":1,"a":1.0}"#)),
            strict: Some(false),
            ..FunctionTool::default()
        });
        let options = RequestOptions {
            stop: vec!["end".to_owned()],
            tool_choice: Some(ToolChoice::Required),
            ..RequestOptions::default()
        };
        let models = [
            Target::anthropic("claude-sonnet-4-5"),
            Target::openai_chat("gpt-4o"),
            Target::openai_responses("gpt-4o"),
            Target::gemini("gemini-2.5-pro"),
        ];
        for target in models {
            let target = target
                .window(4_000)
                .options(options.clone())
                .tools(vec![tool.clone()])
                .param("metadata", raw(r#"{"user_id":"u 1"}"#));
            let request = target.build_request(Catalogue::builtin()).unwrap();
            let stored = store_call(&request, &contributions).unwrap();
            let (again, loaded) = load_call(&raw(stored.get()), &|_| None).unwrap();
            assert_eq!(again, request);
            let path: Vec<Item> = (0..40)
                .map(|at| Message::text(Role::User, format!("message {at}")).into())
                .collect();
            let path = PathItem::from_items(path);
            let spec = Catalogue::builtin().resolve(target.model()).unwrap();
            let bytes = |request: &CompileRequest, contributions: &[Contribution]| {
                let input = CompileInput {
                    path: (&path).into(),
                    covers: &[],
                    dropped_rules: &[],
                    passes: &[],
                    contributions,
                    plan: &Plan::default(),
                    request,
                    counter: counter_for(spec.encoding),
                    cancel: None,
                };
                let compiled = compile(&input, &mut Scratch::new()).unwrap();
                compiled.payload.to_json()
            };
            let first = bytes(&request, &contributions);
            assert!(first.contains("hint number 1") && !first.contains("hint number 39"));
            assert_eq!(bytes(&again, &loaded), first);
        }
    }

    #[test]
    fn what_is_no_call_is_refused() {
        for json in ["null", "{}", r#"{"request":1,"contributions":[]}"#] {
            assert!(load_call(&raw(json), &|_| None).is_err(), "{json}");
        }
    }
}
