//! Lists that cannot be are refused when they are made.

use async_trait::async_trait;
use contexture_compile::{Budget, Contribution};
use contexture_ir::Raw;
use contexture_layers::{
    FunctionSpec, Layer, LayerError, LayerId, LayerSpec, Layers, OfferedTo, RecallInput,
};

use crate::recording_layer::{Log, RecordingLayer, begun, id, list};

/// A layer of nothing but functions.
struct Functions(&'static str, Vec<FunctionSpec>);

#[async_trait]
impl Layer for Functions {
    type State = ();

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(id(self.0))
    }

    async fn recall(&self, (): &(), _: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
        Ok(Vec::new())
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        self.1.clone()
    }
}

fn function(layer: &str, tool: &str) -> FunctionSpec {
    FunctionSpec::new(&id(layer), "f", "Does.", Raw::parse("{}").unwrap()).with_tool_name(tool)
}

#[test]
fn a_name_twice_is_refused() {
    let log = Log::default();
    let error = list([RecordingLayer::new("a", &log)])
        .with_layer(RecordingLayer::new("a", &log))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "two layers are named a: give one of them another name"
    );
}

#[test]
fn a_tool_twice_is_refused_whoever_offers_it() {
    let one = Layers::new()
        .with_layer(Functions("a", vec![function("a", "f")]))
        .unwrap();
    let error = one
        .with_layer(Functions("b", vec![function("b", "f")]))
        .unwrap_err();
    let reason = "the layers a and b both offer a tool named f: rename one";
    assert_eq!(error.to_string(), reason);
    let both = vec![function("a", "f"), function("a", "f")];
    let error = Layers::new().with_layer(Functions("a", both)).unwrap_err();
    let reason = "the layers a and a both offer a tool named f: rename one";
    assert_eq!(error.to_string(), reason);
}

#[test]
fn a_tool_that_no_provider_takes_is_refused() {
    for tool in ["", "a/b", "a b", "é", &"x".repeat(65)] {
        let layer = Functions("a", vec![function("a", tool)]);
        let error = Layers::new().with_layer(layer).unwrap_err();
        assert!(error.to_string().contains("1 to 64 bytes"), "{error}");
    }
    let mut bad = function("a", "f");
    bad.output = Some(Raw::parse(r#"{"type":"no such type"}"#).unwrap());
    let error = Layers::new()
        .with_layer(Functions("a", vec![bad]))
        .unwrap_err();
    let reason = "the function f of the layer a: ";
    assert!(error.to_string().starts_with(reason), "{error}");
}

#[test]
fn a_budget_that_cannot_be_kept_is_refused() {
    let log = Log::default();
    let with = |budget| {
        Layers::new().with_layer(RecordingLayer::new("a", &log).with(|spec| spec.budget = budget))
    };
    let budget = |min, max, share| Budget { min, max, share };
    assert!(with(budget(5, Some(5), 100)).is_ok());
    assert!(with(budget(5, None, 0)).is_ok());
    let cases = [
        (
            budget(6, Some(5), 100),
            "a minimum of 6 tokens above its maximum of 5",
        ),
        (budget(0, None, 101), "a share of 101 per cent"),
    ];
    for (budget, reason) in cases {
        let error = with(budget).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn names_of_layers() {
    for good in ["a", "working-memory", "x_1", &"n".repeat(64)] {
        assert_eq!(LayerId::new(good).unwrap().as_str(), good);
    }
    for bad in ["", "A", "a/b", "a b", "é", "a\0", &"n".repeat(65)] {
        assert!(LayerId::new(bad).is_err(), "{bad:?}");
    }
}

#[tokio::test]
async fn what_is_for_programs_is_not_offered_to_models() {
    let host = FunctionSpec {
        offered_to: OfferedTo::Host,
        ..function("a", "host")
    };
    let layers = Layers::new()
        .with_layer(Functions("a", vec![function("a", "f"), host]))
        .unwrap();
    assert_eq!(layers.tool_definitions().len(), 1);
    assert_eq!(layers.functions().count(), 2);
}

#[tokio::test]
async fn a_layer_is_found_by_type_and_by_name() {
    let log = Log::default();
    let layers = list([
        RecordingLayer::new("a", &log),
        RecordingLayer::new("b", &log),
    ]);
    let states = begun(&layers).await;
    assert_eq!(
        layers.layer_of_type::<RecordingLayer>().unwrap().0.as_str(),
        "a"
    );
    assert!(layers.layer_of_type::<Functions>().is_none());
    assert_eq!(*layers.state::<RecordingLayer>(&states).unwrap(), 100);
    assert!(layers.state::<Functions>(&states).is_err());
    let error = layers.export_state(&states, "c").unwrap_err();
    assert_eq!(error.to_string(), "there is no layer c; there are: a, b");
}
