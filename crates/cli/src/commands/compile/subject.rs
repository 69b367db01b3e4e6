//! What is compiled, as command lines say it: the source, the model, the budget.
//!
//! Not here: what becomes of the payload and of the report.

use std::borrow::Cow;
use std::sync::Arc;

use clap::Args;
use contexture::compile::{Contribution, PathItem};
use contexture::engine::PrepareOptions;
use contexture::{Format, render};

use crate::commands::compile::product::Product;
use crate::commands::compile::view::{of_conversation, of_transcript, path_of};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::input::Source;
use crate::layering::LayerArguments;
use crate::order::Order;
use crate::printable::grouped;
use crate::target::TargetArguments;
use crate::view::ViewArguments;
use crate::words::{render_format, session_format};
use crate::{database, say, session};

/// The options.
#[derive(Clone, Debug, Args)]
pub(crate) struct SubjectArguments {
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
pub(crate) enum Items {
    Wanted,
    NotWanted,
}

/// A subject, compiled.
#[derive(Debug)]
pub(crate) struct Subject {
    /// What it is called.
    pub(crate) title: String,
    /// What came of it.
    pub(crate) product: Product,
    /// The items it was made of, if they were wanted.
    pub(crate) path: Vec<PathItem>,
}

impl SubjectArguments {
    /// To whom, and how much.
    ///
    /// # Errors
    /// The file of fragments cannot be read, or holds none.
    pub(crate) fn order(&self, to: Option<Format>, view: &ViewArguments) -> Outcome<Order> {
        Ok(Order {
            to: to.unwrap_or(Format::Anthropic),
            model: self.target.model.clone(),
            window: self.target.window,
            reserve: self.target.reserve,
            params: self.target.params.clone(),
            system: self.target.system()?,
            renderer: Arc::from(self.renderer.renderer(render::Grouping::Off)),
            view: view.clone(),
        })
    }

    /// Compiles the source of this name: a file, standard input or a conversation.
    ///
    /// # Errors
    /// The source cannot be read, the model is not known, or the compiler refuses.
    pub(crate) fn compile(
        &self,
        name: &str,
        order: &Order,
        items: Items,
        globals: &Globals,
    ) -> Outcome<Subject> {
        if let Some((model, window)) = order.unknown().filter(|_| !globals.quiet) {
            say::warning(&format!(
                "{model:?} is not in the catalogue: a window of {} tokens, tokens are estimates, no price is known",
                grouped(window)
            ));
        }
        let Some(source) = self.file(name)? else {
            return self.stored(globals, name, order, items);
        };
        if !self.layers.is_empty() {
            let message = "--skills and --memory stand beside a stored conversation, not a file";
            return Err(
                Failure::usage(message).hint("`contexture import FILE` keeps it as a conversation")
            );
        }
        let opened = session::one(&source, self.from.as_deref(), self.session)?;
        let product = of_transcript(order, &opened.transcript, opened.written_in)?;
        Ok(Subject {
            title: source.stem().unwrap_or_else(|| "standard input".to_owned()),
            product,
            path: match items {
                Items::Wanted => PathItem::all(opened.transcript.items),
                Items::NotWanted => Vec::new(),
            },
        })
    }

    /// The file that is meant, if it is one and not a conversation.
    fn file(&self, name: &str) -> Outcome<Option<Source>> {
        let source = Source::from(name);
        let Source::File(path) = &source else {
            return Ok(Some(source));
        };
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
            return Err(crate::input::unreadable(path, &missing));
        }
        Ok(None)
    }

    fn stored(
        &self,
        globals: &Globals,
        name: &str,
        order: &Order,
        items: Items,
    ) -> Outcome<Subject> {
        if order.to == Format::Ui && !self.layers.is_empty() {
            let message = "--skills and --memory stand in requests, and UI messages are none";
            return Err(Failure::usage(message).hint("compile it --to a provider's format"));
        }
        let branch = self.branch.as_deref();
        crate::wait::for_it(async {
            let chat = database::conversation(globals, name, branch)
                .await
                .map_err(|failure| {
                    if failure.exit == Exit::NotFound && branch.is_none() {
                        failure.note(format!("and there is no file `{name}` either"))
                    } else {
                        failure
                    }
                })?;
            let chat = match order.catalogue() {
                Cow::Owned(catalogue) => database::among(&chat, catalogue).await?,
                Cow::Borrowed(_) => chat,
            };
            chat.set_layers(self.layers.layers(globals)?);
            let also: Vec<Contribution> = order.said().into_iter().collect();
            let target = order.target(None, None)?;
            if order.view.compacts() {
                chat.prepare(&target, &PrepareOptions::default()).await?;
            }
            let call = chat.compile_with(&target, &also).await?;
            let path = match (items, call.base()) {
                (Items::Wanted, Some(head)) => path_of(&chat, head).await?,
                _ => Vec::new(),
            };
            Ok(Subject {
                title: name.to_owned(),
                product: of_conversation(&chat, order, call).await?,
                path,
            })
        })
    }
}
