//! A denied tool never runs, by any route: its name, a namespace's action, a group beside the name, a loaded toolkit, an
//! approval, a permit given under an earlier policy.

use std::sync::{Arc, Mutex};

use contexture_ir::Raw;
use contexture_runs::{Abort, Allowed, Permit, Resolution, ToolBox, ToolCall, ToolOutput};
use contexture_tools::{
    Call, LoadedToolkits, Name, Policy, PolicyVerdict, RuleTarget, Tool, ToolGroup, ToolId,
};
use futures_util::FutureExt as _;
use proptest::prelude::*;

const NAMES: [&str; 4] = ["read", "write", "send", "drop"];
const GROUPS: [Option<&str>; 3] = [None, Some("files"), Some("mail")];
const PATTERNS: [&str; 12] = [
    "read",
    "write",
    "files/*",
    "mail/*",
    "*",
    "files/send",
    "send",
    "*_a",
    "*_b",
    "load_toolkit",
    "r*",
    "files/read",
];

type Ran = Arc<Mutex<Vec<ToolId>>>;

/// Four flat tools, four of a namespace, four of a toolkit; two of each kind are marked.
fn toolbox(ran: &Ran) -> ToolBox {
    let mut tools = ToolBox::default();
    tools.add_group(ToolGroup::namespace("files", "")).unwrap();
    tools.add_group(ToolGroup::toolkit("mail", "")).unwrap();
    for group in GROUPS {
        for (n, name) in NAMES.into_iter().enumerate() {
            let name = match group {
                Some("mail") => format!("{name}_b"),
                Some(_) => name.to_owned(),
                None => format!("{name}_a"),
            };
            let mut tool = Tool::function(&name, "", Raw::parse("{}").unwrap());
            if n % 2 == 0 {
                tool = tool.with_marks(["network"]);
            }
            if let Some(group) = group {
                tool = tool.in_group(group);
            }
            let ran = Arc::clone(ran);
            let note = move |call: ToolCall| {
                ran.lock().unwrap().push(call.tool);
                async { Ok(ToolOutput::from("done")) }
            };
            tools.add_tool(tool, note).unwrap();
        }
    }
    tools
}

fn verdict() -> impl Strategy<Value = PolicyVerdict> {
    prop_oneof![
        Just(PolicyVerdict::Allow),
        Just(PolicyVerdict::Ask),
        Just(PolicyVerdict::Deny)
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let pattern =
        prop::sample::select(&PATTERNS[..]).prop_map(|pattern| RuleTarget::Name(pattern.into()));
    let on = prop_oneof![4 => pattern, 1 => Just(RuleTarget::Mark("network".to_owned()))];
    let rules = prop::collection::vec((on, verdict()), 0..5);
    (rules, verdict()).prop_map(|(rules, otherwise)| {
        let start = Policy {
            default_verdict: otherwise,
            ..Policy::default()
        };
        rules
            .into_iter()
            .fold(start, |policy, (on, verdict)| policy.with_rule(on, verdict))
    })
}

fn call() -> impl Strategy<Value = Call> {
    let name = prop::sample::select(&NAMES[..]);
    let suffix = prop::sample::select(&["", "_a", "_b"][..]);
    let group = prop::sample::select(
        &[
            None,
            Some("files"),
            Some("mail"),
            Some("FILES"),
            Some("none"),
        ][..],
    );
    let named = (name.clone(), suffix.clone(), group).prop_map(|(name, suffix, group)| Call {
        group: group.map(str::to_owned),
        ..Call::new(format!("{name}{suffix}"), "{}")
    });
    let action = (name, suffix).prop_map(|(name, suffix)| {
        let arguments = format!(r#"{{"action":"{name}{suffix}","args":{{}}}}"#);
        Call::new("files", arguments)
    });
    let load = Just(Call::new("load_toolkit", r#"{"toolkit":"mail"}"#));
    prop_oneof![4 => named, 3 => action, 1 => load]
}

/// A permit by whatever is said yes to, and whether a person did.
fn permit(tools: &ToolBox, call: &Call, loaded: &LoadedToolkits) -> Option<(Permit, bool)> {
    let (allowed, asked) = match tools.resolve_call(call, "c", loaded).ok()? {
        Resolution::Allowed(allowed) => (allowed, false),
        Resolution::Ask(pending) => (pending.approve(), true),
    };
    match allowed {
        Allowed::Run(permit) => Some((permit, asked)),
        Allowed::Load(_) => None,
    }
}

fn says(tools: &ToolBox, tool: &ToolId) -> PolicyVerdict {
    tools
        .policy()
        .decide_tool(tools.registry().get(tool).unwrap())
        .verdict
}

proptest! {
    #[test]
    fn a_denied_tool_never_runs(
        (before, after) in (policy(), policy()),
        calls in prop::collection::vec((call(), any::<bool>(), any::<bool>()), 1..20),
    ) {
        let ran = Ran::default();
        let mut tools = toolbox(&ran);
        for (call, changes, loads) in calls {
            tools.set_policy(before.clone());
            let mut loaded = LoadedToolkits::default();
            if loads {
                loaded.mark_loaded(Name::from("mail"));
            }
            let Some((permit, asked)) = permit(&tools, &call, &loaded) else {
                continue;
            };
            let tool = permit.tool().clone();
            prop_assert_ne!(says(&tools, &tool), PolicyVerdict::Deny);
            prop_assert_eq!(says(&tools, &tool) == PolicyVerdict::Ask, asked);
            if changes {
                tools.set_policy(after.clone());
            }
            let may = match says(&tools, &tool) {
                PolicyVerdict::Allow => true,
                PolicyVerdict::Ask => asked,
                PolicyVerdict::Deny => false,
            };
            let run = async { tools.run_tool(permit, &Abort::new()).await };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let result = runtime.block_on(run.map(|result| result.map_err(|failure| failure.kind())));
            let noted: Vec<ToolId> = std::mem::take(&mut *ran.lock().unwrap());
            if may {
                prop_assert_eq!(result, Ok(ToolOutput::from("done")));
                prop_assert_eq!(noted, [tool]);
            } else {
                prop_assert_eq!(result, Err("denied"));
                prop_assert_eq!(noted, []);
            }
        }
    }
}
