//! Which model, how much of its window, and what else it is told: options of every command that compiles.

use std::path::PathBuf;

use clap::Args;
use contexture::compile::BudgetCount;
use contexture::ir::{Fragment, Raw, parse_fragments};

use crate::input::InputSource;
use crate::options::parse_values::parse_tokens;
use crate::output::failure::{Failure, Outcome};
use crate::output::shell_command::option_with_value;

/// The options.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TargetArguments {
    /// The model
    #[arg(long, short)]
    pub(crate) model: Option<String>,
    /// Tokens the model can hold, its answer included: 16000, 16k; default: the model's
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub(crate) window: Option<u64>,
    /// Tokens kept free for the answer; default: the document's output limit, else an eighth of
    /// the window, at most what the model can write
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub(crate) reserve: Option<u64>,
    /// The count that the budget goes by: `likely` fills the window, at the risk that the provider refuses
    /// the request as too long; `upper` always fits and is the default
    #[arg(long, value_name = "COUNT", value_parser = parse_count)]
    pub(crate) count: Option<BudgetCount>,
    /// A top-level field of the request, as JSON: `--param temperature=0`; objects are merged
    #[arg(long = "param", value_name = "KEY=JSON", value_parser = parse_param)]
    pub(crate) params: Vec<(String, Raw)>,
    /// A file of fragments for the system prompt
    #[arg(long, value_name = "FILE")]
    system: Option<PathBuf>,
}

impl TargetArguments {
    /// The fragments for the system prompt.
    ///
    /// # Errors
    /// Their file cannot be read, or holds none.
    pub(crate) fn read_system_fragments(&self) -> Outcome<Vec<Fragment>> {
        let Some(path) = &self.system else {
            return Ok(Vec::new());
        };
        let source = InputSource::File(path.clone());
        let text = source.read_text()?;
        parse_fragments(&text).map_err(|error| Failure::from(error).with_context(&source))
    }

    /// The options, to be typed again.
    pub(crate) fn to_arguments(&self) -> Vec<String> {
        let Self {
            model,
            window,
            reserve,
            count,
            params,
            system,
        } = self;
        let model = model
            .iter()
            .map(|model| option_with_value("--model", model));
        let window = window
            .iter()
            .map(|tokens| option_with_value("--window", tokens));
        let reserve = reserve
            .iter()
            .map(|tokens| option_with_value("--reserve", tokens));
        let count = count
            .iter()
            .map(|count| option_with_value("--count", count.as_str()));
        let params = params.iter();
        let params =
            params.map(|(key, json)| option_with_value("--param", format!("{key}={}", json.get())));
        let system = system
            .iter()
            .map(|path| option_with_value("--system", path.display()));
        let all = model
            .chain(window)
            .chain(reserve)
            .chain(count)
            .chain(params);
        all.chain(system).flatten().collect()
    }
}

fn parse_count(word: &str) -> Result<BudgetCount, String> {
    let all = [BudgetCount::Likely, BudgetCount::Upper];
    let known = all.into_iter().find(|count| count.as_str() == word);
    known.ok_or_else(|| "expected `likely` or `upper`".to_owned())
}

/// `key=json`.
fn parse_param(text: &str) -> Result<(String, Raw), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("expected KEY=JSON, for instance temperature=0")?;
    let raw = Raw::parse(value).map_err(|_| {
        format!("the value of `{name}` is not JSON: text needs quotes, {name}='\"{value}\"'")
    })?;
    Ok((name.to_owned(), raw))
}
