//! A server of its own for each run of a task, with a store in memory, and the figures of its record of calls.
//!
//! Not here: who calls it.

use std::net::{Ipv4Addr, SocketAddr};

use contexture::catalogue::Money;
use contexture::store::{CallOutcome, CallRecord, ListCalls};
use contexture::{Engine, Owner};
use contexture_server::{App, Config, Server};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use toml::{Table, Value};

use crate::error::EvalError;
use crate::policy::PolicyUnderTest;

/// Calls of one page of the record.
const PAGE: usize = 500;

/// The word by which the record says that a limit of dollars stopped a call.
const SPEND_LIMIT: &str = "spend_limit";

/// Where the provider is, and whose prices hold.
#[derive(Clone, Debug)]
pub struct ProviderAddress {
    /// Address of a provider that speaks OpenAI's chat format, with or without `/v1` at its end.
    pub base_url: String,
    /// Key to send as a bearer token; it goes to this address and nowhere else.
    pub key: String,
    /// Model to call.
    pub model: String,
    /// Model of the catalogue by whose prices and tokens this one is counted; `None` if the catalogue knows it.
    pub like: Option<String>,
}

/// What the record of calls has about a run: exactly what `contexture calls` would show, summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CallFigures {
    /// Calls that reached the provider, those included that the server made itself.
    pub calls: u64,
    /// Calls that the server made and no client: summaries, rounds of tools that it answers.
    pub own_calls: u64,
    /// Calls that the provider refused or never answered.
    pub refused_calls: u64,
    /// Cost of all calls whose price is known.
    pub dollars: Money,
    /// Answered calls whose cost is not known.
    pub unpriced_calls: u64,
    /// Tokens of all requests, as the provider reported them.
    pub input_tokens: u64,
    /// Tokens of these that were read from the provider's cache.
    pub cached_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
    /// Tokens of the largest request.
    pub largest_request: u64,
    /// Calls for which something else was sent than the client sent.
    pub rewritten_calls: u64,
    /// Whether the limit of dollars stopped a call.
    #[serde(skip)]
    pub(crate) is_over_budget: bool,
}

impl CallFigures {
    /// Adds the figures of another run. The largest request is that of both.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.own_calls += other.own_calls;
        self.refused_calls += other.refused_calls;
        self.dollars += other.dollars;
        self.unpriced_calls += other.unpriced_calls;
        self.input_tokens += other.input_tokens;
        self.cached_tokens += other.cached_tokens;
        self.output_tokens += other.output_tokens;
        self.largest_request = self.largest_request.max(other.largest_request);
        self.rewritten_calls += other.rewritten_calls;
        self.is_over_budget |= other.is_over_budget;
    }

    fn add_call(&mut self, call: &CallRecord) {
        let details = &call.details;
        self.is_over_budget |= details.refusal.as_deref() == Some(SPEND_LIMIT);
        match call.outcome {
            // Never sent, or no call of a model.
            CallOutcome::Blocked | CallOutcome::Forwarded => return,
            CallOutcome::Refused | CallOutcome::Unreachable => self.refused_calls += 1,
            _ => {}
        }
        self.calls += 1;
        self.own_calls += u64::from(details.is_own);
        self.rewritten_calls += u64::from(details.is_rewritten);
        match details.pico_dollars {
            Some(pico) => self.dollars += Money::from_pico_dollars(pico.into()),
            None if call.outcome == CallOutcome::Completed => self.unpriced_calls += 1,
            None => {}
        }
        if let Some(tokens) = details.tokens {
            self.input_tokens += tokens.input;
            self.cached_tokens += tokens.cache_read;
            self.output_tokens += tokens.output;
            self.largest_request = self.largest_request.max(tokens.input);
        }
    }
}

/// A running server in front of the provider.
pub(crate) struct Served {
    address: SocketAddr,
    engine: Engine,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
}

impl Served {
    /// Starts a server on a free port of the loopback. With a policy it holds for all models, or for `policy_model` alone. What
    /// its calls cost together stays below `budget`.
    pub(crate) async fn start(
        provider: &ProviderAddress,
        policy: Option<(&PolicyUnderTest, Option<&str>)>,
        budget: Option<Money>,
    ) -> Result<Self, EvalError> {
        let config = server_config(provider, policy, budget);
        let fault = |error: &dyn std::fmt::Display| EvalError::Server {
            why: error.to_string(),
        };
        let mut config =
            Config::parse(&config.to_string(), "evaluation").map_err(|error| fault(&error.why))?;
        config.server.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let engine = Engine::in_memory();
        let app = App::new(engine.clone(), config).map_err(|error| fault(&error))?;
        let server = Server::bind(app).await.map_err(|error| fault(&error))?;
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(server.run_until(async {
            // A dropped sender stops the server as well.
            let _ = stopped.await;
        }));
        Ok(Self {
            address,
            engine,
            stop,
            running,
        })
    }

    /// Returns the base URL as clients of OpenAI want it, with `/v1` at its end.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Stops the server and returns the figures of its record. All calls are in it, because a server stores them before it ends.
    pub(crate) async fn finish(self) -> Result<CallFigures, EvalError> {
        let Self {
            engine,
            stop,
            running,
            ..
        } = self;
        // An error means that the server has ended already.
        let _ = stop.send(());
        let unreadable = |why: String| EvalError::Record { why };
        running
            .await
            .map_err(|error| unreadable(error.to_string()))?;
        let Some(calls) = engine.store().calls() else {
            return Err(unreadable("this store keeps none".to_owned()));
        };
        let mut figures = CallFigures::default();
        let mut list = ListCalls {
            limit: Some(PAGE),
            ..ListCalls::default()
        };
        loop {
            let page = calls.list_calls(&Owner::local(), list.clone()).await;
            let page = page.map_err(|error| unreadable(error.to_string()))?;
            page.calls.iter().for_each(|call| figures.add_call(call));
            match page.next {
                Some(next) => list.after = Some(next),
                None => return Ok(figures),
            }
        }
    }
}

/// Returns the configuration of a server with one upstream.
fn server_config(
    provider: &ProviderAddress,
    policy: Option<(&PolicyUnderTest, Option<&str>)>,
    budget: Option<Money>,
) -> Table {
    let upstream = [
        ("format", Value::from("openai")),
        ("base_url", Value::from(provider.base_url.as_str())),
        ("default", Value::from(true)),
    ];
    let upstream = Table::from_iter(upstream.map(|(name, value)| (name.to_owned(), value)));
    let mut config = Table::new();
    config.insert("upstreams".to_owned(), single("provider", upstream));
    if let Some(like) = &provider.like {
        let like = Table::from_iter([("like".to_owned(), Value::from(like.as_str()))]);
        config.insert("models".to_owned(), single(&provider.model, like));
    }
    if let Some(budget) = budget {
        // The server itself stops a run within its calls: it knows what each of them costs.
        let dollars = budget.to_decimal_string();
        let limits = Table::from_iter([("dollars_per_day".to_owned(), Value::from(dollars))]);
        config.insert("server".to_owned(), single("limits", limits));
    }
    if let Some((policy, model)) = policy {
        policy.add_to_config(&mut config, model);
    }
    config
}

fn single(name: &str, table: Table) -> Value {
    Value::Table(Table::from_iter([(name.to_owned(), Value::Table(table))]))
}
