//! Parts of a past call, and the difference of two requests.

use contexture::EngineError;
use contexture::compile::{CacheDiff, Difference};
use contexture::engine::{MissingPart, PastAnswer, PastRequest};
use contexture::ir::Raw;
use contexture::store::Node;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::documents::calls::dollars;
use crate::documents::compile::ExplainedItemDocument;
use crate::documents::node::NodeDocument;
use crate::schema::ProviderFormatSchema;

/// A request of a past call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallRequestDocument {
    /// The request, byte for byte as it was or as it is made again; `null` if it cannot be shown.
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    pub request: Option<Raw>,
    /// Whether it is the request byte for byte: its hash is that of the call. `null` without a request.
    pub exact: Option<bool>,
    /// What it was made of: `body` (the body that was kept), `items` (the conversation's items and the request's tools and options) or
    /// `replay` (compiled again). `null` without a request.
    pub source: Option<&'static str>,
    /// Why there is none; `null` if there is one.
    pub missing: Option<String>,
}

/// The report on the request of a past call that was compiled.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallReportDocument {
    /// Report on what the request contains and leaves out; its schema is docs/schema/report.schema.json. `null` if it was not
    /// compiled, or cannot be compiled again.
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    pub report: Option<Raw>,
    /// Whether the request that it is about is the one that was sent, byte for byte. `null` without a report.
    pub exact: Option<bool>,
    /// Why there is none; `null` if there is one.
    pub missing: Option<String>,
}

/// The answer of a past call.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallAnswerDocument {
    /// Id of the response; `null` if no answer is stored.
    pub response: Option<String>,
    /// Model that the provider named; `null` if it named none.
    pub model: Option<String>,
    /// How it ended: `completed` or `incomplete`; `null` if no answer is stored.
    pub status: Option<&'static str>,
    /// What the provider reported, in its own words: tokens and what it says beside them. `null` if it reported nothing.
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    pub usage: Option<Raw>,
    /// Its items, in order. Calls that were answered on the way are among them, though the client saw none of them.
    pub items: Vec<NodeDocument>,
    /// Why there is none; `null` if there is one.
    pub missing: Option<String>,
}

/// Items of the history of a past call, each with what was sent in its place.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct CallItemsDocument {
    /// The items of this page, oldest first, those included that were not sent.
    pub items: Vec<ExplainedItemDocument>,
    /// Number of items in the history of the call.
    pub path_items: usize,
    /// Texts of the system prompt as it was sent, in order.
    pub system: Vec<String>,
    /// Whether the request that this is about is the one that was sent, byte for byte; `null` without a request.
    pub exact: Option<bool>,
    /// Why there are none; `null` if the request can be shown.
    pub missing: Option<String>,
}

/// Two requests to be compared as a provider's prompt cache does.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DiffRequest)]
pub struct DiffDocument {
    /// The earlier request.
    pub first: DiffSideDocument,
    /// The later one.
    pub second: DiffSideDocument,
    /// Format of both. Default: that of the calls; else it is detected.
    #[schema(value_type = Option<ProviderFormatSchema>)]
    pub format: Option<String>,
    /// Model that they go to, for its cache and prices. Default: that of the later one.
    pub model: Option<String>,
}

/// One of two requests: of a call, or as it is.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiffSideDocument {
    /// Id of the call whose request it is.
    pub call: Option<String>,
    /// Which request of the call: as it was `sent`, which is the default, or as it `came`.
    #[serde(rename = "as")]
    #[schema(inline)]
    pub view: Option<RequestView>,
    /// The request itself, in the place of a call's.
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    pub request: Option<Raw>,
}

/// Which request of a call is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RequestView {
    /// What the provider got.
    #[default]
    Sent,
    /// What the client sent.
    Came,
}

/// Where the later of two requests leaves the cache that the earlier one has filled.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DifferenceDocument {
    /// Whether the later one begins with everything of the earlier one that is cached.
    pub holds: bool,
    /// Tokens of the later one, at a best guess.
    pub tokens: u64,
    /// Of these: read from the cache.
    pub read: u64,
    /// Tokens that would be read if nothing had changed, and are not.
    pub rebilled: u64,
    /// What these cost in dollars, a decimal; `null` without prices.
    pub rebilled_dollars: Option<String>,
    /// What they would cost from the cache in dollars, a decimal; `null` without prices.
    pub cached_dollars: Option<String>,
    /// The first place where they differ; `null` if one begins with the whole other.
    pub first_difference: Option<FirstDifferenceDocument>,
    /// Whether both requests are what was sent or came, byte for byte.
    pub exact: bool,
}

/// The first place where two requests differ.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FirstDifferenceDocument {
    /// Where it is, such as `tools[3].description` or `messages[12].content[0].text`.
    pub path: String,
    /// Name of the tool that it is in; `null` if it is in none.
    pub tool: Option<String>,
    /// The provider's word for the reason.
    pub reason: &'static str,
    /// Offset of the first byte that differs, in the order in which the provider caches.
    pub byte: usize,
    /// Bytes of the later request in that order.
    pub bytes: usize,
    /// What the earlier one says there, shortened.
    pub before: String,
    /// What the later one says there, shortened.
    pub after: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl CallRequestDocument {
    /// Creates the document of a request, or of why there is none.
    ///
    /// # Errors
    /// What was stored is no JSON.
    pub fn new(request: Result<&PastRequest, &MissingPart>) -> Result<Self, EngineError> {
        Ok(match request {
            Ok(request) => Self {
                request: Some(Raw::parse(&*request.json)?),
                exact: Some(request.is_exact),
                source: Some(request.source.as_str()),
                missing: None,
            },
            Err(missing) => Self {
                request: None,
                exact: None,
                source: None,
                missing: Some(missing.to_string()),
            },
        })
    }
}

impl CallReportDocument {
    /// Creates the document of the report on a request as it was sent, or of why there is none.
    ///
    /// # Errors
    /// None that is known: a report is always JSON.
    pub fn new(sent: Result<&PastRequest, &MissingPart>) -> Result<Self, EngineError> {
        let missing = |why: String| Self {
            report: None,
            exact: None,
            missing: Some(why),
        };
        Ok(match sent {
            Ok(request) => match &request.report {
                Some(report) => Self {
                    report: Some(Raw::from_value(&**report)?),
                    exact: Some(request.is_exact),
                    missing: None,
                },
                None => {
                    missing("the request was passed on as it came: nothing was compiled".into())
                }
            },
            Err(why) => missing(why.to_string()),
        })
    }
}

impl CallAnswerDocument {
    /// Creates the document of an answer, or of why there is none.
    ///
    /// # Errors
    /// A stored item is no JSON.
    pub fn new(answer: Result<&PastAnswer, &MissingPart>) -> Result<Self, EngineError> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(missing) => {
                return Ok(Self {
                    response: None,
                    model: None,
                    status: None,
                    usage: None,
                    items: Vec::new(),
                    missing: Some(missing.to_string()),
                });
            }
        };
        let record = &answer.record;
        let nodes = answer.nodes.iter();
        let items = nodes.map(|node| NodeDocument::try_from(&**node as &Node));
        Ok(Self {
            response: Some(record.id.to_string()),
            model: record.model.clone(),
            status: Some(record.status.as_str()),
            usage: record.usage.as_deref().map(Raw::parse).transpose()?,
            items: items.collect::<Result<_, _>>()?,
            missing: None,
        })
    }
}

impl DifferenceDocument {
    /// Creates the document of a difference.
    pub(crate) fn new(found: &CacheDiff, exact: bool) -> Self {
        Self {
            holds: found.holds,
            tokens: found.tokens,
            read: found.read,
            rebilled: found.rebilled,
            rebilled_dollars: found.money.map(|money| dollars(money.now)),
            cached_dollars: found.money.map(|money| dollars(money.cached)),
            first_difference: found.difference.as_ref().map(Into::into),
            exact,
        }
    }
}

impl From<&Difference> for FirstDifferenceDocument {
    fn from(found: &Difference) -> Self {
        Self {
            path: found.path.clone(),
            tool: found.tool.clone(),
            reason: found.reason,
            byte: found.byte,
            bytes: found.bytes,
            before: found.before.clone(),
            after: found.after.clone(),
            hint: found.hint,
        }
    }
}
