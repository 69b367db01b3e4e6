//! What the report says of the cache.

use contexture_catalogue::CacheKind;
use contexture_wire::{CacheTtl, RequestPart};
use serde::Serialize;

use crate::cost::{CacheUsage, Rates, RewriteValue};
use crate::markers::{CacheMarker, MarkerPlan, MarkerReason};
use crate::objects::ContentReport;
use crate::outline::SegmentList;
use crate::rules::CacheRules;

/// The cache plan of one payload, and what the provider is expected to bill for its input.
///
/// A prediction holds if the call before was sent, and this one is before what it left is forgotten.
/// Tokens are best guesses, where the budget goes by high bounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheReport {
    /// Who decides what is cached.
    pub kind: CacheKind,
    /// The markers in force, in payload order.
    #[serde(rename = "marks")]
    pub markers: Vec<MarkerReport>,
    /// Input tokens by what is paid for them.
    pub predicted: CacheUsage,
    /// Their cost in pico-dollars (10⁻¹² dollars); absent where the price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// What the same tokens would cost without a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_uncached: Option<u64>,
    /// Where clearing was a matter of money: whether it paid, and both figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewriting: Option<RewriteValue>,
    /// The cache object named for the request, and whether it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentReport>,
    /// Whether there was no call before on this plan.
    pub first: bool,
    /// For how many seconds the provider keeps what is read or written, at least; 0 without a cache.
    #[serde(rename = "kept_seconds")]
    pub retention_seconds: u64,
}

/// A cache marker in the report of a compile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarkerReport {
    /// What it ends: `tools`, `system`, `messages[12]`, counted in pieces of the payload.
    pub ends: String,
    /// Why it stands there.
    #[serde(rename = "why")]
    pub reason: MarkerReason,
    /// For how long.
    pub ttl: CacheTtl,
}

impl CacheReport {
    /// The report of a payload that carries these markers; what only the compiler knows (a rewriting, a cache object)
    /// is left empty.
    #[must_use]
    pub fn new(
        rules: &CacheRules,
        outline: &impl SegmentList,
        plan: &MarkerPlan,
        predicted: CacheUsage,
        rates: Option<Rates>,
    ) -> Self {
        let shortest = plan.markers.iter().map(|marker| marker.ttl).min();
        let shortest = shortest.unwrap_or_default();
        // The same tokens as if nothing were cached: the difference is what the cache saves.
        let uncached = CacheUsage {
            fresh: predicted.total_tokens(),
            ..CacheUsage::default()
        };
        Self {
            kind: rules.kind,
            markers: plan
                .markers
                .iter()
                .map(|marker| MarkerReport::new(outline, marker))
                .collect(),
            predicted,
            cost: input_cost(&predicted, rates.as_ref()),
            cost_uncached: input_cost(&uncached, rates.as_ref()),
            rewriting: None,
            content: None,
            first: false,
            retention_seconds: rules.ttl_ms(shortest) / 1_000,
        }
    }
}

impl MarkerReport {
    /// A marker with the part of the payload that it ends, by its name.
    fn new(outline: &impl SegmentList, marker: &CacheMarker) -> Self {
        let segment = outline.segment(marker.segment);
        Self {
            ends: segment.map_or_else(String::new, |one| match one.part {
                RequestPart::Messages => format!("messages[{}]", one.index),
                part => part.as_str().to_owned(),
            }),
            reason: marker.reason,
            ttl: marker.ttl,
        }
    }
}

/// The cost of input in pico-dollars, where prices are known.
fn input_cost(usage: &CacheUsage, rates: Option<&Rates>) -> Option<u64> {
    let cost = usage.input_cost(rates?);
    // The report's JSON has 64 bits: that is 18 million dollars for one call.
    Some(u64::try_from(cost).unwrap_or(u64::MAX))
}
