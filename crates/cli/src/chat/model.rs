//! What answers: a provider, a server that speaks like one, a script, a recording.
//!
//! The catalogue's models are asked under its names. Behind another address a model may have any name: one that the
//! catalogue does not know is taken as it is, by stated assumptions, and without a price.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use contexture::catalogue::{CatalogueError, Encoding, ModelSpec, Prices};
use contexture::models::Model;
use contexture::models_http::{ClientError, HttpModel, Provider};
use contexture::{Catalogue, Format, Target};

use crate::chat::scripted_model;
use crate::input::InputSource;
use crate::options::globals::Globals;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::group_thousands;
use crate::output::shell_command::option_with_value;
use crate::output::write;

/// Tokens that a model is taken to hold of which nothing is known.
const ASSUMED_WINDOW: u64 = 32_000;

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
    pub(crate) fn resolve_format(
        &self,
        to: Option<Format>,
        model: Option<&str>,
    ) -> Outcome<Format> {
        let Some(model) = model else {
            return Ok(to.unwrap_or(Format::DEFAULT_TARGET));
        };
        match Catalogue::builtin().resolve(model) {
            Ok(spec) => Ok(to.unwrap_or_else(|| Format::of_provider(&spec.provider))),
            // Compatible servers have models of their own names, so an unknown name is an error
            // only where the provider itself is asked.
            Err(error) => {
                let format = to.unwrap_or(Format::COMPATIBLE);
                let unknown = Failure::from(error);
                let hint = unknown.hint.clone().unwrap_or_default();
                match self.has_provider_override(format) {
                    true => Ok(format),
                    false => Err(unknown.with_hint(format!(
                        "{hint}; a server with models of its own is named by --base-url"
                    ))),
                }
            }
        }
    }

    /// The models that can be asked, if they are not just the catalogue's. What is assumed of one is told.
    pub(crate) fn catalogue_with_model(
        &self,
        format: Format,
        model: Option<&str>,
        window: Option<u64>,
        globals: &Globals,
    ) -> Option<Catalogue> {
        // The provider's own address has only models that the catalogue knows.
        let name = model.filter(|_| self.has_provider_override(format))?;
        let known = Catalogue::builtin();
        let spec = match (
            Target::new(format, name).build_request(known),
            known.resolve(name),
        ) {
            (Err(CatalogueError::WrongProvider { .. }), Ok(spec)) => {
                // Somebody translates, and what they take for it nobody knows.
                let mut spec = spec_with_id(name, spec);
                spec.provider.clear();
                spec.prices = Prices::default();
                spec
            }
            (_, Ok(spec)) => spec_with_id(name, spec),
            (_, Err(_)) => {
                let held = window.unwrap_or(ASSUMED_WINDOW);
                if !globals.quiet {
                    write::print_warning(&assumption_warning(name, format, held, window.is_some()));
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
    pub(crate) fn build_model(&self, format: Format) -> Outcome<Arc<dyn Model>> {
        if let Some(path) = &self.script {
            return Ok(Arc::new(scripted_model::load_scripted_model(
                &InputSource::File(path.clone()),
            )?));
        }
        if let Some(path) = &self.replay {
            return Ok(Arc::new(scripted_model::load_replay_model(
                &InputSource::File(path.clone()),
            )?));
        }
        // The option stands over the environment's address.
        let provider = match &self.base_url {
            Some(base) => Provider::from_env_with_base_url(format, base),
            None => Provider::from_env(format),
        };
        let provider = provider.map_err(|error| match &error {
            ClientError::NoKey { .. } => Failure::from(error).with_context(format),
            _ => error.into(),
        })?;
        Ok(Arc::new(HttpModel::new(provider)?))
    }

    /// The options, to be typed again where something is to go on: a script's next line is not its first, so that
    /// what follows is another file.
    pub(super) fn to_arguments(&self) -> Vec<String> {
        let Self {
            base_url,
            script,
            replay,
        } = self;
        let base = base_url
            .iter()
            .map(|base| option_with_value("--base-url", base));
        // A script is read from its first line again; what was used up has to be cut off first.
        let script = script.iter().map(|_| option_with_value("--script", "REST"));
        let replay = replay.iter();
        let replay = replay.map(|path| option_with_value("--replay", path.display()));
        base.chain(script).chain(replay).flatten().collect()
    }

    /// Whether somebody else than the provider answers.
    fn has_provider_override(&self, format: Format) -> bool {
        // The variables that the client reads too.
        let profile = format.spec().http();
        let variables = profile.map_or(&[][..], |profile| profile.base_url_variables);
        let set = |name: &&str| env::var_os(name).is_some_and(|base| !base.is_empty());
        // Scripts and recordings count: they answer for any name.
        !self.is_empty() || variables.iter().any(set)
    }
}

/// A model under the name that another address knows it by.
fn spec_with_id(name: &str, spec: &ModelSpec) -> ModelSpec {
    let mut spec = spec.clone();
    name.clone_into(&mut spec.id);
    spec
}

fn assumption_warning(name: &str, format: Format, window: u64, said: bool) -> String {
    let held = group_thousands(window);
    let held = match said {
        true => format!("a window of {held} tokens"),
        false => format!("a window of {held} tokens (--window says another)"),
    };
    format!(
        "{name:?} is not in the catalogue: asked in {format}, {held}, tokens are estimates, no price is known"
    )
}
