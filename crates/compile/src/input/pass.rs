//! Passes of the host: transformations of the items at named points of a compile.
//!
//! They see items and give items; repair, budget and verification come after them, so whatever they do the payload holds
//! the post-condition or is refused.
//!
//! Not here: running them (`history`), adding texts (contributions) and summarising (the engine's compactors).

use std::fmt;
use std::sync::Arc;

use contexture_ir::Item;

/// A pass of the host's over the history.
///
/// It must be a function of what it is given: a compile with it is one only then. With passes nothing of
/// an earlier compile's history is used again, counts and lowered blocks apart.
///
/// ```
/// use contexture_compile::{Pass, PassPoint, ViewItem};
/// use contexture_ir::Item;
///
/// /// Leaves thoughts out.
/// #[derive(Debug)]
/// struct NoThoughts;
///
/// impl Pass for NoThoughts {
///     fn name(&self) -> &str {
///         "no thoughts"
///     }
///
///     fn point(&self) -> PassPoint {
///         PassPoint::BeforeView
///     }
///
///     fn transform_items(&self, items: Vec<ViewItem>) -> Vec<ViewItem> {
///         let stays = |item: &ViewItem| !matches!(&*item.item, Item::Reasoning(_));
///         items.into_iter().filter(stays).collect()
///     }
/// }
/// ```
pub trait Pass: fmt::Debug + Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// Where it stands.
    fn point(&self) -> PassPoint;

    /// The items in their new form: some changed, left out, added, in another order.
    fn transform_items(&self, items: Vec<ViewItem>) -> Vec<ViewItem>;
}

/// Where a pass of the host's stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PassPoint {
    /// On what models may read, before anything is covered, cleared or previewed.
    BeforeView,
    /// On what is about to be repaired and weighed.
    AfterView,
}

/// An item of the view.
#[derive(Clone, Debug)]
pub struct ViewItem {
    /// The item as the next pass sees it.
    pub item: Arc<Item>,
    /// Its index on the path; `None` for what a pass adds. An item of the path that no pass gives back is
    /// reported as left out.
    pub index: Option<usize>,
}
