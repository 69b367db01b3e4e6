//! A provider with a model that plays one task by a script, and what all tests do with it.

use std::sync::{Arc, Mutex};

use contexture::catalogue::Money;
use contexture_eval::{
    EvalTask, EvaluationOptions, EvaluationReport, PolicyUnderTest, ProviderAddress, all_tasks,
    play_tasks,
};
use contexture_upstream_testkit::{Provider, Received, Upstream, UpstreamResponse};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::scripts::{Round, script_of};

pub(crate) const MODEL: &str = "gpt-5-mini";

/// What the model knows beside the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// All that was ever said: it plays rightly, whatever it is sent.
    Everything,
    /// Nothing: a value that the script marks as `{{recalled}}` is known if the request has it.
    RequestAlone,
}

/// What the provider billed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bill {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
    pub(crate) largest: u64,
}

/// Plays one task.
pub(crate) struct ScriptedModel {
    first_turn: &'static str,
    /// The rounds of all turns; `None` ends a turn.
    steps: Vec<Option<Round>>,
    memory: Memory,
    state: Mutex<ModelState>,
}

#[derive(Default)]
struct ModelState {
    step: usize,
    prompt: String,
    bill: Bill,
}

impl ScriptedModel {
    pub(crate) fn new(task: &EvalTask, memory: Memory) -> Arc<Self> {
        let turns = script_of(task.name);
        assert_eq!(turns.len(), task.turns.len(), "{}", task.name);
        let rounds = |turn: &&[Round]| {
            let rounds: Vec<Option<Round>> = turn.iter().copied().map(Some).collect();
            rounds.into_iter().chain([None])
        };
        Arc::new(Self {
            first_turn: task.turns[0],
            steps: turns.iter().flat_map(rounds).collect(),
            memory,
            state: Mutex::default(),
        })
    }

    pub(crate) fn bill(&self) -> Bill {
        self.state.lock().unwrap().bill.clone()
    }

    /// What it says next, and the usage of the call.
    fn answer(&self, request: &Value) -> Value {
        let mut state = self.state.lock().unwrap();
        let messages = request["messages"].as_array().unwrap();
        let is_first = messages
            .iter()
            .all(|message| message["role"] != "assistant")
            && messages.last().unwrap()["content"] == self.first_turn;
        if is_first {
            state.step = 0;
        }
        let view = request["messages"].to_string();
        let step = self.steps.get(state.step).copied().flatten();
        let calls: Vec<Value> = step
            .unwrap_or_default()
            .iter()
            .enumerate()
            .map(|(at, (name, arguments))| {
                let arguments = self.recall(arguments, &view);
                json!({
                    "id": format!("call_{}_{at}", state.step), "type": "function",
                    "function": {"name": name, "arguments": arguments}
                })
            })
            .collect();
        state.step += 1;
        let mut message = json!({"role": "assistant", "content": null, "refusal": null});
        match calls.is_empty() {
            true => message["content"] = "Done.".into(),
            false => message["tool_calls"] = calls.into(),
        }
        let usage = state.bill(&format!("{}{view}", request["tools"]), &message);
        json!({
            "id": format!("chatcmpl-{}", state.step), "object": "chat.completion", "created": 1_770_000_000,
            "model": MODEL, "usage": usage,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]
        })
    }

    /// Fills in what the script recalls: `{{AP-7741-Q}}` is known if it may be, else it is `unknown`.
    fn recall(&self, arguments: &str, view: &str) -> String {
        let mut filled = String::new();
        let mut rest = arguments;
        while let Some((before, after)) = rest.split_once("{{") {
            let (value, behind) = after.split_once("}}").unwrap();
            let is_known = self.memory == Memory::Everything || view.contains(value);
            filled.push_str(before);
            filled.push_str(if is_known { value } else { "unknown" });
            rest = behind;
        }
        filled + rest
    }
}

impl ModelState {
    /// A token is four bytes. What a prompt shares with the one before it is read from the cache in blocks of 128 tokens, if it is at
    /// least 1,024.
    fn bill(&mut self, prompt: &str, message: &Value) -> Value {
        let shared = prompt.bytes().zip(self.prompt.bytes());
        let shared = shared.take_while(|(new, old)| new == old).count() as u64 / 4;
        let cached = match shared {
            1024.. => shared / 128 * 128,
            _ => 0,
        };
        let (input, output) = (
            prompt.len() as u64 / 4,
            message.to_string().len() as u64 / 4,
        );
        self.prompt = prompt.to_owned();
        self.bill.input += input;
        self.bill.cached += cached;
        self.bill.output += output;
        self.bill.largest = self.bill.largest.max(input);
        json!({
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": cached}
        })
    }
}

/// A provider that has this model.
pub(crate) fn provider_of(model: Arc<ScriptedModel>) -> impl Provider {
    move |request: &Received| UpstreamResponse::json(200, &model.answer(&request.json()))
}

pub(crate) fn options(base_url: &str, policy: &str, tasks: Vec<EvalTask>) -> EvaluationOptions {
    EvaluationOptions {
        provider: ProviderAddress {
            base_url: base_url.to_owned(),
            key: "sk-test".to_owned(),
            model: MODEL.to_owned(),
            like: None,
        },
        // A machine that is busy with other tests must not make the server give up a change.
        policy: PolicyUnderTest::parse(
            &format!("{policy}ingest_timeout_ms = 600000\n"),
            "test".as_ref(),
            None,
            8_000,
        )
        .unwrap(),
        tasks,
        repeat: 1,
        max_calls: 60,
        budget: Some(Money::from_micro_dollars(50_000_000)),
        stop: never_stopped(),
    }
}

/// A signal that nobody gives.
fn never_stopped() -> watch::Receiver<bool> {
    let (send, stop) = watch::channel(false);
    // Kept for the rest of the process: without a sender, waiting for the signal would end.
    std::mem::forget(send);
    stop
}

pub(crate) fn task(name: &str) -> EvalTask {
    let mut all = all_tasks().into_iter();
    all.find(|task| task.name == name).unwrap()
}

/// Plays the tasks in both ways, each with a provider of its own; returns the report, and of each task the provider with its
/// model.
pub(crate) async fn play_scripted(
    tasks: Vec<EvalTask>,
    memory: Memory,
    policy: &str,
) -> (EvaluationReport, Vec<(Upstream, Arc<ScriptedModel>)>) {
    let mut report = options("http://127.0.0.1:1", policy, Vec::new()).empty_report();
    let mut providers = Vec::new();
    for task in tasks {
        let model = ScriptedModel::new(&task, memory);
        let upstream = Upstream::start(provider_of(model.clone())).await;
        let options = options(&upstream.base_url(), policy, vec![task]);
        play_tasks(&options, &mut report, &mut |_| {})
            .await
            .unwrap();
        providers.push((upstream, model));
    }
    (report, providers)
}
