//! Namespaces as one tool, toolkits on demand, and the providers' own search.

use contexture_catalogue::{Catalogue, ModelSpec};
use contexture_ir::{RequestOptions, ToolDefinition, Transcript};
use contexture_render::{Format as Rendering, Grouping};
use contexture_testdata::request_validator;
use contexture_tools::{
    ArgsSchema, Choice, Criterion, LoadedToolkits, Name, Offer, OfferRequest, Registry, Tool,
    ToolGroup, ToolSearchMode, ToolSupport,
};
use contexture_wire::{Dialect, DocumentKind, Format, lower};
use serde_json::{Value, json};

use crate::fixtures::{names, raw, tool};

fn crm() -> Registry {
    let mut registry = Registry::new();
    registry
        .register_group(ToolGroup::namespace("crm", "Customers and orders."))
        .unwrap();
    let find = Tool::function(
        "find",
        "Finds customers",
        raw(r##"{"type":"object","properties":{
            "query":{"type":"string","description":"Name or e-mail"},
            "kinds":{"type":"array","items":{"type":"string"}},
            "where":{"$ref":"#/$defs/place"},
            "$ref":{"type":"string"}
          },"required":["query"],"$defs":{"place":{"type":"object","properties":{"next":{"$ref":"#/$defs/place"},"all":{"$ref":"#"}}}}}"##),
    );
    let drop = Tool::function(
        "drop",
        "Deletes a customer",
        raw(
            r#"{"type":"object","properties":{"id":{"anyOf":[{"type":"integer"},{"type":"null"}]},"why":{"enum":["gone",1]}},"required":["id"]}"#,
        ),
    );
    for tool in [find, drop] {
        registry.register(tool.in_group("crm")).unwrap();
    }
    registry.register(tool("think", "Notes a thought")).unwrap();
    registry
}

fn with(registry: &Registry, loaded: &LoadedToolkits, manner: ToolSupport) -> Offer {
    registry.offer(OfferRequest {
        choice: &Choice::all_tools(),
        loaded,
        latched: None,
        support: manner,
        limit: None,
    })
}

fn schema(definition: &ToolDefinition) -> Value {
    let ToolDefinition::Function(function) = definition else {
        panic!("{definition:?}");
    };
    function.parameters.as_ref().unwrap().parse_as().unwrap()
}

#[test]
fn a_namespace_stands_beside_flat_tools_with_real_schemas() {
    let offer = crm().offer_all();
    assert_eq!(names(&offer.tools), ["crm", "think"]);
    assert!(offer.excluded.is_empty());
    let schema = schema(&offer.tools[0]);
    assert_eq!(
        schema["properties"]["action"]["enum"],
        json!(["drop", "find"])
    );
    let find = &schema["properties"]["args"]["anyOf"][1];
    assert_eq!(find["required"], json!(["query"]));
    let base = "#/properties/args/anyOf/1";
    assert_eq!(
        find["properties"]["where"]["$ref"],
        format!("{base}/$defs/place")
    );
    assert_eq!(find["properties"]["$ref"], json!({"type": "string"}));
    let place = &find["$defs"]["place"]["properties"];
    assert_eq!(place["all"]["$ref"], base);
    // Each reference names what it named before.
    let pointer = |reference: &Value| {
        reference
            .as_str()
            .unwrap()
            .trim_start_matches('#')
            .to_owned()
    };
    assert_eq!(
        schema.pointer(&pointer(&find["properties"]["where"]["$ref"])),
        Some(&find["$defs"]["place"])
    );
    assert_eq!(schema.pointer(&pointer(&place["all"]["$ref"])), Some(find));
}

#[test]
fn actions_are_described_from_their_schemas() {
    let offer = crm().offer_all();
    let ToolDefinition::Function(function) = &offer.tools[0] else {
        panic!();
    };
    assert_eq!(
        function.description.as_deref().unwrap(),
        "Customers and orders.\n\n\
         `action` names one of these, `args` are its arguments:\n\
         - drop(id: integer | null, why?: \"gone\" | 1): Deletes a customer\n\
         - find($ref?: string, kinds?: string[], query: string, where?: place): Finds customers\n    \
         query: Name or e-mail"
    );
}

#[test]
fn where_schemas_cannot_be_joined_arguments_are_any_object() {
    let flat = ToolSupport {
        args: ArgsSchema::Flat,
        ..ToolSupport::default()
    };
    let offer = with(&crm(), &LoadedToolkits::default(), flat);
    assert_eq!(
        schema(&offer.tools[0])["properties"]["args"],
        json!({"type": "object"})
    );
    let mut registry = crm();
    let named =
        raw(r#"{"type":"object","$id":"https://example.org/x","properties":{"a":{"$ref":"y"}}}"#);
    registry
        .register(Tool::function("odd", "", named).in_group("crm"))
        .unwrap();
    let offer = registry.offer_all();
    assert_eq!(
        schema(&offer.tools[0])["properties"]["args"],
        json!({"type": "object"})
    );
}

#[test]
fn actions_are_chosen_one_by_one_and_ranked_together() {
    let offer = crm().offer(OfferRequest {
        choice: &Choice::by_names(["crm/find"]),
        loaded: &LoadedToolkits::default(),
        latched: None,
        support: ToolSupport::default(),
        limit: None,
    });
    assert_eq!(names(&offer.tools), ["crm"]);
    let schema = schema(&offer.tools[0]);
    assert_eq!(schema["properties"]["action"]["enum"], json!(["find"]));
    assert_eq!(schema["properties"]["args"]["required"], json!(["query"]));
    let task = Choice::by_task("delete that customer", 1);
    let offer = crate::fixtures::offer(&crm(), &task, None);
    assert_eq!(names(&offer.tools), ["crm"]);
    let removed: Vec<String> = offer.excluded.iter().map(|r| r.tool.to_string()).collect();
    assert_eq!(removed, ["think"]);
}

fn kits() -> Registry {
    let mut registry = crm();
    registry
        .register_group(ToolGroup::toolkit("git", "Version <control> & history"))
        .unwrap();
    registry
        .register_group(ToolGroup::toolkit("audio", "Sound"))
        .unwrap();
    for (name, kit) in [("commit", "git"), ("blame", "git"), ("a_beep", "audio")] {
        let tool = tool(name, "A tool").in_group(kit).with_tags([kit]);
        registry.register(tool).unwrap();
    }
    registry
}

fn loaded(kits: &[&str]) -> LoadedToolkits {
    kits.iter().map(Name::from).collect()
}

#[test]
fn toolkits_are_loaded_at_the_end_and_rewind() {
    let registry = kits();
    let start = with(
        &registry,
        &LoadedToolkits::default(),
        ToolSupport::default(),
    );
    assert_eq!(names(&start.tools), ["crm", "load_toolkit", "think"]);
    assert_eq!(start.excluded.len(), 3);
    assert_eq!(
        schema(&start.tools[1])["properties"]["toolkit"]["enum"],
        json!(["audio", "git"])
    );
    let next = |loaded: &LoadedToolkits, latched: &Offer| {
        registry.offer(OfferRequest {
            choice: &Choice::all_tools(),
            loaded,
            latched: Some(&latched.selection),
            support: ToolSupport::default(),
            limit: None,
        })
    };
    let git = next(&loaded(&["git"]), &start);
    assert_eq!(
        names(&git.tools),
        ["crm", "load_toolkit", "think", "blame", "commit"]
    );
    let both = next(&loaded(&["git", "audio"]), &git);
    assert!(both.tools.starts_with(&git.tools) && git.tools.starts_with(&start.tools));
    assert_eq!(both.tools.len(), 6);
    // A loaded toolkit is not measured against tags and tasks: the model asked for it.
    let choice =
        Choice::by_task("think", 1).with_criterion(Criterion::Tags(["other".to_owned()].into()));
    let asked = registry.offer(OfferRequest {
        choice: &choice,
        loaded: &loaded(&["audio"]),
        latched: None,
        support: ToolSupport::default(),
        limit: None,
    });
    assert_eq!(names(&asked.tools), ["load_toolkit", "think", "a_beep"]);
    // Rewound: the state says that nothing is loaded, and the offer is the first one again.
    let text = serde_json::to_string(&LoadedToolkits::default()).unwrap();
    let rewound: LoadedToolkits = serde_json::from_str(&text).unwrap();
    assert_eq!(next(&rewound, &both).tools, start.tools);
}

#[test]
fn the_directory_is_escaped_and_holds_still() {
    let registry = kits();
    let fragment = registry.tools_fragment().unwrap();
    let text = Rendering::Xml
        .renderer(Grouping::Off)
        .render(&[fragment])
        .unwrap();
    assert!(
        text.contains("Version &lt;control&gt; &amp; history"),
        "{text}"
    );
    assert!(text.contains("blame, commit"), "{text}");
    assert!(crm().tools_fragment().is_none());
}

/// What the format writes for these tools, checked against the provider's schema.
fn lowered(tools: Vec<ToolDefinition>, format: Format, name: &str) -> Value {
    let hello = contexture_ir::Item::parse(r#"{"type":"message","role":"user","content":"hi"}"#);
    let transcript = Transcript {
        model: Some("m".to_owned()),
        items: vec![hello.unwrap()],
        tools,
        options: RequestOptions {
            max_output_tokens: Some(10),
            ..RequestOptions::default()
        },
        ..Transcript::default()
    };
    let lowered = lower(&Dialect::of(format), DocumentKind::Request, &transcript);
    assert_eq!(lowered.losses, []);
    let document: Value = serde_json::from_str(&lowered.json).unwrap();
    let findings = request_validator(name).validation_errors(&document);
    assert!(findings.is_empty(), "{findings:?} {document}");
    document
}

#[test]
fn every_target_takes_namespaces_and_loaders() {
    let tools = with(&kits(), &loaded(&["git"]), ToolSupport::default()).tools;
    for (format, name) in [
        (Format::OpenAiChat, "openai-chat"),
        (Format::OpenAiResponses, "openai-responses"),
        (Format::Anthropic, "anthropic"),
        (Format::Gemini, "gemini"),
    ] {
        lowered(tools.clone(), format, name);
    }
}

fn model(name: &str) -> &'static ModelSpec {
    Catalogue::builtin().resolve(name).unwrap()
}

#[test]
fn the_catalogue_says_who_searches() {
    for (name, format, expected) in [
        (
            "claude-opus-4-8",
            "anthropic",
            ToolSearchMode::AnthropicBm25,
        ),
        (
            "claude-sonnet-4-20250514",
            "anthropic",
            ToolSearchMode::Loader,
        ),
        ("gpt-5.4", "openai-responses", ToolSearchMode::OpenAi),
        ("gpt-5.4", "openai-chat", ToolSearchMode::Loader),
        ("gpt-5.1", "openai-responses", ToolSearchMode::Loader),
    ] {
        assert_eq!(
            ToolSupport::for_model(model(name), format).search,
            expected,
            "{name} {format}"
        );
    }
}

#[test]
fn providers_search_deferred_tools() {
    let registry = kits();
    let anthropic = ToolSupport::for_model(model("claude-opus-4-8"), "anthropic");
    let offer = with(&registry, &LoadedToolkits::default(), anthropic);
    assert!(offer.excluded.is_empty());
    let document = lowered(offer.tools.clone(), Format::Anthropic, "anthropic");
    let tools = document["tools"].as_array().unwrap();
    let deferred: Vec<&str> = tools
        .iter()
        .filter(|tool| tool["defer_loading"] == json!(true))
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(deferred, ["a_beep", "blame", "commit"]);
    assert!(
        tools
            .iter()
            .any(|tool| tool["type"] == "tool_search_tool_bm25_20251119")
    );
    // What is loaded changes nothing: the provider keeps track of it.
    assert_eq!(
        with(&registry, &loaded(&["git"]), anthropic).tools,
        offer.tools
    );

    let openai = ToolSupport::for_model(model("gpt-5.4"), "openai-responses");
    let offer = with(&registry, &LoadedToolkits::default(), openai);
    let document = lowered(offer.tools, Format::OpenAiResponses, "openai-responses");
    let tools = document["tools"].as_array().unwrap();
    let kit = tools.iter().find(|tool| tool["name"] == "git").unwrap();
    assert_eq!(kit["type"], "namespace");
    assert_eq!(kit["tools"][1]["name"], "commit");
    assert_eq!(kit["tools"][1]["defer_loading"], true);
    assert!(tools.iter().any(|tool| tool["type"] == "tool_search"));

    // Names that OpenAI refuses are deferred one by one, where wire writes them otherwise.
    let mut registry = kits();
    registry
        .register(tool("git.log", "").in_group("git"))
        .unwrap();
    let offer = with(&registry, &LoadedToolkits::default(), openai);
    let document = {
        let ToolDefinition::Function(log) = &offer.tools[4] else {
            panic!("{:?}", offer.tools);
        };
        assert_eq!(log.name, "git.log");
        log.extra.wire_fields("openai-responses")
    };
    assert_eq!(document.get("defer_loading").unwrap().get(), "true");
}
