//! `history`: the window and nothing else.

use contexture_compile::{HistoryPolicy, Window};
use contexture_layers::builtin::History;
use contexture_layers::{Layers, Projection};

use crate::recording_layer::{begun, context, recall};

#[tokio::test]
async fn it_sets_the_window_and_leaves_the_rest_of_the_policy() {
    let cases = [
        (History::last_turns(3), Window::Turns(3)),
        (History::last_turns(0), Window::Turns(0)),
        (History::last_tokens(9_000), Window::Tokens(9_000)),
        (History::last_tokens(u64::MAX), Window::Tokens(u64::MAX)),
    ];
    for (layer, window) in cases {
        let layers = Layers::new().with_layer(layer).unwrap();
        let states = begun(&layers).await;
        let context = context();
        let spec = layers.specs().next().unwrap().clone();
        let given = Projection {
            policy: HistoryPolicy::for_one_call(),
            ..Projection::default()
        };
        let call = recall(&context, &[], &spec);
        let gathered = layers
            .recall_all(&states, call, given, &mut <_>::default())
            .await
            .unwrap();
        let expected = HistoryPolicy {
            window,
            ..HistoryPolicy::for_one_call()
        };
        assert_eq!(gathered.projection.policy, expected);
        assert!(gathered.contributions.is_empty());
    }
}

#[tokio::test]
async fn of_two_the_later_one_counts() {
    let named = |name: &'static str, order| {
        move |spec: &mut contexture_layers::LayerSpec| {
            spec.id = crate::recording_layer::id(name);
            spec.order = order;
        }
    };
    let layers = Layers::new()
        .with_layer(History::last_turns(1).with_spec(named("late", 2)))
        .unwrap();
    let layers = layers
        .with_layer(History::last_turns(2).with_spec(named("early", 1)))
        .unwrap();
    let states = begun(&layers).await;
    let context = context();
    let spec = layers.specs().next().unwrap().clone();
    let call = recall(&context, &[], &spec);
    let gathered = layers
        .recall_all(&states, call, Projection::default(), &mut <_>::default())
        .await
        .unwrap();
    assert_eq!(gathered.projection.policy.window, Window::Turns(1));
}
