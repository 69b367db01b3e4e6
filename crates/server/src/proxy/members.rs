//! JSON put together from pieces that stay as they were written.

use contexture::ir::quote;

/// An object of these members.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members = members.into_iter();
    let members: Vec<String> = members
        .map(|(name, value)| format!("{}:{value}", quote(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// An array of these values.
pub(crate) fn array<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let values: Vec<&str> = values.into_iter().collect();
    format!("[{}]", values.join(","))
}
