//! An agent's loop over HTTP: compile, ask, record, handle. For stored conversations, and for histories that the caller keeps.

use serde_json::{Value, json};

use crate::messages::talk;
use crate::test_support::Stand;

fn rounds() -> usize {
    match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 300,
        None => 60,
    }
}

fn tools() -> Value {
    json!([
        {"type": "function", "function": {"name": "read_row", "description": "Reads a row.", "parameters": {"type": "object", "properties": {"row": {"type": "integer"}}}}},
        {"type": "function", "function": {"name": "delete_row", "parameters": {"type": "object"}}},
    ])
}

fn policy() -> Value {
    json!({
        "limit_tokens": 3000, "preview": 800, "clear": {"keep_recent": 3}, "compact": "manifest",
        "tools": {"deny": ["delete_*"]},
    })
}

/// What the scripted model of round `n` says: a call of a tool, then, the output seen, an answer.
fn answers(n: usize, tool: &str, arguments: &Value) -> [Value; 2] {
    let document = |id: &str, message: Value, finish: &str| {
        json!({"id": id, "object": "chat.completion", "model": "gpt-4o", "choices": [
            {"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 2000, "completion_tokens": 20, "total_tokens": 2020}})
    };
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let calls = json!([{"id": format!("call_{n}"), "type": "function", "function": function}]);
    let calls = json!({"role": "assistant", "content": null, "tool_calls": calls});
    [
        document(&format!("a{n}"), calls, "tool_calls"),
        document(
            &format!("b{n}"),
            json!({"role": "assistant", "content": format!("Row {n} is fine.")}),
            "stop",
        ),
    ]
}

fn row(n: usize) -> String {
    format!("row {n}: {}", "lorem ipsum dolor ".repeat(6 + n % 60))
}

/// Requests in a row, and how they begin alike.
#[derive(Default)]
struct Requests {
    last: Vec<Value>,
    epochs: Vec<String>,
}

impl Requests {
    /// Checks a compiled call against the one before.
    fn check(&mut self, compiled: &Value) {
        let (payload, epoch) = (&compiled["payload"], &compiled["report"]["epoch"]);
        let messages = payload["messages"].as_array().unwrap();
        if epoch["opened"] == true {
            self.epochs
                .push(epoch["reason"].as_str().unwrap().to_owned());
        } else {
            let same = self.last.iter().zip(messages).take_while(|(a, b)| a == b);
            let share = same.count() as f64 / self.last.len() as f64;
            assert!(share >= 0.95, "{share} of the prefix: {epoch}");
        }
        let names = payload["tools"].as_array().unwrap().iter();
        let names: Vec<&Value> = names.map(|tool| &tool["function"]["name"]).collect();
        assert!(names.contains(&&json!("read_row")) && !names.contains(&&json!("delete_row")));
        self.last = messages.clone();
    }

    fn check_epochs(&self) {
        assert_eq!(self.epochs[0], "first");
        assert!(
            !self.epochs[1..].contains(&"first".to_owned()),
            "{:?}",
            self.epochs
        );
        assert!(self.epochs.len() < rounds() / 2, "{}", self.epochs.len());
    }
}

#[tokio::test]
async fn a_stored_loop_keeps_its_prefix() {
    let stand = Stand::new().await;
    let path = talk(&stand, "loop", &["Read all rows."]).await;
    let mut requests = Requests::default();
    for n in 0..rounds() {
        let asked = json!({"to": "openai-chat", "model": "gpt-4o", "reserve": 500, "policy": policy(), "tools": tools()});
        for (part, answer) in answers(n, "read_row", &json!({"row": n}))
            .iter()
            .enumerate()
        {
            let compiled = stand.post(&format!("{path}/compile"), &asked).await.ok();
            requests.check(&compiled);
            assert_eq!(compiled["own_tools"], json!(["read_context"]));
            let record = json!({"call": compiled["call"], "response": answer});
            let recorded = stand.post(&format!("{path}/record"), &record).await.ok();
            assert_eq!(
                (&recorded["latched"], &recorded["replayed"]),
                (&json!(true), &json!(false))
            );
            if part == 0 {
                assert_eq!(recorded["calls"][0]["by"], "caller");
                let output = json!({"items": [{"type": "function_call_output", "call_id": format!("call_{n}"), "output": row(n)}]});
                stand.post(&format!("{path}/messages"), &output).await.ok();
            }
        }
        let next =
            json!({"messages": [{"role": "user", "content": format!("And row {}?", n + 1)}]});
        stand.post(&format!("{path}/messages"), &next).await.ok();
    }
    requests.check_epochs();
    check_predictions(&stand).await;
    // Whatever was left out can be read by the links that the requests have.
    let text = Value::from(requests.last.clone()).to_string();
    for part in text.split("context://vfs/").skip(1) {
        let link = format!("context://vfs/{}", &part[..32]);
        stand
            .find(&format!("{path}/read"), &[("link", &link)])
            .await
            .ok();
    }
}

/// Checks that the rows of a loop's calls have what was predicted when they were compiled, and that their savings are summed.
async fn check_predictions(stand: &Stand) {
    let listed = stand.get("/api/v1/calls?limit=500").await.ok();
    let rows = listed["calls"].as_array().unwrap();
    assert_eq!(rows.len(), rounds() * 2);
    let total = |use_of: &Value| {
        let parts = ["read", "written", "fresh"].map(|part| use_of[part].as_u64().unwrap());
        parts.iter().sum::<u64>()
    };
    let (mut rewritten, mut saved) = (0, 0);
    for row in rows {
        let (sent, passed) = (&row["prediction"]["sent"], &row["prediction"]["passed"]);
        let pico = |name: &str| row["prediction"][name].as_i64().unwrap();
        match row["rewritten"].as_bool().unwrap() {
            true => assert!(total(passed) > total(sent), "{row}"),
            false => assert_eq!(sent, passed, "{row}"),
        }
        rewritten += u64::from(row["rewritten"] == true);
        saved += pico("passed_pico_dollars") - pico("sent_pico_dollars");
    }
    // The newest row is the first: by then most of the history is left out.
    assert_eq!(rows[0]["rewritten"], true);
    assert_eq!(rows[rows.len() - 1]["rewritten"], false);
    let usage = stand.get("/api/v1/usage?by=conversation").await.ok();
    assert_eq!(usage["total"]["rewritten"], rewritten);
    assert_eq!(usage["total"]["saved_pico_dollars"], saved);
    // Input of twenty times the window, even if all of it is read from the cache.
    assert!(saved > 0, "{usage}");
}

#[tokio::test]
async fn an_unknown_price_is_no_price() {
    let stand = Stand::new().await;
    let path = talk(&stand, "local", &["Hello"]).await;
    let asked = json!({"to": "openai-chat", "model": "my-own", "window": 8000});
    let compiled = stand.post(&format!("{path}/compile"), &asked).await.ok();
    let record = json!({"call": compiled["call"], "response": answers(1, "x", &json!({}))[1]});
    stand.post(&format!("{path}/record"), &record).await.ok();
    let listed = stand.get("/api/v1/calls").await.ok();
    let prediction = &listed["calls"][0]["prediction"];
    assert!(prediction["sent"]["fresh"].as_u64() > Some(0), "{listed}");
    for member in [
        "sent_dollars",
        "sent_pico_dollars",
        "passed_dollars",
        "passed_pico_dollars",
    ] {
        assert_eq!(prediction[member], Value::Null, "{member}");
    }
    let usage = stand.get("/api/v1/usage").await.ok();
    assert_eq!(usage["total"]["saved_dollars"], Value::Null);
    assert_eq!(usage["total"]["saved_pico_dollars"], Value::Null);
}

#[tokio::test]
async fn a_loop_goes_on_in_its_format() {
    let stand = Stand::new().await;
    let path = talk(&stand, "same", &["Hello"]).await;
    let compile = async |asked: &Value| stand.post(&format!("{path}/compile"), asked).await.ok();
    let format = |compiled: &Value| compiled["report"]["target"]["format"].clone();
    // Its provider's usual one is another.
    let compiled = compile(&json!({"to": "openai-chat", "model": "gpt-4o"})).await;
    let record = json!({"call": compiled["call"], "response": answers(1, "x", &json!({}))[1]});
    stand.post(&format!("{path}/record"), &record).await.ok();
    assert_eq!(format(&compile(&json!({})).await), "openai-chat");
    assert_eq!(
        format(&compile(&json!({"to": "openai-responses"})).await),
        "openai-responses"
    );
    assert_eq!(
        format(&compile(&json!({"model": "gpt-4o"})).await),
        "openai-responses"
    );
}

#[tokio::test]
async fn a_loop_without_a_store_keeps_its_prefix() {
    let stand = Stand::new().await;
    let mut history = vec![json!({"role": "user", "content": "Read all rows."})];
    let (mut requests, mut plan) = (Requests::default(), Value::Null);
    for n in 0..rounds() {
        for (part, answer) in answers(n, "read_row", &json!({"row": n}))
            .iter()
            .enumerate()
        {
            let mut asked = json!({"to": "openai-chat", "model": "gpt-4o", "reserve": 500, "policy": policy(), "tools": tools(), "messages": history});
            if !plan.is_null() {
                asked["plan"] = plan;
            }
            let compiled = stand.post("/api/v1/compile", &asked).await.ok();
            requests.check(&compiled);
            assert_eq!(compiled["call"], Value::Null);
            assert_eq!(compiled["report"]["readable"], false);
            // The whole response: nobody could follow a link.
            assert!(!compiled.to_string().contains("context://"));
            plan = compiled["plan"].clone();
            assert!(plan.to_string().len() <= 64 << 10);
            history.push(answer["choices"][0]["message"].clone());
            if part == 0 {
                history.push(
                    json!({"role": "tool", "tool_call_id": format!("call_{n}"), "content": row(n)}),
                );
            }
        }
        history.push(json!({"role": "user", "content": format!("And row {}?", n + 1)}));
    }
    requests.check_epochs();
}

#[tokio::test]
async fn own_calls_are_handled_and_others_wait() {
    let stand = Stand::new().await;
    let mut policy = policy();
    policy["memory"] = json!({"of": "owner", "tools": true});
    // By the id of the call; by nothing, which means the newest call; by the policy itself.
    for (id, by) in [("a", "call"), ("b", "newest"), ("c", "policy")] {
        handle_own_calls(&stand, id, &policy, by).await;
    }
}

/// Lets a model call a tool of ours, one of the caller's and a forbidden one, and handles them.
async fn handle_own_calls(stand: &Stand, id: &str, policy: &Value, by: &str) {
    let path = talk(stand, id, &["Remember that I like tea, and read row 1."]).await;
    let asked = json!({"model": "gpt-4o", "to": "openai-chat", "policy": policy, "tools": tools()});
    let compiled = stand.post(&format!("{path}/compile"), &asked).await.ok();
    let own = compiled["own_tools"].as_array().unwrap();
    assert!(
        own.contains(&json!("read_context")) && own.len() > 1,
        "{own:?}"
    );
    let note = own.iter().find(|name| *name != "read_context").unwrap();
    let call = |id: &str, name: &Value, arguments: Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    let calls = json!([
        call("c1", note, json!({"key": "drink", "value": "tea"})),
        call("c2", &json!("read_row"), json!({"row": 1})),
        call("c3", &json!("delete_row"), json!({})),
    ]);
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let answer = json!({"id": "r1", "object": "chat.completion", "model": "gpt-4o",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    let record = json!({"call": compiled["call"], "response": answer});
    let recorded = stand.post(&format!("{path}/record"), &record).await.ok();
    let calls = recorded["calls"].as_array().unwrap().iter();
    let whose: Vec<_> = calls.map(|call| &call["by"]).collect();
    assert_eq!(whose, ["server", "caller", "server"]);
    // Once more, as after a lost answer: stored once.
    let again = stand.post(&format!("{path}/record"), &record).await.ok();
    assert_eq!(
        (&again["replayed"], &again["head"]),
        (&json!(true), &recorded["head"])
    );

    let handle = match by {
        "call" => json!({"call": compiled["call"]}),
        "policy" => json!({"call": "00000000000000000000000000000000", "policy": policy}),
        _ => json!({}),
    };
    let handled = stand.post(&format!("{path}/handle"), &handle).await.ok();
    let answered = handled["answered"].as_array().unwrap();
    let of = |id: &str| answered.iter().find(|call| call["call_id"] == id).unwrap();
    assert_eq!(of("c1")["is_error"], false, "{handled}");
    assert_eq!(of("c3")["is_error"], true);
    assert_eq!(handled["waiting"][0]["call_id"], "c2");
    let twice = stand.post(&format!("{path}/handle"), &handle).await.ok();
    assert_eq!(
        (&twice["answered"], &twice["waiting"]),
        (&json!([]), &handled["waiting"])
    );
    let output =
        json!({"items": [{"type": "function_call_output", "call_id": "c2", "output": "row 1"}]});
    stand.post(&format!("{path}/messages"), &output).await.ok();
    // The note is said in the next call.
    let next = stand.post(&format!("{path}/compile"), &asked).await.ok();
    assert!(next["payload"]["messages"].to_string().contains("tea"));
    let done = stand.post(&format!("{path}/handle"), &handle).await.ok();
    assert_eq!(
        (&done["answered"], &done["waiting"]),
        (&json!([]), &json!([]))
    );
}

/// The names of the functions that a compiled call offers.
fn offered(compiled: &Value) -> Vec<String> {
    let tools = compiled["payload"]["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[tokio::test]
async fn a_policy_selects_tools_by_what_the_user_says() {
    let stand = Stand::new().await;
    let tool = |name: &str, about: &str| json!({"type": "function", "function": {"name": name, "description": about, "parameters": {"type": "object"}}});
    let tools = json!([
        tool("send_mail", "Sends an e-mail"),
        tool("weather", "Weather forecast for a city"),
        tool("shell", "Runs a command"),
        tool("book_train", "Books a seat in a train"),
    ]);
    let policy = json!({"tools": {"select": 1}});
    let asked = json!({"model": "gpt-4o", "to": "openai-chat", "policy": policy, "tools": tools});
    let said = "What is the weather forecast?";
    // A stored conversation, with tools in the document.
    let path = talk(&stand, "stored", &[said]).await;
    let compiled = stand.post(&format!("{path}/compile"), &asked).await.ok();
    assert_eq!(offered(&compiled), ["weather"]);
    // The choice stays, whatever else is said.
    let more = json!({"messages": [{"role": "user", "content": "Book a seat in a train"}]});
    stand.post(&format!("{path}/messages"), &more).await.ok();
    let compiled = stand.post(&format!("{path}/compile"), &asked).await.ok();
    assert_eq!(offered(&compiled), ["weather"]);
    // A history of the caller's.
    let mut own = asked.clone();
    own["messages"] = json!([{"role": "user", "content": said}]);
    let compiled = stand.post("/api/v1/compile", &own).await.ok();
    assert_eq!(offered(&compiled), ["weather"]);
    // The tools that an imported request came with, of which one was called and one is forced.
    let call =
        json!({"id": "1", "type": "function", "function": {"name": "shell", "arguments": "{}"}});
    let request = json!({"model": "gpt-4o", "tools": tools,
        "tool_choice": {"type": "function", "function": {"name": "send_mail"}},
        "messages": [{"role": "user", "content": said}, {"role": "assistant", "tool_calls": [call]}]});
    let imported = stand.post("/api/v1/sessions", &request).await.ok();
    let id = imported["imported"][0]["conversation"].as_str().unwrap();
    let asked = json!({"to": "openai-chat", "policy": policy});
    let path = format!("/api/v1/conversations/{id}/compile");
    let compiled = stand.post(&path, &asked).await.ok();
    assert_eq!(offered(&compiled), ["send_mail", "weather", "shell"]);
}

#[tokio::test]
async fn an_answer_to_an_unknown_call_is_stored() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Hello"]).await;
    let answer = &answers(1, "read_row", &json!({}))[1];
    let record = json!({"call": "00000000000000000000000000000000", "response": answer});
    let recorded = stand.post(&format!("{path}/record"), &record).await.ok();
    assert_eq!(recorded["latched"], false);
    let again = stand.post(&format!("{path}/record"), &record).await.ok();
    assert_eq!(again["head"], recorded["head"]);
    let messages = stand.get(&format!("{path}/messages")).await.ok();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
    let error = json!({"response": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}});
    let error = stand.post(&format!("{path}/record"), &error).await;
    error.refused(400, "bad_body");
    assert!(
        error
            .text
            .contains("an error of the provider and no answer: Overloaded")
    );
    let none = json!({"response": {"role": "user", "content": "no answer"}});
    let refused = stand.post(&format!("{path}/record"), &none).await;
    assert!(
        refused.status == 400 || refused.status == 422,
        "{}",
        refused.status
    );
}

#[tokio::test]
async fn an_answer_may_come_as_its_stream() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Hello"]).await;
    let asked = json!({"model": "gpt-4o", "to": "openai-chat"});
    let compiled = stand.post(&format!("{path}/compile"), &asked).await.ok();
    let delta = |delta: Value, finish: Value| {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "gpt-4o",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    let stream = [
        delta(
            json!({"role": "assistant", "content": "Good "}),
            Value::Null,
        ),
        delta(json!({"content": "morning"}), Value::Null),
        delta(json!({}), json!("stop")),
        "data: [DONE]\n\n".to_owned(),
    ];
    let record = json!({"call": compiled["call"], "response": stream.concat()});
    stand.post(&format!("{path}/record"), &record).await.ok();
    let messages = stand.get(&format!("{path}/messages")).await.ok();
    assert_eq!(messages["messages"][1]["parts"][0]["text"], "Good morning");
}

#[tokio::test]
async fn a_gate_says_what_may_be_called() {
    let stand = Stand::with("[policies.careful]\ntools = { deny = [\"delete_*\"] }\n").await;
    let path = talk(&stand, "a", &["Hello"]).await;
    let check = async |name: &str, policy: Value| {
        let asked = json!({"name": name, "policy": policy});
        stand.post(&format!("{path}/check"), &asked).await.ok()["allowed"].clone()
    };
    for policy in [json!("careful"), json!({"tools": {"deny": ["delete_*"]}})] {
        assert_eq!(check("Delete_Row", policy.clone()).await, false);
        assert_eq!(check("read_row", policy).await, true);
    }
    let asked = json!({"name": "x", "policy": "nobody"});
    let refused = stand.post(&format!("{path}/check"), &asked).await;
    refused.refused(400, "bad_body");
}

#[tokio::test]
async fn what_belongs_to_the_other_kind_is_refused() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Hello"]).await;
    for (member, value) in [
        ("messages", json!([{"role": "user", "content": "hi"}])),
        ("plan", json!({})),
        ("reported_input_tokens", json!(7)),
        ("skills", json!(["nobody"])),
        ("policy", json!("nobody")),
        ("policy", json!({"limit_tokens": 3})),
        ("policy", json!({"skills": ["/etc"]})),
        ("policy", json!({"redact": true})),
        ("guardrails", json!({"output_tag": "a b"})),
        ("tools", json!([{"type": "function", "function": 7}])),
    ] {
        let mut asked = json!({"model": "gpt-4o", "to": "openai-chat"});
        asked[member] = value;
        let refused = stand.post(&format!("{path}/compile"), &asked).await;
        refused.refused(400, "bad_body");
        let explained = stand.post(&format!("{path}/explain"), &asked).await;
        explained.refused(400, "bad_body");
    }
    stand
        .post("/api/v1/compile", &json!({"model": "gpt-4o"}))
        .await
        .refused(400, "bad_body");
    let skills = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}], "skills": ["x"]});
    stand
        .post("/api/v1/compile", &skills)
        .await
        .refused(400, "bad_body");
}

#[tokio::test]
async fn state_guardrails_context_and_reminders_are_said() {
    let stand = Stand::new().await;
    let path = talk(&stand, "a", &["Hello"]).await;
    let said = json!({
        "model": "claude-sonnet-5", "state": {"step": 4}, "guardrails": {"output_tag": "answer"},
        "context": {"open_file": "src/main.rs"}, "reminders": ["Be brief."],
    });
    let stored = stand.post(&format!("{path}/compile"), &said).await.ok();
    let mut given = said.clone();
    given["messages"] = json!([{"role": "user", "content": "Hello"}]);
    let document = stand.post("/api/v1/compile", &given).await.ok();
    for compiled in [stored, document] {
        let text = compiled["payload"].to_string();
        for word in ["<step>4</step>", "<answer>", "src/main.rs", "Be brief."] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
