//! The options: whose conversation, which model, within which limits.

use std::sync::Arc;

use clap::Args;
use contexture::engine::{BackgroundSummary, PrepareOptions, Strategy};
use contexture::models::Model;
use contexture::runs::{Agent, Money, RunBudget};
use contexture::tools::Policy;
use contexture::{Conversation, Engine, EngineError, Format, Target};

use crate::chat::model::AnswerArguments;
use crate::chat::output::RunPrinter;
use crate::chat::toolbox::build_toolbox;
use crate::database::{self, WhenMissing};
use crate::options::compile_request::CompileSettings;
use crate::options::conversation::ConversationArguments;
use crate::options::globals::Globals;
use crate::options::history::ViewArguments;
use crate::options::layers::LayerArguments;
use crate::options::parse_values::{parse_tokens, provider_format};
use crate::options::target::TargetArguments;
use crate::output::failure::{Failure, Outcome};
use crate::output::shell_command::option_with_value;

/// What runs of the command line are called in lists.
const AGENT: &str = "contexture";
/// Digits of the name of a new conversation.
const NAME_DIGITS: usize = 12;

/// The options.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentArguments {
    /// The format in which the model is asked; default: that of the model's provider; openai-chat of a
    /// model that only a server of its own knows; else anthropic
    #[arg(long, value_parser = provider_format())]
    to: Option<Format>,
    #[command(flatten)]
    target: TargetArguments,
    #[command(flatten)]
    answer: AnswerArguments,
    #[command(flatten)]
    layers: LayerArguments,
    /// Ask before this tool is called, `*` for any; may be repeated. `run` and `resume` leave it to
    /// `resume --allow` or `--deny`, `chat` asks at once
    #[arg(long, value_name = "TOOL")]
    ask: Vec<String>,
    /// Tokens a run may use, read and written: 50000, 50k
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    budget_tokens: Option<u64>,
    /// Dollars a run may cost, as far as prices are known: 0.50
    #[arg(long, value_name = "DOLLARS")]
    budget_cost: Option<Money>,
    /// Have the model sum up the older part of a long conversation in the background, before it no longer fits; the summary
    /// goes before the manifest. The command ends once a summary that it began is stored
    #[arg(long)]
    summaries: bool,
    /// Steps a run may take: each answer is one, and the calls of an answer are one
    #[arg(long, value_name = "COUNT")]
    max_steps: Option<u64>,
}

impl AgentArguments {
    /// Opens the conversation that is named, or a new one, on the named branch or the active one, with the options'
    /// layers and fragments.
    ///
    /// # Errors
    /// The store's, files of the options cannot be read, or the conversation is about another resource.
    pub(crate) async fn open_conversation(
        &self,
        engine: &Engine,
        place: &ConversationArguments,
        globals: &Globals,
    ) -> Outcome<Conversation> {
        let (system, layers) = (
            self.target.read_system_fragments()?,
            self.layers.build_layers(globals)?,
        );
        let ConversationArguments {
            conversation,
            branch,
            resource,
        } = place;
        let id = conversation
            .clone()
            // Named before it is opened, so that it can be shown and resumed.
            .unwrap_or_else(|| new_conversation_name(engine));
        let mut builder = engine.conversation(&id);
        builder = builder.owner(database::resolve_owner(globals)?.as_str());
        if let Some(branch) = branch {
            builder = builder.branch(branch);
        }
        if let Some(resource) = resource {
            builder = builder.resource(resource);
        }
        let chat = builder.open().await?;
        if let Some(resource) = resource {
            check_resource(&chat, resource).await?;
        }
        if !system.is_empty() {
            chat.set(system)?;
        }
        chat.set_layers(layers);
        Ok(chat)
    }

    /// The options with which `resume` goes on with what these began. Its budget a run keeps.
    pub(crate) fn to_arguments(&self, globals: &Globals) -> Vec<String> {
        let Self {
            to,
            target,
            answer,
            layers,
            ask,
            summaries,
            // The run's own budget is stored with it. Every field is named, so that a new option is
            // not forgotten here.
            budget_tokens: _,
            budget_cost: _,
            max_steps: _,
        } = self;
        let to = to.iter().map(|format| option_with_value("--to", format));
        let ask = ask.iter().map(|tool| option_with_value("--ask", tool));
        let mut words: Vec<String> = to.flatten().collect();
        words.extend(target.to_arguments());
        words.extend(layers.to_arguments());
        words.extend(ask.flatten());
        words.extend(summaries.then(|| "--summaries".to_owned()));
        words.extend(answer.to_arguments());
        words.extend(globals.to_arguments());
        words
    }

    /// The options about layers.
    pub(crate) const fn layer_arguments(&self) -> &LayerArguments {
        &self.layers
    }

    /// The agent of a conversation, watched by `teller`.
    ///
    /// # Errors
    /// An unknown model.
    pub(crate) fn build_agent(
        &self,
        chat: &Conversation,
        model: Arc<dyn Model>,
        teller: Arc<RunPrinter>,
    ) -> Outcome<Agent> {
        let budget = RunBudget {
            tokens: self.budget_tokens,
            cost: self.budget_cost,
            steps: self.max_steps,
            ..RunBudget::default()
        };
        let asked = self.ask.iter();
        let policy = asked.fold(Policy::default(), |policy, tool| policy.ask(tool.as_str()));
        let mut strategies = vec![Strategy::Manifest];
        if self.summaries {
            let summary = BackgroundSummary::by_own_model(Arc::clone(&model));
            strategies.insert(0, Strategy::Summary(summary));
        }
        let agent = Agent::new(AGENT, model, self.resolve_target()?);
        Ok(agent
            .with_prepare_options(PrepareOptions {
                strategies,
                ..PrepareOptions::default()
            })
            .with_tools(build_toolbox(chat, policy)?)
            .map_err(|error| Failure::usage(error.to_string()))?
            .with_budget(budget)
            // A person looks on, and `--max-steps` sets a limit.
            .with_max_answers(None)
            .with_observer(move |event: &_| teller.print_event(event)))
    }

    /// What requests are compiled for.
    ///
    /// # Errors
    /// An unknown model.
    pub(crate) fn resolve_target(&self) -> Outcome<Target> {
        let to = self.resolve_format()?;
        let order = CompileSettings {
            to,
            model: self.target.model.clone(),
            window: self.target.window,
            reserve: self.target.reserve,
            count: self.target.count,
            params: self.target.params.clone(),
            // The fragments are set on the conversation itself, not on the target.
            system: Vec::new(),
            renderer: Arc::new(contexture::XmlRenderer::default()),
            policy: ViewArguments::default().resolve_policy(to)?,
        };
        order.resolve_target(None, None)
    }

    /// What answers: a script, a recording, or a provider.
    ///
    /// # Errors
    /// A file of the options cannot be read, the model is not known, or there is no key.
    pub(crate) fn build_model(&self) -> Outcome<Arc<dyn Model>> {
        self.answer.build_model(self.resolve_format()?)
    }

    /// Opens the database, with the models that can be asked.
    ///
    /// # Errors
    /// The store's, or an unknown model.
    pub(crate) async fn open_engine(
        &self,
        missing: WhenMissing,
        globals: &Globals,
    ) -> Outcome<Engine> {
        let (format, model) = (self.resolve_format()?, self.target.model.as_deref());
        // After the format: a wrong model name is told without making a database.
        let engine = database::open_engine(globals, missing).await?;
        let window = self.target.window;
        Ok(
            match self
                .answer
                .catalogue_with_model(format, model, window, globals)
            {
                Some(catalogue) => engine.with_catalogue(catalogue),
                None => engine,
            },
        )
    }

    fn resolve_format(&self) -> Outcome<Format> {
        self.answer
            .resolve_format(self.to, self.target.model.as_deref())
    }
}

/// Checks that a conversation is about this resource.
///
/// The builder's resource is for a new conversation. One that exists keeps its own, and a turn about somebody else must
/// not end up in it.
async fn check_resource(chat: &Conversation, resource: &str) -> Outcome<()> {
    let store = chat.engine().store();
    let record = store.load_conversation(chat.owner(), chat.id()).await?;
    if record.resource.as_deref() == Some(resource) {
        return Ok(());
    }
    Err(EngineError::OtherResource {
        conversation: record.id,
        resource: record.resource,
    }
    .into())
}

/// A name that nobody has given yet.
fn new_conversation_name(engine: &Engine) -> String {
    let id = engine.new_run_id().to_string();
    // Ids of one moment begin alike; they end by chance.
    let end = id
        .get(id.len().saturating_sub(NAME_DIGITS)..)
        .unwrap_or(&id);
    format!("chat-{end}")
}
