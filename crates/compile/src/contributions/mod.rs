//! What stands around the history: contributions in their bands, the envelope of the request, and what both weigh.
//!
//! `place` orders contributions and fits each into its grant; `request_overhead` weighs model, options and tools and writes
//! the envelope; `params` and `envelope_fields` change its members one by one.
//!
//! Not here: how large a grant is (`budget`), and joining the pieces (`payload`).

pub(crate) mod envelope_fields;
pub(crate) mod params;
pub(crate) mod place;
pub(crate) mod request_overhead;
