//! A JSON document of the API, read by name.
//!
//! Fields of the API are added and never renamed, so a page reads those that it shows, as any client does. What is missing or `null`
//! reads as nothing.

use serde_json::Value;

/// A JSON document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document(Value);

impl Document {
    /// Reads the bytes of a document; `None` if they are no JSON.
    ///
    /// ```
    /// use contexture_inspector::Document;
    ///
    /// let document = Document::parse(br#"{"calls": [{"id": "req_1"}]}"#).unwrap();
    /// assert!(Document::parse(b"{").is_none());
    /// # let _ = document;
    /// ```
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        // No body is how the API says that something is done.
        match bytes.is_empty() {
            true => Some(Self::default()),
            false => serde_json::from_slice(bytes).ok().map(Self),
        }
    }

    /// Makes a document of a value within another one.
    pub(crate) const fn of(value: Value) -> Self {
        Self(value)
    }

    pub(crate) const fn view(&self) -> View<'_> {
        View(&self.0)
    }
}

/// A value within a document. Copied, not cloned: texts stay where they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a>(&'a Value);

/// Value returned for a missing member: JSON `null`.
const MISSING: &Value = &Value::Null;

impl<'a> View<'a> {
    #[cfg(test)]
    pub(crate) const fn new(value: &'a Value) -> Self {
        Self(value)
    }

    pub(crate) const fn json(self) -> &'a Value {
        self.0
    }

    /// Returns the member of a name.
    pub(crate) fn at(self, name: &str) -> Self {
        Self(self.0.get(name).unwrap_or(MISSING))
    }

    pub(crate) fn is_missing(self) -> bool {
        self.0.is_null()
    }

    /// Returns the value if there is one.
    pub(crate) fn present(self) -> Option<Self> {
        (!self.is_missing()).then_some(self)
    }

    /// Returns the text of a member; empty if there is none.
    pub(crate) fn text(self, name: &str) -> &'a str {
        self.text_of(name).unwrap_or_default()
    }

    /// Returns the text of a member that is not empty.
    pub(crate) fn text_of(self, name: &str) -> Option<&'a str> {
        self.at(name).0.as_str().filter(|text| !text.is_empty())
    }

    pub(crate) fn number(self, name: &str) -> Option<u64> {
        self.at(name).0.as_u64()
    }

    /// Returns a number that counts as 0 where it is missing.
    pub(crate) fn count(self, name: &str) -> u64 {
        self.number(name).unwrap_or_default()
    }

    /// Whether a member is `true`.
    pub(crate) fn is(self, name: &str) -> bool {
        self.at(name).0.as_bool() == Some(true)
    }

    /// Returns the values of a member that is a list, in order.
    pub(crate) fn list(
        self,
        name: &str,
    ) -> impl DoubleEndedIterator<Item = Self> + Clone + use<'a> {
        let values = self.at(name).0.as_array().map(Vec::as_slice);
        values.unwrap_or_default().iter().map(View)
    }

    /// Returns the texts of a member that is a list of texts.
    pub(crate) fn texts(self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.list(name).filter_map(|one| one.0.as_str())
    }
}
