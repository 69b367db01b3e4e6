//! What is compiled, as command lines say it: the source, the model, the budget.
//!
//! Not here: what becomes of the payload and of the report.

use std::borrow::Cow;
use std::sync::Arc;

use clap::Args;
use contexture::compile::PathItem;
use contexture::engine::ToolFilter;
use contexture::ir::Transcript;
use contexture::{CompileOptions, Format, render};

use crate::commands::compile::compile_output::CompileOutput;
use crate::commands::compile::view::{compile_document, conversation_output, load_path_items};
use crate::database;
use crate::input::InputSource;
use crate::options::compile_request::CompileSettings;
use crate::options::default_model;
use crate::options::globals::Globals;
use crate::options::history::ViewArguments;
use crate::options::layers::LayerArguments;
use crate::options::parse_values::{render_format, session_format};
use crate::options::target::TargetArguments;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::group_thousands;
use crate::output::write;
use crate::session;

/// The options.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArguments {
    /// The format of the file; default: detected
    #[arg(long, value_parser = session_format())]
    pub(super) from: Option<String>,
    #[command(flatten)]
    target: TargetArguments,
    /// The format those fragments are rendered in
    #[arg(long, value_parser = render_format(), default_value = "xml")]
    renderer: render::Format,
    /// The conversation's branch; default: the active one
    #[arg(long)]
    branch: Option<String>,
    /// Which session of a file that holds several, from 1
    #[arg(long, value_name = "NUMBER")]
    session: Option<usize>,
    #[command(flatten)]
    layers: LayerArguments,
}

/// Whether the items are wanted beside what was compiled of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncludeItems {
    Yes,
    No,
}

/// A subject, compiled.
#[derive(Debug)]
pub(crate) struct CompiledSource {
    /// What it is called.
    pub(crate) title: String,
    /// What came of it.
    pub(crate) output: CompileOutput,
    /// The items it was made of, if they were wanted.
    pub(crate) path: Vec<PathItem>,
}

impl SourceArguments {
    /// To whom, and how much.
    ///
    /// # Errors
    /// The file of fragments cannot be read, or holds none.
    pub(crate) fn compile_settings(
        &self,
        to: Option<Format>,
        view: &ViewArguments,
    ) -> Outcome<CompileSettings> {
        let to = to.unwrap_or(Format::DEFAULT_TARGET);
        Ok(CompileSettings {
            to,
            model: self.target.model.clone(),
            window: self.target.window,
            reserve: self.target.reserve,
            count: self.target.count,
            params: self.target.params.clone(),
            system: self.target.read_system_fragments()?,
            renderer: Arc::from(self.renderer.renderer(render::Grouping::Off)),
            policy: view.resolve_policy(to)?,
        })
    }

    /// Compiles the source of this name: a file, standard input or a conversation.
    ///
    /// # Errors
    /// The source cannot be read, the model is not known, or the compiler refuses.
    pub(crate) fn compile_source(
        &self,
        name: &str,
        order: &CompileSettings,
        items: IncludeItems,
        globals: &Globals,
    ) -> Outcome<CompiledSource> {
        // Files go first: a name with a file of that name means the file.
        let Some(source) = self.find_file(name)? else {
            warn_of_unknown_model(order, globals);
            return self.compile_stored(globals, name, order, items);
        };
        if !self.layers.is_empty() {
            let message = "--skills and --memory stand beside a stored conversation, not a file";
            return Err(Failure::usage(message)
                .with_hint("`contexture import FILE` keeps it as a conversation"));
        }
        let opened = session::read_session(&source, self.from.as_deref(), self.session)?;
        let order = order.for_document(&opened.transcript, opened.written_in);
        warn_of_unknown_model(&order, globals);
        let product = compile_document(&order, &opened.transcript, opened.written_in)?;
        Ok(CompiledSource {
            title: source
                .file_stem()
                .unwrap_or_else(|| "standard input".to_owned()),
            output: product,
            path: match items {
                IncludeItems::Yes => PathItem::from_items(opened.transcript.items),
                // Items are needed for their verdicts only; otherwise nothing is hashed and kept
                // for them.
                IncludeItems::No => Vec::new(),
            },
        })
    }

    /// The file that is meant, if it is one and not a conversation.
    fn find_file(&self, name: &str) -> Outcome<Option<InputSource>> {
        let source = InputSource::from(name);
        let InputSource::File(path) = &source else {
            return Ok(Some(source));
        };
        // Files have no branches, so the name is a conversation's, even where a file is called so.
        if self.branch.is_some() {
            return Ok(None);
        }
        if path.exists() {
            return Ok(Some(source));
        }
        // What has a directory or a known ending is a file that is missing, not a conversation.
        let ending = path
            .extension()
            .and_then(|ending| ending.to_str())
            .unwrap_or_default();
        let looks_like_a_file =
            name.contains(['/', '\\']) || ["json", "jsonl", "traj", "txt"].contains(&ending);
        if looks_like_a_file || self.from.is_some() {
            let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(crate::input::unreadable_file(path, &missing));
        }
        Ok(None)
    }

    fn compile_stored(
        &self,
        globals: &Globals,
        name: &str,
        order: &CompileSettings,
        items: IncludeItems,
    ) -> Outcome<CompiledSource> {
        if order.to == Format::Ui && !self.layers.is_empty() {
            let message = "--skills and --memory stand in requests, and UI messages are none";
            return Err(Failure::usage(message).with_hint("compile it --to a provider's format"));
        }
        let branch = self.branch.as_deref();
        crate::runtime::block_on(async {
            let chat = database::open_conversation(globals, name, branch)
                .await
                .map_err(|failure| {
                    if failure.exit == Exit::NotFound && branch.is_none() {
                        failure.with_note(format!("and there is no file `{name}` either"))
                    } else {
                        failure
                    }
                })?;
            let chat = match order.catalogue() {
                // Opened again only where a model was added to the catalogue.
                Cow::Owned(catalogue) => database::reopen_with_catalogue(&chat, catalogue).await?,
                Cow::Borrowed(_) => chat,
            };
            chat.set_layers(self.layers.build_layers(globals)?);
            chat.set_renderer(Arc::clone(&order.renderer));
            let last = default_model::load_last_model_for(&chat, order.to).await?;
            let target = order.resolve_target(last.as_deref(), Some(order.to))?;
            let filter_tools = |request: &mut Transcript, path: &[PathItem]| {
                let items = path.iter().map(|one| &*one.item);
                order.policy.tools.retain_offered(request, items);
            };
            let options = CompileOptions {
                contributions: &order.contributions(&target)?,
                stored_tools: Some(ToolFilter(&filter_tools)),
                ..CompileOptions::default()
            };
            // Compactions are stored, and the call shows them.
            let call = match order.policy.prepare_options(None) {
                Some(how) => chat.prepare_with(&target, &how, options).await?.call,
                None => chat.compile_with(&target, options).await?,
            };
            let path = match (items, call.base()) {
                (IncludeItems::Yes, Some(head)) => load_path_items(&chat, head).await?,
                _ => Vec::new(),
            };
            Ok(CompiledSource {
                title: name.to_owned(),
                output: conversation_output(&chat, order, call).await?,
                path,
            })
        })
    }
}

/// Tells that a model is compiled for of which only the window is known.
fn warn_of_unknown_model(order: &CompileSettings, globals: &Globals) {
    if let Some((model, window)) = order.unknown_model().filter(|_| !globals.quiet) {
        write::print_warning(&format!(
            "{model:?} is not in the catalogue: a window of {} tokens, tokens are estimates, no price is known",
            group_thousands(window)
        ));
    }
}
