//! Names of tools: one scope for the tool box, sub-agents and layers.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use async_trait::async_trait;
use contexture_compile::Contribution;
use contexture_ir::Raw;
use contexture_layers::{FunctionSpec, Layer, LayerError, LayerId, LayerSpec, Layers, RecallInput};
use contexture_runs::{Agent, AgentError, SubAgent, run_turn_with_text};

use crate::test_support::{agent, chat, model, tools};

/// A layer whose function has this name.
struct Offers(&'static str);

#[async_trait]
impl Layer for Offers {
    type State = ();

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(LayerId::new("offers").unwrap())
    }

    async fn recall(&self, (): &(), _: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
        Ok(Vec::new())
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        let id = LayerId::new("offers").unwrap();
        let function = FunctionSpec::new(&id, "do", "Does.", schema);
        vec![function.with_tool_name(self.0)]
    }
}

#[tokio::test]
async fn tools_of_one_name_are_refused_with_both_origins() {
    let ran = Arc::new(AtomicU32::new(0));
    let model = model([]);
    let sub = || SubAgent::new(agent(&model), "Thinks.");
    let error = |built: Result<Agent, AgentError>| built.unwrap_err().to_string();

    // Whichever was added first.
    let boxed = agent(&model).with_tools(tools(&ran)).unwrap();
    let name = "add";
    assert_eq!(
        error(boxed.clone().with_sub_agent(name, sub())),
        format!("the tool box and a sub-agent both offer a tool named {name:?}: rename one")
    );
    let with_sub = agent(&model).with_sub_agent(name, sub()).unwrap();
    assert_eq!(
        error(with_sub.clone().with_tools(tools(&ran))),
        format!("a sub-agent and the tool box both offer a tool named {name:?}: rename one")
    );
    assert!(
        error(with_sub.clone().with_sub_agent(name, sub()))
            .starts_with("a sub-agent and a sub-agent")
    );
    // A name that the target would rewrite.
    assert_eq!(
        error(agent(&model).with_sub_agent("ask a friend", sub())),
        "openai-chat takes no tool named \"ask a friend\": name the sub-agent with letters, digits and `_`"
    );

    // Layers are the conversation's, so they are compared when a run begins; nothing is stored then.
    for (agent, origin) in [(boxed, "the tool box"), (with_sub, "a sub-agent")] {
        let layers = Layers::new().with_layer(Offers("add")).unwrap();
        let chat = chat().await;
        chat.set_layers(layers);
        let refused = run_turn_with_text(&chat, &agent, "Do it.")
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), "agent");
        let wanted =
            format!("{origin} and the layer offers both offer a tool named {name:?}: rename one");
        assert_eq!(refused.to_string(), wanted);
        assert_eq!(chat.head().await.unwrap(), None);
    }
}
