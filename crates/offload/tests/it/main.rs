//! What every store of copies does, backend by backend; what only files can get wrong; what a sweep takes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod conformance;
mod files;
mod regressions;
mod support;
mod sweeps;
