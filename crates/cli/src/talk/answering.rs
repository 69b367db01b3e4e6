//! What answers: a provider, a server that speaks like one, a script, a recording.
//!
//! The catalogue's models are asked under its names. Behind another address a model may have any name: one that the
//! catalogue does not know is taken as it is, by stated assumptions, and without a price.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use contexture::catalogue::{CatalogueError, Encoding, ModelSpec, Prices};
use contexture::client::ClientError;
use contexture::llm::Model;
use contexture::{Catalogue, Format, HttpModel, Provider, Target};

use super::script;
use crate::again::option;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::input::Source;
use crate::printable::grouped;
use crate::say;

/// Tokens that a model is taken to hold of which nothing is known.
const WINDOW: u64 = 32_000;

/// The options.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct AnswerArguments {
    /// Another address that speaks the format, with models of its own: https://host.example/v1
    #[arg(long, value_name = "URL", conflicts_with_all = ["script", "replay"])]
    base_url: Option<String>,
    /// Answer from this file instead of asking a provider: a text, an object with calls or a whole body per line
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    script: Option<PathBuf>,
    /// Answer as recorded in this file: a request and its response per line
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

impl AnswerArguments {
    /// Whether nothing is said of it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.base_url.is_none() && self.script.is_none() && self.replay.is_none()
    }

    /// The format in which a model is asked: the one said, else that of the model's provider, else the one that most
    /// compatible servers speak; `anthropic` where no model is named.
    ///
    /// # Errors
    /// An unknown model, where models of any name cannot be.
    pub(crate) fn format(&self, to: Option<Format>, model: Option<&str>) -> Outcome<Format> {
        let Some(model) = model else {
            return Ok(to.unwrap_or(Format::Anthropic));
        };
        match Catalogue::builtin().resolve(model) {
            Ok(spec) => Ok(to.unwrap_or_else(|| Format::of_provider(&spec.provider))),
            Err(error) => {
                let format = to.unwrap_or(Format::OpenAiChat);
                let unknown = Failure::from(error);
                let hint = unknown.hint.clone().unwrap_or_default();
                match self.elsewhere(format) {
                    true => Ok(format),
                    false => Err(unknown.hint(format!(
                        "{hint}; a server with models of its own is named by --base-url"
                    ))),
                }
            }
        }
    }

    /// The models that can be asked, if they are not just the catalogue's. What is assumed of one is told.
    pub(crate) fn catalogue(
        &self,
        format: Format,
        model: Option<&str>,
        window: Option<u64>,
        globals: &Globals,
    ) -> Option<Catalogue> {
        let name = model.filter(|_| self.elsewhere(format))?;
        let known = Catalogue::builtin();
        let spec = match (
            Target::new(format, name).request(known),
            known.resolve(name),
        ) {
            (Err(CatalogueError::WrongProvider { .. }), Ok(spec)) => {
                // Somebody translates, and what they take for it nobody knows.
                let mut spec = under(name, spec);
                spec.provider.clear();
                spec.prices = Prices::default();
                spec
            }
            (_, Ok(spec)) => under(name, spec),
            (_, Err(_)) => {
                let held = window.unwrap_or(WINDOW);
                if !globals.quiet {
                    say::warning(&assumed(name, format, held, window.is_some()));
                }
                ModelSpec::new(name, held, Encoding::Other)
            }
        };
        Some(known.with_model(spec))
    }

    /// What answers.
    ///
    /// # Errors
    /// A file of the options cannot be read, or there is no key.
    pub(crate) fn model(&self, format: Format) -> Outcome<Arc<dyn Model>> {
        if let Some(path) = &self.script {
            return Ok(Arc::new(script::scripted(&Source::File(path.clone()))?));
        }
        if let Some(path) = &self.replay {
            return Ok(Arc::new(script::replayed(&Source::File(path.clone()))?));
        }
        let provider = match &self.base_url {
            Some(base) => Provider::from_env_at(format, base),
            None => Provider::from_env(format),
        };
        let provider = provider.map_err(|error| match &error {
            ClientError::NoKey { .. } => Failure::from(error).of(format),
            _ => error.into(),
        })?;
        Ok(Arc::new(HttpModel::new(provider)?))
    }

    /// The options, to be typed again where something is to go on: a script's next line is not its first, so that
    /// what follows is another file.
    pub(super) fn words(&self) -> Vec<String> {
        let Self {
            base_url,
            script,
            replay,
        } = self;
        let base = base_url.iter().map(|base| option("--base-url", base));
        let script = script.iter().map(|_| option("--script", "REST"));
        let replay = replay.iter();
        let replay = replay.map(|path| option("--replay", path.display()));
        base.chain(script).chain(replay).flatten().collect()
    }

    /// Whether somebody else than the provider answers.
    fn elsewhere(&self, format: Format) -> bool {
        let variables: &[&str] = match format {
            Format::OpenAiChat | Format::OpenAiResponses => &["OPENAI_BASE_URL"],
            Format::Anthropic => &["ANTHROPIC_BASE_URL"],
            Format::Gemini => &["GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"],
            Format::Ui | Format::Items => &[],
        };
        let set = |name: &&str| env::var_os(name).is_some_and(|base| !base.is_empty());
        !self.is_empty() || variables.iter().any(set)
    }
}

/// A model under the name that another address knows it by.
fn under(name: &str, spec: &ModelSpec) -> ModelSpec {
    let mut spec = spec.clone();
    name.clone_into(&mut spec.id);
    spec
}

fn assumed(name: &str, format: Format, window: u64, said: bool) -> String {
    let held = grouped(window);
    let held = match said {
        true => format!("a window of {held} tokens"),
        false => format!("a window of {held} tokens (--window says another)"),
    };
    format!(
        "{name:?} is not in the catalogue: asked in {format}, {held}, tokens are estimates, no price is known"
    )
}
