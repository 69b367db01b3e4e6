//! A list of a report that is drawn up when it is first read.
//!
//! A report names every item that is not in its payload. Of a long history these are many and always nearly the same, and
//! most reports are never read to the end.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Serialize, Serializer};

/// What draws up a list: always the same one.
type MakeList<T> = Arc<dyn Fn() -> Vec<T> + Send + Sync>;

/// A list that is made when it is first read. It reads, compares, prints and serialises as the list.
///
/// ```
/// use contexture_report::DeferredList;
///
/// let squares = DeferredList::new(|| (1..4).map(|n| n * n).collect());
/// assert_eq!(*squares, [1, 4, 9]);
/// assert_eq!(squares, DeferredList::from(vec![1, 4, 9]));
/// ```
pub struct DeferredList<T> {
    made: OnceLock<Vec<T>>,
    make: Option<MakeList<T>>,
}

impl<T> DeferredList<T> {
    /// A list that `make` draws up. It must give the same each time, as clones that nobody has read ask it too.
    #[must_use]
    pub fn new(make: impl Fn() -> Vec<T> + Send + Sync + 'static) -> Self {
        Self {
            made: OnceLock::new(),
            make: Some(Arc::new(make)),
        }
    }
}

impl<T> DeferredList<T> {
    /// Changes the list.
    pub fn change(&mut self, change: impl FnOnce(&mut Vec<T>)) {
        let mut list = match self.made.take() {
            Some(list) => list,
            None => self.make.take().map_or_else(Vec::new, |make| make()),
        };
        change(&mut list);
        *self = list.into();
    }
}

impl<T> Deref for DeferredList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.made
            .get_or_init(|| self.make.as_ref().map_or_else(Vec::new, |make| make()))
    }
}

impl<T> From<Vec<T>> for DeferredList<T> {
    fn from(list: Vec<T>) -> Self {
        Self {
            made: list.into(),
            make: None,
        }
    }
}

impl<T> FromIterator<T> for DeferredList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(list: I) -> Self {
        list.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T> Default for DeferredList<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Clone> Clone for DeferredList<T> {
    fn clone(&self) -> Self {
        Self {
            made: self.made.clone(),
            make: self.make.clone(),
        }
    }
}

impl<'a, T> IntoIterator for &'a DeferredList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: fmt::Debug> fmt::Debug for DeferredList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq> PartialEq for DeferredList<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for DeferredList<T> {}

impl<T: PartialEq, const N: usize> PartialEq<[T; N]> for DeferredList<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        **self == *other
    }
}

impl<T: PartialEq> PartialEq<Vec<T>> for DeferredList<T> {
    fn eq(&self, other: &Vec<T>) -> bool {
        **self == **other
    }
}

impl<T: Serialize> Serialize for DeferredList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}
