//! The model meant where none is named.
//!
//! A document that says which model it was written for keeps it, if it is compiled for its own
//! format. Otherwise it is the provider's general model, which the catalogue names, as `docs/cli.md` does.

use contexture::Conversation;
use contexture::catalogue::Catalogue;
use contexture::wire::Format;

use crate::output::failure::Outcome;

/// The general model behind a format: its provider's, or that of the default target for a format without a provider.
pub(crate) fn default_model(format: Format) -> &'static str {
    [format, Format::DEFAULT_TARGET]
        .into_iter()
        .filter_map(catalogue_provider)
        .find_map(Catalogue::general_model)
        .unwrap_or_default()
}

/// The provider whose hosts speak a format: its own, or that of another format of the same hosts.
fn catalogue_provider(format: Format) -> Option<&'static str> {
    let spec = format.spec();
    let own = spec.identity().catalogue_provider;
    own.or_else(|| {
        let hosts = spec.http()?.upstream;
        let mut others = Format::PROVIDERS.into_iter().map(Format::spec);
        others.find_map(|other| {
            let is_same = other.http().is_some_and(|http| http.upstream == hosts);
            other.identity().catalogue_provider.filter(|_| is_same)
        })
    })
}

/// The model of a stored conversation's newest answer, with the format it was asked in, else that of its provider; `None` if
/// no answer names one that is known.
///
/// # Errors
/// The store's.
pub(crate) async fn load_last_model(chat: &Conversation) -> Outcome<Option<(String, Format)>> {
    let catalogue = Catalogue::builtin();
    let last = chat.last_target().await?;
    let known = last.filter(|last| catalogue.resolve(&last.model).is_ok());
    Ok(known.map(|last| {
        let format = last.request_format(catalogue);
        (last.model, format)
    }))
}

/// The model of a stored conversation's newest answer, if it is offered in `format`.
///
/// # Errors
/// The store's.
pub(crate) async fn load_last_model_for(
    chat: &Conversation,
    format: Format,
) -> Outcome<Option<String>> {
    let Some(model) = chat.last_model().await? else {
        return Ok(None);
    };
    let known = Catalogue::builtin().resolve(&model);
    // UI messages are no request, so any model may have been meant.
    let is_offered =
        known.is_ok_and(|spec| format == Format::Ui || format.is_offered_for(&spec.provider));
    Ok(is_offered.then_some(model))
}

/// The model for `format`: the one named, else the document's own, else the general one.
pub(crate) fn choose_model(
    named: Option<&str>,
    own: Option<&str>,
    written_in: Option<Format>,
    format: Format,
) -> String {
    if let Some(named) = named {
        return named.to_owned();
    }
    // A model of another provider, or one nobody knows, would only be an error here.
    let own =
        own.filter(|own| written_in == Some(format) && Catalogue::builtin().resolve(own).is_ok());
    own.unwrap_or(default_model(format)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_models_are_known_and_offered_in_the_format() {
        for format in Format::PROVIDERS {
            let spec = Catalogue::builtin().resolve(default_model(format)).unwrap();
            let is_offered = format.is_offered_for(&spec.provider);
            assert!(is_offered, "{format}: {}", spec.id);
        }
    }

    #[test]
    fn the_documents_model_counts_only_in_its_own_format() {
        let check = |named, own, written_in, expected: &str| {
            assert_eq!(
                choose_model(named, own, written_in, Format::Anthropic),
                expected
            );
        };
        let anthropic = Some(Format::Anthropic);
        check(Some("x"), Some("claude-opus-5"), anthropic, "x");
        check(None, Some("claude-opus-5"), anthropic, "claude-opus-5");
        check(
            None,
            Some("claude-opus-5"),
            Some(Format::Ui),
            "claude-sonnet-5",
        );
        check(None, Some("nobody-knows"), anthropic, "claude-sonnet-5");
        check(None, None, None, "claude-sonnet-5");
    }
}
