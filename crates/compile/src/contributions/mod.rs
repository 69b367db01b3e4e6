//! What stands around the history: contributions in their bands, the envelope of the request, and what both weigh.
//!
//! `place` orders contributions and fits each into its grant; `request_overhead` weighs model, options and tools and writes
//! the envelope; `params` and `envelope_fields` change its members one by one.
//!
//! Not here: how large a grant is (`budget`), and joining the pieces (`payload`).

mod envelope_fields;
mod params;
mod place;
mod request_overhead;

pub(crate) use envelope_fields::{EnvelopeFields, push_member};
pub(crate) use place::{
    PayloadSlot, PlacedContribution, arrange_slots, bridge_contributions, fit_contribution,
    place_contribution, unit_count,
};
pub(crate) use request_overhead::RequestOverhead;
