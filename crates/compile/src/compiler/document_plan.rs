//! The plan of a caller who keeps the history: given back with each compile, and handed in with the next.
//!
//! It is data of the caller's, so nothing in it is trusted: what does not belong to the history is replaced, never obeyed.
//! The most that a forged one can do is to cut the forger's own document.

use contexture_ir::ContentHash;
use serde::{Deserialize, Serialize};

use crate::calibration::{Calibration, CountedRequest};
use crate::compiler::inline_manifests::InlineSpan;
use crate::input::{PathItem, Plan};
use crate::pipeline::Compiled;
use crate::stored_call::COMPILER;

/// The version of what is written.
const VERSION: u32 = 1;
/// Most manifests that a plan names: neighbours become one, so real ones name a few.
const MOST_SPANS: usize = 64;

/// What a row of compiles decided so far, for callers who keep the history themselves. Opaque: its JSON has no members to rely on,
/// and at most [`DocumentPlan::MAX_BYTES`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentPlan {
    version: u32,
    /// The compiler that wrote it.
    compiler: String,
    pub(super) plan: Plan,
    /// What manifests stand for, with the hash of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spans: Vec<LatchedSpan>,
    /// How the models of these calls count.
    #[serde(default)]
    pub(super) calibration: Calibration,
    /// What was counted of the last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counted: Option<CountedRequest>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LatchedSpan {
    #[serde(flatten)]
    span: InlineSpan,
    /// Hash of the items before `made_at`, by which a plan of another history is noticed.
    #[serde(with = "contexture_ir::hex")]
    hash: ContentHash,
}

impl Default for DocumentPlan {
    fn default() -> Self {
        Self {
            version: VERSION,
            compiler: COMPILER.to_owned(),
            plan: Plan::default(),
            spans: Vec::new(),
            calibration: Calibration::default(),
            counted: None,
        }
    }
}

impl DocumentPlan {
    /// Longest plan in bytes that is written or read.
    pub const MAX_BYTES: usize = 64 << 10;

    /// Reads a plan. One that is damaged, too long or of a later version counts as none: the next epoch begins with the reason
    /// `plan_unreadable`.
    ///
    /// ```
    /// use contexture_compile::DocumentPlan;
    ///
    /// let plan = DocumentPlan::default();
    /// assert_eq!(DocumentPlan::parse(&plan.to_json()), plan);
    /// assert_ne!(DocumentPlan::parse("of another program"), plan);
    /// ```
    #[must_use]
    pub fn parse(json: &str) -> Self {
        let plan: Option<Self> = match json.len() <= Self::MAX_BYTES {
            true => serde_json::from_str(json).ok(),
            false => None,
        };
        let is_known = |plan: &Self| plan.version == VERSION && plan.spans.len() <= MOST_SPANS;
        plan.filter(is_known).unwrap_or_else(|| Self {
            plan: Plan::unreadable(),
            ..Self::default()
        })
    }

    /// Returns the plan as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let json = encode(self);
        if json.len() <= Self::MAX_BYTES {
            return json;
        }
        // Only the names of thousands of tools take so much; without them their order may change once more.
        encode(&Self {
            plan: Plan {
                tools: None,
                ..self.plan.clone()
            },
            ..self.clone()
        })
    }

    /// Learns how the model of the last call counts, from the input tokens that its provider reported.
    pub fn learn_from_usage(&mut self, input_tokens: u64) {
        if let Some(counted) = &self.counted {
            self.calibration.learn_from_usage(counted, input_tokens);
        }
    }

    /// Returns the spans that manifests stand for on this path: none, if it is another one.
    pub(super) fn spans_on(&self, path: &[PathItem]) -> Vec<InlineSpan> {
        let belongs = |latched: &LatchedSpan| {
            let InlineSpan {
                first,
                last,
                made_at,
                ..
            } = latched.span;
            let before = path.get(..made_at);
            first <= last
                && last < made_at
                && before.is_some_and(|before| hash_of(before) == latched.hash)
        };
        match self.spans.iter().all(belongs) {
            true => self.spans.iter().map(|latched| latched.span).collect(),
            false => Vec::new(),
        }
    }

    /// Takes over what a compile decided.
    pub(super) fn update(
        &mut self,
        path: &[PathItem],
        spans: Vec<InlineSpan>,
        compiled: &Compiled,
    ) {
        let latched = |span: InlineSpan| LatchedSpan {
            hash: hash_of(path.get(..span.made_at).unwrap_or(path)),
            span,
        };
        self.spans = spans.into_iter().map(latched).collect();
        self.plan = compiled.plan.clone();
        self.counted = Some(CountedRequest::from(&compiled.report));
    }
}

fn encode(plan: &DocumentPlan) -> String {
    // Numbers, hashes and names: nothing that could not be written.
    serde_json::to_string(plan).unwrap_or_default()
}

fn hash_of(items: &[PathItem]) -> ContentHash {
    let hashes = items.iter().map(|item| *item.hash.as_bytes());
    ContentHash::of(hashes.collect::<Vec<_>>().as_flattened())
}
