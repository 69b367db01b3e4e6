//! Which registered tools a request offers, and what is remembered of it.
//!
//! A request takes an offer ([`contexture_tools::Offer`]); its plan keeps the order, so that the next offer
//! extends this one, and its report names what was left out. Not here: choosing tools, which is the registry's;
//! whether a call may run, which is the policy's.

use contexture_ir::ContentHash;
use contexture_tools::{Choice, Combine, ExcludedTool, OfferSlot, Selection};
use serde::{Deserialize, Serialize};

/// The order of an offer, as a plan keeps it.
///
/// Of the choice only a hash is kept: it may hold what a user said, and that belongs into the history alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedTools {
    /// What stands in the offer, in order.
    #[serde(rename = "places")]
    pub slots: Vec<OfferSlot>,
    /// The identity of the choice by which it was made.
    #[serde(with = "contexture_ir::hex")]
    pub choice: ContentHash,
}

/// What a request says of its tools beside their definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOffer {
    /// What the next offer shall extend.
    pub latched: OfferedTools,
    /// Registered tools that are not offered, and why.
    pub removed: Vec<ExcludedTool>,
}

impl OfferedTools {
    /// What is to be remembered of a selection.
    #[must_use]
    pub(crate) fn from_selection(selection: &Selection) -> Self {
        Self {
            slots: selection.slots.clone(),
            choice: choice_hash(&selection.choice),
        }
    }

    /// The selection as an offer for this choice is to hold it: see [`contexture_tools::OfferRequest::latched`].
    #[must_use]
    pub fn to_selection(&self, wished: &Choice) -> Selection {
        let mut choice = wished.clone();
        if choice_hash(wished) != self.choice {
            // Of another choice nothing counts but that it is another.
            choice.combine = match choice.combine {
                Combine::Intersection => Combine::Union,
                Combine::Union => Combine::Intersection,
            };
        }
        Selection {
            choice,
            slots: self.slots.clone(),
        }
    }
}

fn choice_hash(choice: &Choice) -> ContentHash {
    // Words and numbers: nothing that could not be written.
    ContentHash::of(&serde_json::to_vec(choice).unwrap_or_default())
}
