//! Provider metadata: what a part carries for one provider each, and what of it items have a field for.
//!
//! Known keys move into items' own fields, where the providers' formats find them; the rest stays
//! beside the part. Joining puts both together again. The provider name `contexture` is ours: it
//! carries what an item has and a UI part has no field for.

use std::collections::BTreeSet;

use contexture_ir::{Extra, Fields, Raw, quote_json};

use super::ui_only_fields::wire_fields;

/// Contexture's own name among the providers.
pub(super) const OWN: &str = "contexture";
/// Names under which OpenAI's models are served, the usual one first.
pub(super) const OPENAI: &[&str] = &["openai", "azure"];
/// Names under which Google's models are served, the usual one first.
pub(super) const GOOGLE: &[&str] = &["google", "vertex", "googleVertex"];
/// The name under which Anthropic's models are served.
pub(super) const ANTHROPIC: &[&str] = &["anthropic"];

/// A field of one format's items that a UI part carries as provider metadata.
struct MetadataLink {
    providers: &'static [&'static str],
    key: &'static str,
    format: &'static str,
    field: &'static str,
}

const LINKS: [MetadataLink; 2] = [
    MetadataLink {
        providers: GOOGLE,
        key: "thoughtSignature",
        format: "gemini",
        field: "thoughtSignature",
    },
    MetadataLink {
        providers: ANTHROPIC,
        key: "cacheControl",
        format: "anthropic",
        field: "cache_control",
    },
];

/// Provider name → key → value, in order.
#[derive(Debug, Default)]
pub(super) struct ProviderMetadata {
    providers: Vec<(String, Vec<(String, Raw)>)>,
    /// Whether there was any, and so an empty rest means something.
    untouched: bool,
}

impl ProviderMetadata {
    /// Reads a checked value; one with repeated keys is not cut, `None`.
    pub(super) fn parse(raw: &str) -> Option<Self> {
        let mut providers = Vec::new();
        // Repeated names cannot be written back one by one, so such metadata is left whole.
        for (name, value) in Fields::parse(raw).ok()?.iter() {
            let fields = Fields::parse(value.get()).ok()?;
            if has_duplicates(fields.iter().map(|(key, _)| key)) {
                return None;
            }
            let keys = fields
                .iter()
                .map(|(key, value)| (key.to_owned(), Raw::from(value)));
            providers.push((name.to_owned(), keys.collect::<Vec<_>>()));
        }
        if has_duplicates(providers.iter().map(|(name, _)| name.as_str())) {
            return None;
        }
        Some(Self {
            providers,
            untouched: true,
        })
    }

    /// Removes a string under the first provider name that has it; with that name.
    pub(super) fn take_string(
        &mut self,
        names: &[&'static str],
        key: &str,
    ) -> Option<(&'static str, String)> {
        let name = names.iter().copied().find(|name| {
            self.get_value(name, key)
                .is_some_and(|raw| raw.as_string().is_some())
        })?;
        let text = self.remove(name, key)?.as_string()?;
        Some((name, text))
    }

    pub(super) fn get_value(&self, name: &str, key: &str) -> Option<&Raw> {
        let (_, keys) = self.providers.iter().find(|(other, _)| other == name)?;
        let (_, value) = keys.iter().find(|(other, _)| other == key)?;
        Some(value)
    }

    /// Removes a value; a provider left without keys goes too.
    pub(super) fn remove(&mut self, name: &str, key: &str) -> Option<Raw> {
        let at = self.providers.iter().position(|(other, _)| other == name)?;
        let keys = &mut self.providers.get_mut(at)?.1;
        let slot = keys.iter().position(|(other, _)| other == key)?;
        let (_, value) = keys.remove(slot);
        if keys.is_empty() {
            self.providers.remove(at);
        }
        self.untouched = false;
        Some(value)
    }

    /// Sets a value.
    pub(super) fn set_value(&mut self, name: &str, key: &str, value: Raw) {
        // What was built here may be left out when it is empty; what was only read may not.
        self.untouched = false;
        let at = match self.providers.iter().position(|(other, _)| other == name) {
            Some(at) => at,
            None => {
                self.providers.push((name.to_owned(), Vec::new()));
                self.providers.len() - 1
            }
        };
        let Some((_, keys)) = self.providers.get_mut(at) else {
            return;
        };
        match keys.iter_mut().find(|(other, _)| other == key) {
            Some((_, old)) => *old = value,
            None => keys.push((key.to_owned(), value)),
        }
    }

    pub(super) fn set_string(&mut self, name: &str, key: &str, value: &str) {
        self.set_value(name, key, Raw::string(value));
    }

    /// Moves what other formats' items have a field for into their fields.
    pub(super) fn extract_linked_fields(&mut self, hints: &mut Extra, extra: &mut Extra) {
        // The first name that has the value counts, and the hint keeps which one it was.
        for link in &LINKS {
            let found = link
                .providers
                .iter()
                .find(|name| self.get_value(name, link.key).is_some());
            let Some((name, value)) =
                found.and_then(|name| Some((*name, self.remove(name, link.key)?)))
            else {
                continue;
            };
            record_alias(hints, link.providers, name);
            let mut fields = extra.wire_fields(link.format);
            fields.set(link.field, value);
            extra.set_wire_fields(link.format, fields);
        }
    }

    /// Does the reverse of [`ProviderMetadata::extract_linked_fields`].
    pub(super) fn insert_linked_fields(&mut self, hints: &Extra, extra: &Extra) {
        for link in &LINKS {
            let kept = wire_fields(extra, link.format);
            if let Some(value) = kept.as_ref().and_then(|kept| kept.get(link.field)) {
                let name = provider_alias(hints, link.providers);
                self.set_value(name, link.key, value.clone());
            }
        }
    }

    /// Returns what is left to be stored; `None` if everything found its field.
    pub(super) fn remaining_json(&self) -> Option<Raw> {
        (self.untouched || !self.providers.is_empty()).then(|| self.to_raw())
    }

    fn to_raw(&self) -> Raw {
        // Values go in as they came; only the names are quoted anew.
        let object = |members: Vec<String>| format!("{{{}}}", members.join(","));
        let providers = self.providers.iter().map(|(name, keys)| {
            let keys = keys
                .iter()
                .map(|(key, value)| format!("{}:{}", quote_json(key), value.get()));
            format!("{}:{}", quote_json(name), object(keys.collect()))
        });
        Raw::parse(object(providers.collect())).unwrap_or_else(|_| Raw::null())
    }
}

fn has_duplicates<'n>(mut names: impl Iterator<Item = &'n str>) -> bool {
    let mut seen = BTreeSet::new();
    !names.all(|name| seen.insert(name))
}

/// Remembers under which of several names a provider appeared, if not the usual one.
pub(super) fn record_alias(hints: &mut Extra, names: &[&'static str], used: &str) {
    if let Some(usual) = names.first()
        && *usual != used
    {
        hints.set(&format!("~{usual}"), Raw::string(used));
    }
}

/// The name under which a provider is to appear.
pub(super) fn provider_alias(hints: &Extra, names: &[&'static str]) -> &'static str {
    let usual = names.first().copied().unwrap_or_default();
    let used = hints
        .get(&format!("~{usual}"))
        .and_then(Raw::as_string)
        .and_then(|used| names.iter().copied().find(|name| *name == used));
    used.unwrap_or(usual)
}
