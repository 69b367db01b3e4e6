//! What the tokens of a call cost by the catalogue's list prices.
//!
//! A model that the catalogue does not know has no price, and none is guessed. Discounts, priority tiers and subscriptions are
//! not in a log, so list prices are what is shown.

use std::collections::BTreeMap;

use contexture_catalogue::{Catalogue, ModelSpec, Usage};
use contexture_prompt_cache::Rates;
use contexture_sessions::ReportedTokens;

/// The models of a catalogue by the names that logs give them, each looked up once.
#[derive(Debug)]
pub(crate) struct PriceBook<'c> {
    catalogue: &'c Catalogue,
    known: BTreeMap<String, Option<&'c ModelSpec>>,
}

/// The cost of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallCost {
    pub(crate) pico_dollars: u128,
    /// Whether some of its tokens have no price.
    pub(crate) is_unpriced: bool,
}

impl<'c> PriceBook<'c> {
    /// A book of the catalogue's prices.
    pub(crate) const fn new(catalogue: &'c Catalogue) -> Self {
        Self {
            catalogue,
            known: BTreeMap::new(),
        }
    }

    /// The model of a name; `None` if the catalogue does not know it.
    pub(crate) fn model(&mut self, name: &str) -> Option<&'c ModelSpec> {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        // Unknown names are remembered too: a lookup compares them with all others for similar ones.
        let found = self.catalogue.resolve(name).ok();
        self.known.insert(name.to_owned(), found);
        found
    }

    /// What a call costs; without a model it has no price.
    pub(crate) fn cost(model: Option<&ModelSpec>, tokens: &ReportedTokens) -> CallCost {
        let Some(model) = model else {
            return CallCost {
                pico_dollars: 0,
                is_unpriced: tokens.input() > 0 || tokens.output > 0,
            };
        };
        let mut usage = Usage::default();
        usage.input = Some(tokens.fresh);
        usage.cache_read = Some(tokens.cache_read);
        usage.cache_write = Some(tokens.cache_write);
        usage.cache_write_1h = Some(tokens.cache_write_long);
        usage.output = Some(tokens.output);
        let cost = model.prices.cost(&usage);
        CallCost {
            pico_dollars: cost.pico_dollars,
            is_unpriced: !cost.is_complete(),
        }
    }

    /// The prices of a call's input.
    pub(crate) fn rates(model: &ModelSpec, tokens: &ReportedTokens) -> Option<Rates> {
        Rates::for_request(&model.prices, model.cache.kind, tokens.input())
    }
}
