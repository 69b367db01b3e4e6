//! Inputs and outputs of screens: query or form parameters, and the reply.

use percent_encoding::percent_decode_str;

use crate::api::ApiError;

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A page, with the HTTP status.
    Page {
        /// Status of the answer.
        status: u16,
        /// The page as HTML.
        html: String,
    },
    /// JSON for the module of a page.
    Json(String),
    /// A text to look at or to keep, never a page.
    Text(String),
    /// Another page is to be shown.
    Redirect(String),
}

impl Reply {
    pub(crate) const fn page(html: String) -> Self {
        Self::Page { status: 200, html }
    }
}

/// The parameters of a query or a form, decoded. Of two of one name the first counts.
#[derive(Clone, Debug, Default)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads a query, or the body of a form.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let decode = |text: &str| {
            let spaced = text.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(
            pairs
                .map(|(name, value)| (decode(name), decode(value)))
                .collect(),
        )
    }

    /// Returns the value of a name, if it has any.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

/// Returns the 404 error of an unknown page.
pub(crate) fn unknown_page() -> ApiError {
    ApiError {
        status: 404,
        code: "not_found".to_owned(),
        detail: "there is no such page".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_and_forms_are_decoded() {
        let found = Parameters::parse("q=a+b%26c&empty=&q=second&%C3%BC=1&%ff=x");
        assert_eq!(found.get("q"), Some("a b&c"));
        assert_eq!(found.get("empty"), None);
        assert_eq!(found.get("ü"), Some("1"));
    }
}
