//! Conversions from Rust values into fragment data.

use indexmap::IndexMap;
use serde_json::Number;

use super::tree::{Fragment, FragmentData};

impl From<&str> for FragmentData {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for FragmentData {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for FragmentData {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Number> for FragmentData {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

/// `NaN` and the infinities have no number in JSON; they become the texts that ECMAScript prints.
impl From<f64> for FragmentData {
    // The texts are fixed because renderings of the same value must be equal bytes on every machine.
    fn from(number: f64) -> Self {
        match Number::from_f64(number) {
            Some(number) => Self::Number(number),
            None if number.is_nan() => Self::Text("NaN".to_owned()),
            None if number > 0.0 => Self::Text("Infinity".to_owned()),
            None => Self::Text("-Infinity".to_owned()),
        }
    }
}

// `u128` and `i128` are missing on purpose: a JSON number of ours has at most 64 bits.
macro_rules! from_integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for FragmentData {
            fn from(number: $integer) -> Self {
                Self::Number(Number::from(number))
            }
        }
    )*};
}

from_integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl From<Fragment> for FragmentData {
    fn from(fragment: Fragment) -> Self {
        Self::Fragment(Box::new(fragment))
    }
}

/// `None` becomes null.
impl<T: Into<FragmentData>> From<Option<T>> for FragmentData {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<FragmentData>> From<Vec<T>> for FragmentData {
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<FragmentData>, const N: usize> From<[T; N]> for FragmentData {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<K: Into<String>, V: Into<FragmentData>> From<IndexMap<K, V>> for FragmentData {
    fn from(entries: IndexMap<K, V>) -> Self {
        object(entries)
    }
}

impl<T: Into<FragmentData>> FromIterator<T> for FragmentData {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

/// An object of these entries, in this order. A key given twice keeps its first place and its last
/// value.
pub fn object<K: Into<String>, V: Into<FragmentData>>(
    entries: impl IntoIterator<Item = (K, V)>,
) -> FragmentData {
    FragmentData::Object(
        entries
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect(),
    )
}

/// The children of a [`fragment`](super::fragment()): a list of one kind, or a tuple of several.
pub trait Children {
    /// The children as data, in order.
    fn into_children(self) -> Vec<FragmentData>;
}

impl<T: Into<FragmentData>> Children for Vec<T> {
    fn into_children(self) -> Vec<FragmentData> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<T: Into<FragmentData>, const N: usize> Children for [T; N] {
    fn into_children(self) -> Vec<FragmentData> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! tuple_children {
    ($($name:ident)*) => {
        impl<$($name: Into<FragmentData>),*> Children for ($($name,)*) {
            fn into_children(self) -> Vec<FragmentData> {
                #[expect(non_snake_case, reason = "the type parameters name the members")]
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    };
}

tuple_children!(A);
tuple_children!(A B);
tuple_children!(A B C);
tuple_children!(A B C D);
tuple_children!(A B C D E);
tuple_children!(A B C D E F);
tuple_children!(A B C D E F G);
tuple_children!(A B C D E F G H);
