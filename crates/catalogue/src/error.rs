//! What can go wrong with a catalogue.

/// An error of the catalogue, by what the caller would do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// No model has this name: pick another, or describe the model.
    #[error("unknown model {name:?}{}; name its window, or describe it in a models file", suggest(.similar))]
    UnknownModel {
        /// The name as it was given, cut to 200 characters.
        name: String,
        /// The most similar known names, nearest first.
        similar: Vec<String>,
    },
    /// The model is not offered behind the format asked for: pick the format or another model.
    #[error(
        "{model} is a model of {provider}, which takes no {format} requests; ask in {native}, or describe it under another provider in a models file if a gateway translates"
    )]
    WrongProvider {
        /// The model's id.
        model: String,
        /// Whose it is.
        provider: String,
        /// The format asked for.
        format: &'static str,
        /// A format the provider takes.
        native: &'static str,
    },
    /// The text is not JSON or TOML of the expected form.
    #[error("the models file is not readable as {format}")]
    Syntax {
        /// `JSON` or `TOML`.
        format: &'static str,
        /// What the parser says, with line and column.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// One model of the file cannot be used.
    #[error("model {model:?} in the models file: {reason}")]
    InvalidModel {
        /// The model's id, or its place in the file if it has none.
        model: String,
        /// What is missing or wrong, and what is expected.
        reason: String,
    },
}

fn suggest(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!(" (similar: {})", near.join(", ")),
    }
}
