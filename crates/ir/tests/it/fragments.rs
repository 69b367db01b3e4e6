//! Fragments: builders, JSON, serialised forms, lists, messages.

use contexture_ir::{
    Analogy, Body, Clarification, Codec, CodecError, Example, Explanation, Fragment, FragmentData,
    FragmentError, FragmentRegistry, FragmentType, Guardrail, Identity, MAX_DEPTH, Persona, Policy,
    Principle, Raw, StyleGuide, UiMessage, UiRole, Workflow, alias, analogy, assistant,
    assistant_text, clarification, correction, example, explain, fragment, from_serialized,
    glossary, guardrail, hint, identity, last_assistant_message, message, object, parse_fragments,
    parse_fragments_with, persona, policy, preference, principle, quirk, role, style_guide, term,
    to_message_fragment, to_serialized, user, workflow,
};
use serde_json::{Map, Value, json};

fn s(text: &str) -> String {
    text.to_owned()
}

/// The builder's fragment as JSON and in its serialised form, which reads back as the same fragment.
fn check(built: &Fragment, data: Value, serialized: Value) {
    let json = built.to_json().unwrap();
    let data = json!({ "name": built.name, "data": data });
    assert_eq!(json.to_string(), data.to_string());
    let written = to_serialized(built, &FragmentRegistry::new()).unwrap();
    assert_eq!(written.to_string(), serialized.to_string());
    assert_eq!(
        from_serialized(&written, &FragmentRegistry::new()).unwrap(),
        *built
    );
}

#[test]
fn builders_of_texts_and_pairs() {
    check(
        &role("r"),
        json!("r"),
        json!({"type": "role", "content": "r"}),
    );
    check(&hint("h"), json!("h"), json!({"type": "hint", "text": "h"}));
    check(
        &term("N", "D"),
        json!({"name": "N", "definition": "D"}),
        json!({"type": "term", "name": "N", "definition": "D"}),
    );
    check(
        &alias("a", "b"),
        json!({"term": "a", "meaning": "b"}),
        json!({"type": "alias", "term": "a", "meaning": "b"}),
    );
    check(
        &preference("tone", "dry"),
        json!({"aspect": "tone", "value": "dry"}),
        json!({"type": "preference", "aspect": "tone", "value": "dry"}),
    );
    check(
        &correction("s", "c"),
        json!({"subject": "s", "clarification": "c"}),
        json!({"type": "correction", "subject": "s", "clarification": "c"}),
    );
    check(
        &quirk("i", "w"),
        json!({"issue": "i", "workaround": "w"}),
        json!({"type": "quirk", "issue": "i", "workaround": "w"}),
    );
    check(
        &glossary([("b", "1"), ("a", "2")]),
        json!([{"term": "b", "expression": "1"}, {"term": "a", "expression": "2"}]),
        json!({"type": "glossary", "entries": {"b": "1", "a": "2"}}),
    );
}

#[test]
fn optional_fields_are_left_out_when_empty() {
    check(
        &guardrail(Guardrail {
            rule: s("r"),
            action: s("a"),
            ..Guardrail::default()
        }),
        json!({"rule": "r", "action": "a"}),
        json!({"type": "guardrail", "rule": "r", "action": "a"}),
    );
    check(
        &explain(Explanation {
            concept: s("c"),
            explanation: s("e"),
            ..Explanation::default()
        }),
        json!({"concept": "c", "explanation": "e"}),
        json!({"type": "explain", "concept": "c", "explanation": "e"}),
    );
    check(
        &example(Example {
            question: s("q"),
            answer: s("a"),
            note: s("n"),
        }),
        json!({"question": "q", "answer": "a", "note": "n"}),
        json!({"type": "example", "question": "q", "answer": "a", "note": "n"}),
    );
    check(
        &clarification(Clarification {
            when: s("w"),
            ask: s("a"),
            reason: s(""),
        }),
        json!({"when": "w", "ask": "a", "reason": ""}),
        json!({"type": "clarification", "when": "w", "ask": "a", "reason": ""}),
    );
    check(
        &style_guide(StyleGuide {
            prefer: s("p"),
            always: s("a"),
            ..StyleGuide::default()
        }),
        json!({"prefer": "p", "always": "a"}),
        json!({"type": "styleGuide", "prefer": "p", "always": "a"}),
    );
    check(
        &identity(Identity::default()),
        json!({}),
        json!({"type": "identity"}),
    );
    check(
        &persona(Persona {
            name: s("n"),
            tone: s("t"),
            ..Persona::default()
        }),
        json!({"name": "n", "tone": "t"}),
        json!({"type": "persona", "name": "n", "tone": "t"}),
    );
}

#[test]
fn lists_and_nested_policies() {
    check(
        &workflow(Workflow {
            task: s("t"),
            steps: vec![s("a"), s("b")],
            ..Workflow::default()
        }),
        json!({"task": "t", "steps": ["a", "b"]}),
        json!({"type": "workflow", "task": "t", "steps": ["a", "b"]}),
    );
    check(
        &workflow(Workflow {
            triggers: vec![s("x")],
            notes: s("n"),
            ..Workflow::default()
        }),
        json!({"task": "", "steps": [], "triggers": ["x"], "notes": "n"}),
        json!({"type": "workflow", "task": "", "steps": [], "triggers": ["x"], "notes": "n"}),
    );
    check(
        &analogy(Analogy {
            concepts: vec![s("c")],
            relationship: s("r"),
            pitfall: s("p"),
            ..Analogy::default()
        }),
        json!({"concepts": ["c"], "relationship": "r", "pitfall": "p"}),
        json!({"type": "analogy", "concepts": ["c"], "relationship": "r", "pitfall": "p"}),
    );
    let inner = policy(Policy {
        rule: s("r1"),
        policies: vec!["s1".into(), hint("h").into()],
        ..Policy::default()
    });
    check(
        &principle(Principle {
            title: s("T"),
            description: s("D"),
            policies: vec!["p1".into(), inner.into()],
        }),
        json!({"title": "T", "description": "D", "policies": ["p1", {"name": "policy", "data":
            {"rule": "r1", "policies": ["s1", {"name": "hint", "data": "h"}]}}]}),
        json!({"type": "principle", "title": "T", "description": "D", "policies": ["p1",
            {"type": "policy", "rule": "r1", "policies": ["s1", {"type": "hint", "text": "h"}]}]}),
    );
}

#[test]
fn json_gives_the_same_fragment_back() {
    let built = fragment(
        "outer",
        (
            hint("x").with_id("i"),
            1,
            true,
            object([("z", 1), ("a", 2)]),
        ),
    )
    .with_id("o")
    .with_metadata(Raw::parse(r#"{"k":1}"#).unwrap())
    .transient();
    let json = built.to_json().unwrap();
    assert_eq!(
        json.to_string(),
        r#"{"id":"o","name":"outer","data":[{"id":"i","name":"hint","data":"x"},1,true,{"z":1,"a":2}],"metadata":{"k":1},"persist":false}"#
    );
    assert_eq!(Fragment::from_json(&json.to_string()).unwrap(), built);
}

#[test]
fn an_object_is_a_fragment_only_if_nothing_of_it_is_lost() {
    let kind = |json: &str| FragmentData::from_json(json).unwrap();
    assert!(kind(r#"{"name":"A","data":null}"#).is_fragment());
    assert!(
        kind(r#"{"name":"A","data":1,"id":"x","persist":false,"type":"fragment"}"#).is_fragment()
    );
    for object in [
        r#"{"name":"A"}"#,
        r#"{"data":1}"#,
        r#"{"name":1,"data":1}"#,
        r#"{"name":"report","data":[1],"format":"csv"}"#,
        r#"{"name":"A","data":1,"id":7}"#,
        r#"{"name":"A","data":1,"type":"message"}"#,
    ] {
        let data = kind(object);
        assert!(
            data.is_object() && !data.is_fragment() && !data.is_primitive(),
            "{object}"
        );
        assert_eq!(data.to_json().unwrap().to_string(), object);
    }
    let numbers = "[9007199254740993,18446744073709551615,-9223372036854775808,0.1,1e+300]";
    assert_eq!(kind(numbers).to_json().unwrap().to_string(), numbers);
}

#[test]
fn floats_without_a_json_number_become_texts() {
    for (float, text) in [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        assert_eq!(FragmentData::from(float), FragmentData::from(text));
    }
    assert!(FragmentData::from(0.5).is_primitive());
    assert_eq!(FragmentData::from(None::<bool>), FragmentData::Null);
}

fn encoded(fragment: &Fragment) -> Value {
    serde_json::to_value(fragment.encode_message().unwrap().unwrap()).unwrap()
}

#[test]
fn messages() {
    let said = user("hello");
    assert!(said.is_message() && !said.is_last_assistant() && said.persist);
    assert_eq!((said.name.as_str(), &said.id), ("user", &None));
    assert_eq!(
        encoded(&said),
        json!({"id": "", "role": "user", "parts": [{"type": "text", "text": "hello"}]})
    );
    assert_eq!(encoded(&assistant_text("a").with_id("m1"))["id"], "m1");

    let system = UiMessage {
        id: s("s1"),
        ..UiMessage::text(UiRole::System, "rules")
    };
    assert_eq!(
        (
            message(system.clone()).name.as_str(),
            encoded(&message(system.clone()))["role"].as_str()
        ),
        ("system", Some("system"))
    );
    assert_eq!(message(system.clone()).id.as_deref(), Some("s1"));
    assert_eq!(encoded(&user(system))["role"], "user");
    assert_eq!(encoded(&message("hi"))["role"], "user");

    let last = last_assistant_message("better");
    assert!(last.is_message() && last.is_last_assistant() && last.encode_message().is_none());
    assert_eq!(last.name, "assistant");

    assert_eq!(to_message_fragment(said.clone()), said);
    assert_eq!(to_message_fragment(hint("h")), user("h"));
    assert_eq!(to_message_fragment(fragment("f", [1, 2])), user("[1,2]"));
    assert_ne!(said, user("other"));
}

#[test]
fn repeated_reasoning_items_are_dropped() {
    let reasoning = |id: &str, text: &str| json!({"type": "reasoning", "text": text, "providerMetadata": {"openai": {"itemId": id}}});
    let parts = [
        reasoning("r1", "a"),
        json!({"type": "reasoning", "text": "no id"}),
        json!({"type": "text", "text": "t", "providerMetadata": {"openai": {"itemId": "r1"}}}),
        reasoning("r1", "b"),
        reasoning("r2", "c"),
        json!({"type": "reasoning", "text": "no id"}),
    ];
    let parts = parts
        .iter()
        .map(|part| Raw::from_value(part).unwrap())
        .collect();
    let said = UiMessage {
        id: s("m"),
        role: UiRole::Assistant,
        metadata: None,
        extra: contexture_ir::Extra::new(),
        parts,
    };
    let texts: Vec<_> = encoded(&assistant(said))["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["a", "no id", "t", "c", "no id"]);
}

#[derive(Debug)]
struct Order(u32);

impl Codec for Order {
    fn encode(&self) -> Result<UiMessage, CodecError> {
        match self.0 {
            0 => Err(CodecError::new("order 0 is void")),
            number => Ok(UiMessage::text(UiRole::User, &format!("order {number}"))),
        }
    }

    fn decode(&self) -> FragmentData {
        self.0.into()
    }
}

#[test]
fn messages_of_an_application() {
    let order = Fragment::from_codec("order", Order(7)).with_id("t7");
    assert_eq!(
        encoded(&order),
        json!({"id": "t7", "role": "user", "parts": [{"type": "text", "text": "order 7"}]})
    );
    assert!(matches!(&order.body, Body::Message(codec) if codec.decode() == FragmentData::from(7)));
    let void = Fragment::from_codec("order", Order(0))
        .encode_message()
        .unwrap()
        .unwrap_err();
    assert_eq!(
        void.to_string(),
        "cannot encode the message: order 0 is void"
    );
}

/// `{"type": "unit", "of": …}` for fragments named `unit`.
#[derive(Debug)]
struct Unit;

impl FragmentType for Unit {
    fn serialize(
        &self,
        fragment: &Fragment,
    ) -> Result<Option<Value>, Box<dyn std::error::Error + Send + Sync>> {
        if fragment.name != "unit" {
            return Ok(None);
        }
        let data = fragment.data().ok_or("a unit is data")?.to_json()?;
        Ok(Some(json!({ "type": "unit", "of": data })))
    }

    fn deserialize(
        &self,
        document: &Map<String, Value>,
    ) -> Result<Fragment, Box<dyn std::error::Error + Send + Sync>> {
        let of = document.get("of").ok_or("a unit is of something")?;
        Ok(Fragment::new("unit", FragmentData::try_from(of.clone())?))
    }
}

#[test]
fn registered_types_come_first() {
    let registry = FragmentRegistry::new()
        .with_type("unit", Unit)
        .with_type("hint", Unit);
    let unit = Fragment::new("unit", "cents");
    let written = to_serialized(&unit, &registry).unwrap();
    assert_eq!(written, json!({"type": "unit", "of": "cents"}));
    assert_eq!(from_serialized(&written, &registry).unwrap(), unit);
    // The built-in reading of `hint` is replaced.
    assert_eq!(
        from_serialized(&json!({"type": "hint", "of": 1}), &registry).unwrap(),
        Fragment::new("unit", 1)
    );
    let list = parse_fragments_with(r#"[{"type":"unit","of":"m"}]"#, &registry).unwrap();
    assert_eq!(list, [Fragment::new("unit", "m")]);
    let error = from_serialized(&json!({"type": "unit"}), &registry).unwrap_err();
    assert!(
        matches!(&error, FragmentError::Registered { kind, .. } if kind == "unit"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_serialised_says_why() {
    let fails = |fragment: &Fragment, expected: &str| {
        let error = to_serialized(fragment, &FragmentRegistry::new())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    };
    fails(&user("u"), "`user` is a message");
    fails(&last_assistant_message("u"), "`assistant` is a message");
    fails(
        &fragment("mine", ["x"]),
        "no serialised type for a fragment named `mine`",
    );
    fails(&fragment("hint", ["x"]), "expected a text");
    fails(
        &Fragment::new("guardrail", "x"),
        "expected an object of rule, reason?, action?",
    );
    fails(
        &Fragment::new("alias", object([("term", "t")])),
        "expected an object of term, meaning",
    );
    fails(
        &Fragment::new(
            "alias",
            object([("term", "t"), ("meaning", "m"), ("x", "y")]),
        ),
        "no field `x`",
    );
    fails(&glossary([("a", "1"), ("a", "2")]), "each term once");
    let quoting = principle(Principle {
        policies: vec![user("u").into()],
        ..Principle::default()
    });
    fails(&quoting, "`user` is a message");
}

fn parse_fails(json: &str, expected: &str) {
    let error = parse_fragments(json).unwrap_err().to_string();
    assert!(error.contains(expected), "{json}: {error}");
}

#[test]
fn lists_of_fragments() {
    let mixed = r#"{"fragments":[{"name":"a","data":1,"id":"x"},{"type":"hint","text":"h"}]}"#;
    assert_eq!(
        parse_fragments(mixed).unwrap(),
        [Fragment::new("a", 1).with_id("x"), hint("h")]
    );
    assert_eq!(parse_fragments("[]").unwrap(), []);
    parse_fails("[", "not JSON");
    parse_fails(
        "7",
        "expected an array of fragments or {\"fragments\": […]}, found a number",
    );
    parse_fails("{}", "found an object without it");
    parse_fails(r#"{"fragments":"x"}"#, "found a string under `fragments`");
    parse_fails(
        r#"[{"name":"a","data":1},"x"]"#,
        "fragment 1: expected {\"name\": …, \"data\": …} or {\"type\": …}, found a string",
    );
    parse_fails(r#"[{"name":"a"}]"#, "fragment 0: `a` needs a field `data`");
    parse_fails(
        r#"[{"name":1,"data":1}]"#,
        "fragment 0: field `name` of `fragment`: expected a string, found a number",
    );
    parse_fails(
        r#"[{"name":"a","data":1,"extra":1}]"#,
        "fragment 0: `a` has no field `extra`",
    );
    parse_fails(
        r#"[{"name":"user","data":"u","type":"message"}]"#,
        "fragment 0: `user` is a message",
    );
    parse_fails(
        r#"[{"type":"user","text":"u"}]"#,
        "fragment 0: `user` is a message",
    );
    parse_fails(
        r#"[{"type":"nope"}]"#,
        "fragment 0: unknown serialised fragment type `nope`",
    );
    parse_fails(
        r#"[{"type":"hint"}]"#,
        "fragment 0: `hint` needs a field `text`",
    );
    parse_fails(
        r#"[{"type":"hint","text":["x"]}]"#,
        "field `text` of `hint`: expected a text, found an array",
    );
    parse_fails(
        r#"[{"type":"hint","text":"x","id":"y"}]"#,
        "`hint` has no field `id`",
    );
    parse_fails(
        r#"[{"type":"workflow","task":"t","steps":"s"}]"#,
        "field `steps` of `workflow`: expected an array",
    );
    parse_fails(
        r#"[{"type":"policy","rule":"r","policies":[{"type":"nope"}]}]"#,
        "unknown serialised fragment type `nope`",
    );
}

#[test]
fn depth_is_limited_with_an_error() {
    let nested = |levels: usize| (0..levels).fold(FragmentData::from(1), |inner, _| [inner].into());
    assert!(!nested(MAX_DEPTH).is_deeper_than(MAX_DEPTH));
    assert!(nested(MAX_DEPTH + 1).is_deeper_than(MAX_DEPTH));
    assert!(nested(MAX_DEPTH).to_json().is_ok());
    assert!(matches!(
        nested(MAX_DEPTH + 1).to_json(),
        Err(FragmentError::TooDeep)
    ));
    let policies = |levels| {
        (0..levels).fold(policy(Policy::default()), |inner, _| {
            policy(Policy {
                policies: vec![inner.into()],
                ..Policy::default()
            })
        })
    };
    assert!(to_serialized(&policies(40), &FragmentRegistry::new()).is_ok());
    assert!(matches!(
        to_serialized(&policies(50), &FragmentRegistry::new()),
        Err(FragmentError::TooDeep)
    ));
    for levels in [200, 100_000] {
        let json = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(
            matches!(FragmentData::from_json(&json), Err(FragmentError::TooDeep)),
            "{levels}"
        );
        let open = "{\"a\":".repeat(levels);
        assert!(
            matches!(parse_fragments(&open), Err(FragmentError::TooDeep)),
            "{levels}"
        );
    }
}
