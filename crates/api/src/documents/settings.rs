//! What a server is set up with: the models that it knows, its policies, and whose data it holds.

use contexture::Owner;
use contexture::catalogue::ModelSpec;
use contexture::store::OwnerSize;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::documents::UsageSumDocument;
use crate::schema::EncodingSchema;

/// A model that the server knows, with its limits and prices.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelDocument {
    /// Name that its provider knows it by.
    pub id: String,
    /// Other names of it.
    pub aliases: Vec<String>,
    /// Name of its provider; empty if not known.
    pub provider: String,
    /// Name of the line of models that it belongs to; empty if not known.
    pub family: String,
    /// Maximum number of tokens of input and output together.
    pub context_window: u64,
    /// Maximum number of tokens of input, where that is a limit of its own; else `null`.
    pub input_limit: Option<u64>,
    /// Maximum number of tokens of output; `null` if not known.
    pub output_limit: Option<u64>,
    /// Maximum number of tools in a request; `null` if not known.
    pub tool_limit: Option<usize>,
    /// Encoding that its tokens are counted in.
    #[schema(value_type = EncodingSchema)]
    pub encoding: &'static str,
    /// Prices in dollars per million tokens, by meter; empty if none is known.
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub prices: Value,
    /// What it can do, by name; `false` also stands for "not known".
    #[schema(value_type = std::collections::BTreeMap<String, bool>)]
    pub capabilities: Value,
    /// How it caches prompts.
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub cache: Value,
    /// Day on which its provider stops answering for it, such as `2027-01-31`; `null` if none is announced.
    pub retires: Option<String>,
}

impl From<&ModelSpec> for ModelDocument {
    fn from(model: &ModelSpec) -> Self {
        // As a models file says it, so that one spelling does for both.
        let table = |value: Result<Value, serde_json::Error>| value.unwrap_or_else(|_| json!({}));
        Self {
            id: model.id.clone(),
            aliases: model.aliases.clone(),
            provider: model.provider.clone(),
            family: model.family.clone(),
            context_window: model.context_window,
            input_limit: model.input_limit,
            output_limit: model.output_limit,
            tool_limit: model.tool_limit,
            encoding: model.encoding.name(),
            prices: table(serde_json::to_value(&model.prices)),
            capabilities: table(serde_json::to_value(model.capabilities)),
            cache: table(serde_json::to_value(&model.cache)),
            retires: model.retires.clone(),
        }
    }
}

/// A page of models, in the order of their names.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelsDocument {
    /// The models of this page.
    pub models: Vec<ModelDocument>,
    /// Whether another page follows.
    pub more: bool,
    /// Value of `after` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A policy: what the proxy may change in a request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PolicyDocument {
    /// Name of the policy.
    pub name: String,
    /// Where it is written down: `configuration`.
    pub source: &'static str,
    /// Settings of the policy in the words of the configuration, defaults included; folders of skills are left out.
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub settings: Value,
    /// Names of the skills that it shows.
    pub skills: Vec<String>,
    /// Routes that lead to it, in the order in which they are tried, with the routes of other policies between them.
    pub routes: Vec<PolicyRouteDocument>,
}

/// A route to a policy: the requests that get it. What is `null` fits every request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PolicyRouteDocument {
    /// Place of the route among those of all policies, from 1: the first that fits counts.
    pub place: usize,
    /// Name of the upstream.
    pub upstream: Option<String>,
    /// Name of the model; `*` stands for any characters.
    pub model: Option<String>,
    /// Name of the caller's key.
    pub key: Option<String>,
}

/// All policies of a server, in the order of their names.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PoliciesDocument {
    /// The policies of the server.
    pub policies: Vec<PolicyDocument>,
}

/// An owner, and what it has.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OwnerDocument {
    /// Name of the owner.
    pub owner: String,
    /// Number of its conversations.
    pub conversations: u64,
    /// Number of items in them.
    pub items: u64,
    /// Bytes of the items as stored, compressed where they are.
    pub bytes: u64,
    /// Number of its calls to providers, all there ever were.
    pub calls: u64,
    /// What they cost in dollars, a decimal.
    pub dollars: String,
}

impl From<&OwnerSize> for OwnerDocument {
    fn from(size: &OwnerSize) -> Self {
        Self {
            conversations: size.conversations,
            items: size.nodes,
            bytes: size.bytes,
            ..Self::without_conversations(&size.owner)
        }
    }
}

impl OwnerDocument {
    /// Creates the document of an owner that has nothing stored but calls.
    #[must_use]
    pub fn without_conversations(owner: &Owner) -> Self {
        Self {
            owner: owner.to_string(),
            conversations: 0,
            items: 0,
            bytes: 0,
            calls: 0,
            dollars: "0".to_owned(),
        }
    }

    /// Adds what its calls sum up to.
    pub fn set_calls(&mut self, sum: &UsageSumDocument) {
        self.calls = sum.calls;
        self.dollars.clone_from(&sum.dollars);
    }
}

/// A page of owners.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OwnersDocument {
    /// The owners, in order of their names.
    pub owners: Vec<OwnerDocument>,
    /// Value of `after` for the next page; `null` on the last.
    pub next: Option<String>,
}
