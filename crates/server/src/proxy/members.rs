//! JSON put together from pieces that stay as they were written.

use contexture::ir::quote_json;

/// An object of these members.
pub(crate) fn json_object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members = members.into_iter();
    let members: Vec<String> = members
        .map(|(name, value)| format!("{}:{value}", quote_json(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// An array of these values.
pub(crate) fn json_array<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let values: Vec<&str> = values.into_iter().collect();
    format!("[{}]", values.join(","))
}
