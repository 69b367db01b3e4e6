//! The table of models and the ways to ask it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::aliases::{candidate_names, normalize_name, strip_date_suffix};
use crate::error::CatalogueError;
use crate::media::MediaRules;
use crate::models_file::{ModelsFile, merge_model_entry};
use crate::spec::ModelSpec;
use contexture_text::similar_by_edit_distance;

const BUILTIN: &str = include_str!("../data/models.json");

/// The general model of each provider: the one that is meant where none is named. Changed only with a new version.
const GENERAL_MODELS: [(&str, &str); 3] = [
    ("anthropic", "claude-sonnet-5"),
    ("google", "gemini-3.5-flash"),
    ("openai", "gpt-5.4"),
];

/// A table of models, immutable once made.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    models: Vec<ModelSpec>,
    media: BTreeMap<String, MediaRules>,
    /// Ids as written → index into `models`.
    ids: BTreeMap<String, usize>,
    /// Normal forms of ids and aliases → index into `models`.
    names: BTreeMap<String, usize>,
    /// Normal forms of ids without their date → the newest such model.
    undated: BTreeMap<String, usize>,
}

impl Catalogue {
    /// The models that came with this version of the crate; read from the compiled-in table on first use.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| {
            // A damaged table is a bug of this crate and caught by its tests; a release falls back to an empty
            // one.
            let catalogue = Self::default().with_json(BUILTIN);
            debug_assert!(catalogue.is_ok(), "data/models.json is damaged");
            catalogue.unwrap_or_default()
        })
    }

    /// This table with a models file in JSON laid over it; what the file says wins.
    ///
    /// A file is `{"media"?: {name: rules}, "models"?: [{"id": …, …}]}` with the fields of [`ModelSpec`]. An entry with a
    /// known id changes only the fields it names: objects are merged, lists replaced, `null` takes a field away. An
    /// entry with a new id needs `context_window` and `encoding`, or `"like": "<known model>"` to start as a copy.
    /// `"media"` of a model is rules or the name of rules. Errors name the line, or the model and the field.
    pub fn with_json(&self, text: &str) -> Result<Self, CatalogueError> {
        self.with_models_file(ModelsFile::from_json(text)?)
    }

    /// This table with a models file in TOML laid over it: `[[models]]` tables with the same fields as in JSON. Needs the
    /// feature `toml`, which is on by default.
    #[cfg(feature = "toml")]
    pub fn with_toml(&self, text: &str) -> Result<Self, CatalogueError> {
        self.with_models_file(ModelsFile::from_toml(text)?)
    }

    /// This table with one more model, which replaces any of the same id.
    #[must_use]
    pub fn with_model(&self, model: ModelSpec) -> Self {
        let mut catalogue = self.clone();
        catalogue.upsert_model(model);
        catalogue.rebuild_indexes();
        catalogue
    }

    /// The model of a name, by the rules of resolution: exact names, then routes and regions (`models/…`,
    /// `anthropic/…`, `us.anthropic.…`), then dated snapshots (`…-20260901`, `…-2025-11-13`, `…-latest`).
    ///
    /// An unknown name is [`CatalogueError::UnknownModel`] with up to three similar names.
    pub fn resolve(&self, name: &str) -> Result<&ModelSpec, CatalogueError> {
        let candidates = candidate_names(name);
        self.find_model(&candidates).ok_or_else(|| {
            // The last candidate is the most reduced form, which is closest to what ids in the table look like.
            let literal = candidates.last().map_or("", String::as_str);
            CatalogueError::UnknownModel {
                // A name may be a whole prompt pasted into the wrong field; errors and logs stay short.
                name: name.chars().take(200).collect(),
                similar: similar_by_edit_distance(
                    literal,
                    self.models.iter().map(|model| model.id.as_str()),
                ),
            }
        })
    }

    /// The general model of a provider, which is meant where none is named; `None` for a provider without one.
    #[must_use]
    pub fn general_model(provider: &str) -> Option<&'static str> {
        let mut models = GENERAL_MODELS.into_iter();
        models
            .find(|(name, _)| *name == provider)
            .map(|(_, model)| model)
    }

    /// All models, by provider and id for the builtin ones, the user's new ones after them.
    pub fn models(&self) -> impl ExactSizeIterator<Item = &ModelSpec> {
        self.models.iter()
    }

    /// Media rules by name, as models files refer to them.
    #[must_use]
    pub fn media_rules(&self, name: &str) -> Option<&MediaRules> {
        self.media.get(name)
    }

    fn find_model(&self, candidates: &[String]) -> Option<&ModelSpec> {
        // Every candidate is tried as an exact name before any is tried without its date: a literal match
        // always wins.
        let exact = candidates.iter().find_map(|name| self.names.get(name));
        let index = exact.or_else(|| candidates.iter().find_map(|name| self.undated.get(name)))?;
        self.models.get(*index)
    }

    fn with_models_file(&self, document: ModelsFile) -> Result<Self, CatalogueError> {
        let mut catalogue = self.clone();
        catalogue.media.extend(document.media);
        // One by one, because an entry may be `like` an earlier entry of the same file.
        for (place, entry) in document.models.into_iter().enumerate() {
            let id = entry.get("id").and_then(|id| id.as_str());
            let model = id.map_or_else(|| format!("number {}", place + 1), str::to_owned);
            let known = id.and_then(|id| catalogue.ids.get(id));
            let known = known.and_then(|&index| catalogue.models.get(index));
            let spec = merge_model_entry(known, entry, &catalogue.media, |name| {
                let earlier = catalogue.ids.get(name);
                earlier
                    // Entries of this file come first, then the table being extended: the file sees its own
                    // changes.
                    .and_then(|&index| catalogue.models.get(index))
                    .or_else(|| self.find_model(&candidate_names(name)))
                    .cloned()
            })
            .map_err(|reason| CatalogueError::InvalidModel { model, reason })?;
            catalogue.upsert_model(spec);
        }
        catalogue.rebuild_indexes();
        Ok(catalogue)
    }

    fn upsert_model(&mut self, model: ModelSpec) {
        let known = self.ids.get(&model.id).copied();
        match known.and_then(|index| self.models.get_mut(index)) {
            Some(slot) => *slot = model,
            None => {
                self.ids.insert(model.id.clone(), self.models.len());
                self.models.push(model);
            }
        }
    }

    /// Rebuilds the indexes. Ids come before aliases and later models before earlier ones, so that what a user adds is
    /// found first.
    fn rebuild_indexes(&mut self) {
        self.names.clear();
        self.undated.clear();
        // Aliases before ids: an id that equals another model's alias overwrites it and is found by its own
        // name.
        for (index, model) in self.models.iter().enumerate() {
            for alias in &model.aliases {
                self.names.insert(normalize_name(alias), index);
            }
        }
        for (index, model) in self.models.iter().enumerate() {
            let name = normalize_name(&model.id);
            if let Some(base) = strip_date_suffix(&name) {
                // Dates in ids sort as text. A tie leaves the earlier entry.
                let newer = self.undated.get(base).is_none_or(|&other| {
                    self.models
                        .get(other)
                        .is_none_or(|other| normalize_name(&other.id) < name)
                });
                if newer {
                    self.undated.insert(base.to_owned(), index);
                }
            }
            self.names.insert(name, index);
        }
    }
}
