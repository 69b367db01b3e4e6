//! What is compiled: a path, contributions, a plan and a target.

use std::sync::Arc;

use contexture_catalogue::{MediaRules, ToolPrompt};
use contexture_ir::{
    Audience, Cancel, ContentHash, Extra, Item, NodeId, Origin, Raw, RequestOptions, Role,
    ToolDefinition, Transcript,
};
use contexture_prompt_cache::EditedThinking;
use contexture_tokens::TokenCounter;
use contexture_tools::Offer;
use contexture_wire::{Dialect, Overhead, RepairRules, RequestTraits, Thinking};

use crate::input::adapter::SharedAdapter;
use crate::input::calibrated_range::{BudgetCount, CalibratedRange};
use crate::input::contribution::Contribution;
use crate::input::item_path::PathItems;
use crate::input::pass::Pass;
use crate::input::plan::Plan;
use crate::input::policy::{CachePolicy, HistoryPolicy};
use crate::input::rule_id::RuleId;
use crate::input::tool_offer::{OfferedTools, ToolOffer};

/// One item of the path, shared with whoever loaded it.
#[derive(Clone, Debug)]
pub struct PathItem {
    /// Its node, if it is stored.
    pub node: Option<NodeId>,
    /// The item as it is stored.
    pub item: Arc<Item>,
    /// The hash of the item's stored bytes: equal hashes mean equal items.
    pub hash: ContentHash,
    /// Who may see it. What models may not see is left out, and the report says so.
    pub audience: Audience,
    /// Whether its round stays in the view, as it is, whatever else is cleared or cut.
    pub pinned: bool,
    /// Whose it is. Only what a person wrote can state a standing rule.
    pub origin: Origin,
}

/// A compaction and what it stands for: indexes on the path. The items of the span are left out and
/// the compaction is shown in their place, wherever it is on the path. What the host said in the midst of the
/// history stays in view behind it, and so does a round in which something is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// Index of the compaction on the path.
    pub compaction: usize,
    /// The first item it stands for.
    pub first: usize,
    /// The last item it stands for.
    pub last: usize,
}

impl PathItem {
    /// An item that is not stored; its hash is that of its JSON. A message of the user counts as a person's.
    #[must_use]
    pub fn new(item: impl Into<Arc<Item>>) -> Self {
        let item = item.into();
        Self {
            node: None,
            hash: ContentHash::of(item.to_json().as_bytes()),
            origin: match &*item {
                Item::Message(message) if message.role == Role::User => Origin::User,
                Item::FunctionCallOutput(_) => Origin::Tool,
                item if item.is_model_output() => Origin::Model,
                _ => Origin::System,
            },
            item,
            audience: Audience::ALL,
            pinned: false,
        }
    }

    /// Several items that are not stored.
    #[must_use]
    pub fn from_items(items: impl IntoIterator<Item = Item>) -> Vec<Self> {
        items.into_iter().map(Self::new).collect()
    }
}

/// Everything a payload depends on. Nothing else does: no clock, no configuration, no environment.
#[derive(Clone, Copy, Debug)]
pub struct CompileInput<'a> {
    /// The path from the first item to the head.
    pub path: PathItems<'a>,
    /// Which compactions of the path are in effect: disjoint or nested, in any order. One that does
    /// not fit the path is ignored. A compaction that says what it covers and is not named here is not
    /// shown.
    pub covers: &'a [Cover],
    /// The standing rules that the host has dropped.
    pub dropped_rules: &'a [RuleId],
    /// Passes of the host's over the history, in this order.
    pub passes: &'a [&'a dyn Pass],
    /// What else to say, in any order.
    pub contributions: &'a [Contribution],
    /// The plan of the previous compile on this path; `Plan::default()` for the first.
    pub plan: &'a Plan,
    /// To whom, and how much.
    pub request: &'a CompileRequest,
    /// What counts tokens for the model.
    pub counter: &'a dyn TokenCounter,
    /// What may call the compile off. It decides whether there is a payload, never what is in it.
    pub cancel: Option<&'a Cancel>,
}

/// To whom, how much, and with which options.
#[derive(Clone, Debug, PartialEq)]
pub struct CompileRequest {
    /// The format and what its model knows of it.
    pub dialect: Dialect,
    /// A program's own writer of the request. The dialect is then that of items, which the adapter is given.
    pub adapter: Option<SharedAdapter>,
    /// The model's name as the provider knows it.
    pub model: String,
    /// How many tokens the model can hold, its answer included.
    pub window: u64,
    /// How many of them are kept free for the answer.
    pub reserve: u64,
    /// How to answer. An absent output limit becomes the reserve.
    pub options: RequestOptions,
    /// The members of the request this one is made from that no option stands for, as
    /// [`Transcript::extra`](contexture_ir::Transcript::extra) has them. Written as they came in the format they came in; losses in any other.
    pub fields: Extra,
    /// Top-level fields of the payload, verbatim. They win over fields of the same name; where both
    /// are objects they are merged member by member, unless they are of different `type`s.
    pub params: Vec<(String, Raw)>,
    /// The tools offered, in this order.
    pub tools: Vec<ToolDefinition>,
    /// What the tools were chosen from, if they were; decides nothing about the payload.
    pub offer: Option<ToolOffer>,
    /// Whether the model may be given the beginning of its answer, that is whether a history may end
    /// with the model speaking.
    pub prefill: bool,
    /// Whether the model refuses thinking that stands behind another system prompt, other tools or other messages than
    /// those it was answered to.
    pub bound_thinking: bool,
    /// The most tools that the model takes; `None` if no limit is known.
    pub tool_limit: Option<usize>,
    /// How the model counts pictures, files and sound.
    pub media: MediaRules,
    /// What reports of usage have left of the ranges of counts. `None`: all.
    pub calibrated_range: Option<CalibratedRange>,
    /// The count that the budget goes by.
    pub count: BudgetCount,
    /// The system prompt that the provider adds to requests with tools. Absent: the format's bounds.
    pub tool_prompt: Option<ToolPrompt>,
    /// How much of the history is shown, and how.
    pub history: HistoryPolicy,
    /// How the provider's prompt cache is used.
    pub cache: CachePolicy,
}

impl CompileRequest {
    /// The name of the target's format, or of its adapter.
    #[must_use]
    pub fn target_name(&self) -> &str {
        match &self.adapter {
            Some(adapter) => adapter.name(),
            None => self.dialect.format.as_str(),
        }
    }

    /// The tokens that the request may have: the window without what is kept free for the answer. 0 where nothing is left.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.window.saturating_sub(self.reserve)
    }

    /// The tokens that the provider adds around messages, calls and tools.
    #[must_use]
    pub fn overhead(&self) -> Overhead {
        match &self.adapter {
            Some(adapter) => adapter.overhead(),
            None => *self.dialect.format.spec().overhead(),
        }
    }

    /// The range that is budgeted of each count; `None`: all of it.
    pub(crate) fn budgeted_range(&self) -> Option<CalibratedRange> {
        match self.count {
            BudgetCount::Upper => self.calibrated_range,
            BudgetCount::Likely => {
                let known = self.calibrated_range.unwrap_or(CalibratedRange::NONE);
                Some(known.up_to_likely())
            }
        }
    }

    /// The chance in per cent that the provider counts more than is budgeted.
    pub(crate) fn chance_above_budget(&self) -> f64 {
        match self.count {
            BudgetCount::Upper => 0.0,
            BudgetCount::Likely => {
                let known = self.calibrated_range.unwrap_or(CalibratedRange::NONE);
                known.chance_above_likely()
            }
        }
    }

    /// Whether an edit before an item takes it away: thinking that is bound to what stands before it.
    pub(crate) fn loses_thinking(&self, item: &Item) -> bool {
        let identity = self.dialect.format.spec().identity();
        let goes = self.history.edited_thinking == EditedThinking::Omit;
        self.bound_thinking && goes && identity.is_signed_thinking(item)
    }

    /// What the provider demands of the history of this request.
    #[must_use]
    pub fn repair_rules(&self) -> RepairRules {
        let rules = match &self.adapter {
            Some(adapter) => adapter.item_rules(),
            None => RepairRules::for_format(self.dialect.format),
        };
        let fields = self.fields.wire_fields(self.dialect.format.as_str());
        let fields = fields.iter().map(|(name, _)| name);
        let params = self.params.iter().map(|(name, _)| name.as_str());
        rules
            .for_request(RequestTraits {
                prefill: self.prefill,
                thinking: self.thinking(),
            })
            .for_members(fields.chain(params))
    }

    /// How the request has its model think. A parameter wins over the options.
    pub(crate) fn thinking(&self) -> Thinking {
        let spec = self.dialect.format.spec();
        let named = |(name, _): &&(String, Raw)| Some(name.as_str()) == spec.thinking_member();
        match self.params.iter().rfind(named) {
            Some((_, value)) => spec.read_thinking(value),
            None => spec.thinking(&Transcript {
                options: RequestOptions {
                    max_output_tokens: self.options.max_output_tokens.or(Some(self.reserve)),
                    ..self.options.clone()
                },
                extra: self.fields.clone(),
                ..Transcript::default()
            }),
        }
    }

    /// The same with these tools too, behind those it has.
    #[must_use]
    pub fn with_offer(mut self, offer: Offer) -> Self {
        self.tools.extend(offer.tools);
        self.offer = Some(ToolOffer {
            // The order is kept in the plan, so the next selection extends this one instead of
            // reordering the tools, which stand before everything in the cache.
            latched: OfferedTools::from_selection(&offer.selection),
            removed: offer.excluded,
        });
        self
    }

    /// The same with a key by which the provider brings requests with one prefix to one cache: OpenAI's
    /// `prompt_cache_key`. Changes nothing where the model's provider knows no such key
    /// ([`CacheRules::keyed`](crate::CacheRules::keyed)), and where a parameter says one already.
    #[must_use]
    pub fn with_cache_key(mut self, key: ContentHash) -> Self {
        let rules = &self.cache.rules;
        let routing_key = rules.format.spec().cache_key().routing_key;
        let Some(routing_key) = routing_key.filter(|_| rules.keyed) else {
            return self;
        };
        let mut params = self.params.iter();
        let fields = self.fields.wire_fields(self.dialect.format.as_str());
        // A key of the caller's wins, whether it is a parameter or came with the request.
        if fields.get(routing_key.member).is_none()
            && !params.any(|(name, _)| name == routing_key.member)
        {
            let value = Raw::from_value(&key.to_string()).unwrap_or_else(|_| Raw::null());
            self.params.push((routing_key.member.to_owned(), value));
        }
        self
    }
}
