//! Targets by name, so that a program says `fast` where it calls and what that is in one place.
//!
//! A call's own target comes first, then the engine's default; there is none that nobody set. Not here:
//! models, which are the catalogue's; the engine's words for this, `register`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture_compile::Target;

/// Which target a call is for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TargetChoice<'a> {
    /// The engine's default.
    #[default]
    Default,
    /// The one that was registered under this name.
    Named(&'a str),
    /// This one.
    Given(&'a Target),
}

impl<'a> From<&'a Target> for TargetChoice<'a> {
    fn from(target: &'a Target) -> Self {
        Self::Given(target)
    }
}

impl<'a> From<&'a str> for TargetChoice<'a> {
    fn from(name: &'a str) -> Self {
        Self::Named(name)
    }
}

/// The targets of an engine, shared by its clones.
#[derive(Debug, Default)]
pub(crate) struct Targets(Mutex<TargetRegistry>);

#[derive(Debug, Default)]
pub(crate) struct TargetRegistry {
    pub(crate) named: BTreeMap<String, RegisteredTarget>,
    pub(crate) default: Option<String>,
}

#[derive(Debug)]
pub(crate) struct RegisteredTarget {
    pub(crate) target: Target,
    pub(crate) source: Option<String>,
}

impl Targets {
    pub(crate) fn lock(&self) -> MutexGuard<'_, TargetRegistry> {
        // Each change is one insertion or removal, so a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
