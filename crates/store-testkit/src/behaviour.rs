//! The type of a behaviour, and its levels.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use contexture_store::Store;

/// Subject of a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Behaviour that every store must have.
    Base,
    /// Isolation: no owner learns anything about the data of another one.
    Ownership,
    /// Repetition of calls that failed or whose outcome is unknown.
    Faults,
    /// Hostile or absurd input, which must cause an error and nothing else.
    Abuse,
}

impl Level {
    /// All levels, in the order in which a new backend meets them.
    pub const ALL: [Self; 4] = [Self::Base, Self::Ownership, Self::Faults, Self::Abuse];
}

/// A behaviour in progress.
pub type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A behaviour that a store must have, with the test that checks it.
pub struct Behaviour {
    /// Name of the behaviour, as `area::what_holds`.
    pub name: &'static str,
    /// Subject of the behaviour.
    pub level: Level,
    /// Test on an empty store; panics if the behaviour does not hold.
    pub run: fn(Arc<dyn Store>) -> Running,
}

impl std::fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
