//! What a behaviour is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use contexture_store::Store;

/// What a behaviour is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What every store does.
    Base,
    /// What no owner learns of another.
    Ownership,
    /// What repeating does where a call failed, or where nobody knows.
    Faults,
    /// What hostile or absurd input does: nothing but an error.
    Abuse,
}

impl Level {
    /// All of them, in the order in which a new backend meets them.
    pub const ALL: [Self; 4] = [Self::Base, Self::Ownership, Self::Faults, Self::Abuse];
}

/// A behaviour in progress.
pub type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One behaviour.
pub struct Behaviour {
    /// A sentence's worth of name, `area::what_holds`.
    pub name: &'static str,
    /// What it is about.
    pub level: Level,
    /// Runs it on an empty store; panics if it does not hold.
    pub run: fn(Arc<dyn Store>) -> Running,
}

impl std::fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
