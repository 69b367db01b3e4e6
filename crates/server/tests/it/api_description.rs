//! The description of the API: what holds for every operation, and that its examples are accepted.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::messages::said;
use crate::running::waiting;
use crate::test_support::{Answer, Stand};

/// The verbs that operation ids begin with.
const VERBS: [&str; 30] = [
    "activate", "append", "cancel", "change", "check", "compile", "compress", "convert", "count",
    "create", "decide", "delete", "describe", "diff", "drop", "explain", "export", "handle",
    "import", "list", "queue", "read", "record", "render", "resolve", "restore", "rewind",
    "search", "set", "show",
];

/// An operation of the API, with where it is.
pub(crate) struct Operation {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) described: Value,
}

impl Operation {
    pub(crate) fn id(&self) -> &str {
        self.described["operationId"].as_str().unwrap_or_default()
    }

    /// The media types of its body, with an example of each.
    fn bodies(&self) -> Vec<(String, Value)> {
        let content = self.described["requestBody"]["content"].as_object();
        let content = content.into_iter().flatten();
        content
            .map(|(media_type, body)| (media_type.clone(), body["example"].clone()))
            .collect()
    }

    /// Its path, with the examples of the parameters in it.
    fn example_path(&self) -> String {
        let parameters = self.described["parameters"].as_array();
        let mut path = self.path.clone();
        for parameter in parameters.into_iter().flatten() {
            if parameter["in"] == "path" {
                let name = format!("{{{}}}", parameter["name"].as_str().unwrap());
                let example = parameter["example"].as_str();
                let example = example.unwrap_or_else(|| panic!("{}: {name}", self.id()));
                path = path.replace(&name, example);
            }
        }
        path
    }
}

pub(crate) fn description() -> Value {
    serde_json::from_str(&contexture_server::openapi()).unwrap()
}

pub(crate) fn operations(description: &Value) -> Vec<Operation> {
    let paths = description["paths"].as_object().unwrap();
    let of = |(path, methods): (&String, &Value)| {
        let path = path.clone();
        let methods = methods.as_object().unwrap().clone().into_iter();
        methods.map(move |(method, described)| Operation {
            method,
            path: path.clone(),
            described,
        })
    };
    paths.iter().flat_map(of).collect()
}

#[test]
fn every_operation_says_what_it_is() {
    let description = description();
    let mut ids = BTreeSet::new();
    for operation in operations(&description) {
        let id = operation.id();
        assert!(ids.insert(id.to_owned()), "two operations are {id:?}");
        let verb = id.split_once('_').map_or(id, |(verb, _)| verb);
        assert!(
            id.contains('_') && VERBS.contains(&verb),
            "{id:?} is no verb and noun"
        );
        assert!(
            !operation.described["summary"].as_str().unwrap().is_empty(),
            "{id}"
        );
        operation.example_path();
    }
}

#[test]
fn every_tag_is_described_and_used() {
    let description = description();
    let tags = description["tags"].as_array().unwrap();
    let described: BTreeSet<&str> = tags
        .iter()
        .filter(|tag| !tag["description"].as_str().unwrap().is_empty())
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    let operations = operations(&description);
    let mut used = BTreeSet::new();
    for operation in &operations {
        let tags = operation.described["tags"].as_array().unwrap();
        assert_eq!(tags.len(), 1, "{}", operation.id());
        used.insert(tags[0].as_str().unwrap());
    }
    assert_eq!(described, used);
    assert_eq!(description["servers"][0]["url"], "/");
}

#[test]
fn every_error_is_a_problem() {
    for operation in operations(&description()) {
        let id = operation.id();
        let responses = operation.described["responses"].as_object().unwrap();
        let errors = responses
            .iter()
            .filter(|(status, _)| status.as_str() >= "4");
        let mut count = 0;
        for (status, response) in errors {
            let schema = &response["content"]["application/problem+json"]["schema"];
            assert_eq!(
                schema["$ref"], "#/components/schemas/ProblemDocument",
                "{id} {status}"
            );
            count += 1;
        }
        assert!(count >= 3, "{id} describes {count} errors");
        assert!(
            responses.keys().any(|status| status.starts_with('2')),
            "{id}"
        );
    }
}

/// Objects of which nothing is said are described as such: generators make types that hold nothing of a bare `object`.
#[test]
fn no_schema_is_a_bare_object() {
    fn walk(place: &str, schema: &Value) {
        if schema["type"] == "object" {
            let said = ["properties", "additionalProperties", "oneOf", "allOf"];
            let says = said.iter().any(|member| !schema[*member].is_null());
            assert!(says, "{place} is a bare object");
        }
        let members = schema.as_object().into_iter().flatten();
        members.for_each(|(name, value)| walk(&format!("{place}.{name}"), value));
        let elements = schema.as_array().into_iter().flatten();
        elements.for_each(|value| walk(place, value));
    }
    let description = description();
    walk("components", &description["components"]["schemas"]);
    walk("paths", &description["paths"]);
}

/// A conversation as the examples expect it, long enough to be compacted, with a run that waits.
struct Story {
    stand: Stand,
    run: String,
    call: String,
    /// A call on record.
    past_call: String,
}

impl Story {
    async fn new(operations: &[Operation]) -> Self {
        let stand = Stand::new().await;
        let example = |id: &str| {
            let operation = operations.iter().find(|operation| operation.id() == id);
            operation.unwrap().bodies()[0].1.clone()
        };
        let new = example("create_conversation");
        stand.post("/api/v1/conversations", &new).await.ok();
        let path = format!("/api/v1/conversations/{}", new["id"].as_str().unwrap());
        let messages = example("append_messages");
        let ask = said("Tell me a story.");
        let text = "It rained for days. ".repeat(2000);
        let story = json!({"items": [{"type": "message", "role": "assistant", "content": text}]});
        for body in [&ask, &story, &ask, &story, &messages, &said("And now?")] {
            stand.post(&format!("{path}/messages"), body).await.ok();
        }
        let (_, turn) = waiting(&stand, new["id"].as_str().unwrap()).await;
        let runs = stand.get("/api/v1/runs").await.ok();
        let calls = stand.get("/api/v1/calls").await.ok();
        Self {
            stand,
            past_call: calls["calls"][0]["id"].as_str().unwrap().to_owned(),
            run: turn.run.to_string(),
            call: runs["runs"][0]["waiting"][0]["call"]
                .as_str()
                .unwrap()
                .to_owned(),
        }
    }

    /// Sends an example as it stands; only ids that a server makes are those that this one made.
    async fn send(&self, operation: &Operation, media_type: &str, example: &Value) -> Answer {
        let mut example = example.clone();
        let path = operation.path.replace("{run}", &self.run);
        let path = Operation {
            path: path.replace("{call}", &self.past_call),
            method: operation.method.clone(),
            described: operation.described.clone(),
        }
        .example_path();
        if operation.id() == "decide_call" {
            example["call"] = json!(self.call);
        }
        let body = match &example {
            Value::String(lines) if media_type != "application/json" => lines.clone(),
            json => json.to_string(),
        };
        let method = Method::from_bytes(operation.method.to_uppercase().as_bytes()).unwrap();
        let request = self.stand.request(method, &path);
        let request = request.header("content-type", media_type).body(body);
        self.stand.send(request).await
    }
}

#[tokio::test]
async fn every_body_has_an_example_that_is_accepted() {
    let operations = operations(&description());
    let with_bodies = operations.iter().filter(|operation| {
        // Each media type is tried on a server of its own, so that the order does not matter.
        !operation.described["requestBody"].is_null()
    });
    let mut tried = 0;
    for operation in with_bodies {
        for (media_type, example) in operation.bodies() {
            let what = format!("{} as {media_type}", operation.id());
            assert!(!example.is_null(), "{what} has no example");
            // What is queued is queued in a conversation too.
            let names = ["{conversation}", "{call}"];
            let has_story = names.iter().any(|name| operation.path.contains(name))
                || operation.id() == "queue_run";
            let answer = if has_story {
                let story = Story::new(&operations).await;
                story.send(operation, &media_type, &example).await
            } else {
                let stand = Stand::new().await;
                let story = Story {
                    stand,
                    run: String::new(),
                    call: String::new(),
                    past_call: String::new(),
                };
                story.send(operation, &media_type, &example).await
            };
            assert!(answer.status.is_success(), "{what}: {}", answer.text);
            tried += 1;
        }
    }
    assert!(tried >= 15, "{tried}");
}

/// What is missing and what is unknown is told at once, of every operation that has members of its own.
#[tokio::test]
async fn all_faults_of_a_body_are_told_at_once() {
    let description = description();
    let stand = Stand::new().await;
    let mut tried = 0;
    for operation in operations(&description) {
        let body = &operation.described["requestBody"]["content"]["application/json"];
        let name = body["schema"]["$ref"].as_str().unwrap_or_default();
        let name = name.trim_start_matches("#/components/schemas/");
        let schema = &description["components"]["schemas"][name];
        if schema["additionalProperties"] != json!(false) {
            continue;
        }
        let mut expected: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|name| name.as_str().unwrap())
            .collect();
        expected.extend(["never_known", "never_seen"]);
        let method = Method::from_bytes(operation.method.to_uppercase().as_bytes()).unwrap();
        let body = json!({"never_known": 1, "never_seen": 2});
        let path = operation.example_path();
        let refused = stand.call(method, &path, &body).await;
        refused.refused(400, "bad_body");
        let told = refused.json();
        let faults = told["faults"].as_array().unwrap();
        let told: Vec<&str> = faults
            .iter()
            .map(|fault| fault["member"].as_str().unwrap())
            .collect();
        assert_eq!(told, expected, "{}", operation.id());
        tried += 1;
    }
    assert!(tried >= 10, "{tried}");
    // Words that are read later than the members are among the faults.
    let body = json!({"modle": 1, "to": "zz", "window": "x"});
    let stored = "/api/v1/conversations/any/compile";
    for path in ["/api/v1/compile", stored] {
        let refused = stand.post(path, &body).await;
        refused.refused(400, "bad_body");
        let faults = refused.json();
        let faults = faults["faults"].as_array().unwrap().iter();
        let told: Vec<&Value> = faults.map(|fault| &fault["member"]).collect();
        assert_eq!(told, ["modle", "to", "window"], "{}", refused.text);
    }
}
