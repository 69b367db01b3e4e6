//! Rules on how the code is divided: layers of crates, modules, files, sizes, and what pure crates may use.

pub(crate) mod crate_layers;
pub(crate) mod file_layout;
pub(crate) mod inherent_impls;
pub(crate) mod layers;
pub(crate) mod module_cycles;
pub(crate) mod modules;
pub(crate) mod purity;
pub(crate) mod sizes;
