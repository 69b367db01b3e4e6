//! What stands around the history: contributions in their bands, the envelope of the request, and what both weigh.
//!
//! Terms:
//! * The *envelope* is the request without its array of messages: model, options, tools, system prompt.
//! * The *request overhead* is what the envelope weighs, with what the provider adds to it.
//! * A *unit* is the smallest part of a contribution that may be left out alone; contributions are cut after whole units.
//! * A *bridge* is a short message that opens or closes a request which would begin or end with the model.
//!
//! `place` orders contributions and fits each into its grant; `request_overhead` weighs and writes the envelope;
//! `request_fields` says which members of the caller's own request go into it; `params` and
//! `envelope_fields` change its members one by one, without touching the messages between them.
//!
//! Contributions that change with every call stand behind the history, whatever their band, so they never change a byte
//! before it.
//!
//! Not here: how large a grant is (`budget`), and joining the pieces (`payload`).

mod envelope_fields;
mod params;
mod place;
mod request_fields;
mod request_overhead;

pub(crate) use envelope_fields::{EnvelopeFields, push_member};
pub use place::system_prompt;
pub(crate) use place::{
    PayloadSlot, PlacedContribution, arrange_slots, bridge_contributions, fit_contribution,
    place_contribution, unit_count,
};
pub(crate) use request_fields::setting_changes;
pub(crate) use request_overhead::RequestOverhead;
