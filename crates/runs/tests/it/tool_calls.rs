//! Calls of tools: their arguments, their time, their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use contexture_ir::{Output, Part, Raw};
use contexture_runs::{
    Abort, Allowed, Permit, Resolution, ToolBox, ToolCall, ToolConcurrency, ToolFailure,
    ToolOptions, ToolOutput, function_call_output,
};
use contexture_tools::{Call, LoadedToolkits, Policy, Tool, ToolGroup};

fn schema() -> Raw {
    Raw::parse(r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#)
        .unwrap()
}

fn tool(name: &str) -> Tool {
    Tool::function(name, "", schema())
}

async fn echo(call: ToolCall) -> Result<ToolOutput, ToolFailure> {
    Ok(call.arguments.get().into())
}

fn permit(tools: &ToolBox, call: &Call) -> Permit {
    match tools.resolve_call(call, "call_1", &LoadedToolkits::default()) {
        Ok(Resolution::Allowed(Allowed::Run(permit))) => permit,
        other => unreachable!("{other:?}"),
    }
}

fn failure(tools: &ToolBox, call: &Call) -> String {
    let failure = tools
        .resolve_call(call, "call_1", &LoadedToolkits::default())
        .unwrap_err();
    format!("{}: {failure}", failure.kind())
}

async fn run(tools: &ToolBox, name: &str) -> Result<ToolOutput, ToolFailure> {
    let permit = permit(tools, &Call::new(name, r#"{"n":1}"#));
    tools.run_tool(permit, &Abort::new()).await
}

#[tokio::test]
async fn arguments_are_mended_checked_and_never_cut() {
    let mut tools = ToolBox::default();
    tools.add_tool(tool("count"), echo).unwrap();
    for (arguments, expected) in [
        (r#"{"n":1}"#, r#"{"n":1}"#),
        ("{n: 1,}", r#"{"n":1}"#),
        (r#""{\"n\": 2}""#, r#"{"n": 2}"#),
    ] {
        let permit = permit(&tools, &Call::new("count", arguments));
        let output = tools.run_tool(permit, &Abort::new()).await.unwrap();
        assert_eq!(output, ToolOutput::from(expected));
    }
    for (arguments, expected) in [
        (
            r#"{"n":"x"}"#,
            r#"bad_arguments: count: /n: expected integer, found "x""#,
        ),
        (
            "{}",
            "bad_arguments: count: /n: expected a value, for it is required, found nothing",
        ),
        (
            r#"{"n":12"#,
            "bad_arguments: count: the arguments end too early; call again with all of them",
        ),
        (
            "[1]",
            r#"bad_arguments: count: the arguments are to be an object, found "[1]""#,
        ),
    ] {
        assert_eq!(failure(&tools, &Call::new("count", arguments)), expected);
    }
    assert_eq!(
        failure(&tools, &Call::new("coumt", "{}")),
        r#"unknown_tool: unknown tool "coumt""#
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_ends_with_its_time_and_with_the_run() {
    let mut tools = ToolBox::default();
    let heard = Arc::new(AtomicUsize::new(0));
    let hears = Arc::clone(&heard);
    let hang = move |call: ToolCall| {
        let hears = Arc::clone(&hears);
        async move {
            tokio::spawn(async move {
                call.abort.wait_for_abort().await;
                hears.fetch_add(1, Ordering::SeqCst);
            });
            std::future::pending::<Result<ToolOutput, ToolFailure>>().await
        }
    };
    let limit = Duration::from_secs(5);
    let options = ToolOptions {
        timeout: Some(limit),
        ..ToolOptions::default()
    };
    tools.add_tool_with(tool("hang"), options, hang).unwrap();
    let start = tokio::time::Instant::now();
    let failure = run(&tools, "hang").await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "hang was stopped: it gave no result within 5s"
    );
    assert_eq!(start.elapsed(), limit);
    let abort = Abort::new();
    let call = Call::new("hang", r#"{"n":1}"#);
    let (ended, ()) = tokio::join!(tools.run_tool(permit(&tools, &call), &abort), async {
        abort.abort("enough")
    });
    assert_eq!(ended.unwrap_err().to_string(), "cancelled: enough");
    let late = tools.run_tool(permit(&tools, &call), &abort).await;
    assert_eq!(late.unwrap_err().kind(), "cancelled");
    let dropped = tokio::time::timeout(Duration::from_secs(1), run(&tools, "hang")).await;
    assert!(dropped.is_err());
    tokio::task::yield_now().await;
    assert_eq!(heard.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn failures_and_panics_are_words_for_the_model() {
    let mut tools = ToolBox::default();
    let fails =
        |_: ToolCall| async { Err::<ToolOutput, _>(ToolFailure::from_message("no such file")) };
    let panics = |call: ToolCall| async move {
        assert!(call.arguments.get().is_empty(), "not empty");
        Ok(ToolOutput::from(""))
    };
    tools.add_tool(tool("fails"), fails).unwrap();
    tools.add_tool(tool("panics"), panics).unwrap();
    for (name, expected) in [
        ("fails", "no such file"),
        ("panics", "it panicked: not empty"),
    ] {
        let result = run(&tools, name).await;
        assert_eq!(result.as_ref().unwrap_err().kind(), "tool_failed");
        let told = function_call_output("call_1", result);
        assert_eq!(
            (told.output, told.is_error),
            (Output::Text(expected.to_owned()), Some(true))
        );
    }
    let told = function_call_output("call_1", Ok("fine".into()));
    assert_eq!((told.call_id.as_str(), told.is_error), ("call_1", None));
}

#[tokio::test]
async fn long_outputs_are_cut_with_a_note_and_parts_refused() {
    let mut tools = ToolBox::default();
    let options = ToolOptions {
        max_bytes: 200,
        concurrency: ToolConcurrency::Parallel,
        ..ToolOptions::default()
    };
    let parts = |_: ToolCall| async {
        let output = Output::Parts(vec![Part::output_text("p".repeat(300))]);
        Ok(ToolOutput {
            output,
            truncated_bytes: 0,
            final_value: None,
        })
    };
    let short = |_: ToolCall| async {
        let output = Output::Parts(vec![Part::output_text("p")]);
        Ok(ToolOutput {
            output,
            truncated_bytes: 0,
            final_value: None,
        })
    };
    tools
        .add_tool_with(tool("text"), options, |_: ToolCall| async {
            Ok("ä".repeat(101).replacen('ä', "a", 1).into())
        })
        .unwrap();
    tools
        .add_tool_with(tool("exact"), options, |_: ToolCall| async {
            Ok("e".repeat(200).into())
        })
        .unwrap();
    tools.add_tool_with(tool("parts"), options, parts).unwrap();
    tools.add_tool_with(tool("short"), options, short).unwrap();
    let cut = run(&tools, "text").await.unwrap();
    let expected = format!(
        "a{}\n[2 of 201 bytes are cut off here: the output is limited to 200]",
        "ä".repeat(99)
    );
    assert_eq!(
        (cut.output, cut.truncated_bytes),
        (Output::Text(expected), 2)
    );
    assert_eq!(run(&tools, "exact").await.unwrap().truncated_bytes, 0);
    assert!(run(&tools, "short").await.is_ok());
    let refused = run(&tools, "parts").await.unwrap_err().to_string();
    assert!(
        refused.starts_with("the output has") && refused.ends_with("the limit is 200"),
        "{refused}"
    );
    assert_eq!(
        permit(&tools, &Call::new("text", r#"{"n":1}"#)).tool_concurrency(),
        ToolConcurrency::Parallel
    );
}

#[tokio::test]
async fn who_is_asked_about_runs_after_a_yes_and_toolkits_load() {
    let mut tools = ToolBox::new(Policy::default().ask("send").ask("load_toolkit"));
    tools
        .add_group(ToolGroup::toolkit("mail", "letters"))
        .unwrap();
    tools.add_tool(tool("send").in_group("mail"), echo).unwrap();
    let send = Call::new("send", r#"{"n":1}"#);
    let first = tools
        .resolve_call(&send, "call_1", &LoadedToolkits::default())
        .unwrap_err();
    assert_eq!(first.kind(), "unknown_tool");
    let load = Call::new("load_toolkit", r#"{"toolkit":"mail"}"#);
    let Ok(Resolution::Ask(pending)) =
        tools.resolve_call(&load, "call_2", &LoadedToolkits::default())
    else {
        unreachable!()
    };
    let Allowed::Load(kit) = pending.approve() else {
        unreachable!()
    };
    let mut loaded = LoadedToolkits::default();
    loaded.mark_loaded(kit);
    let Ok(Resolution::Ask(pending)) = tools.resolve_call(&send, "call_3", &loaded) else {
        unreachable!()
    };
    let request = pending.tool_request();
    assert_eq!(
        (request.tool.as_str(), request.called_name.as_str()),
        ("mail/send", "send")
    );
    let Allowed::Run(permit) = pending.approve() else {
        unreachable!()
    };
    assert_eq!(permit.call_id(), "call_3");
    assert!(tools.run_tool(permit, &Abort::new()).await.is_ok());
}

#[tokio::test]
async fn a_tool_that_is_gone_or_nobody_runs_is_not_run() {
    let mut tools = ToolBox::default();
    let id = tools.add_tool(tool("count"), echo).unwrap();
    tools.add_hosted_tool(tool("search")).unwrap();
    let call = Call::new("count", r#"{"n":1}"#);
    let permit = permit(&tools, &call);
    assert!(tools.remove_tool(&id).is_some());
    assert_eq!(
        tools
            .run_tool(permit, &Abort::new())
            .await
            .unwrap_err()
            .kind(),
        "unknown_tool"
    );
    let hosted = failure(&tools, &Call::new("search", r#"{"n":1}"#));
    assert_eq!(
        hosted,
        "unknown_tool: search cannot be called here: nothing runs it"
    );
}
