//! Cache marks: set where a provider takes them, found again, and gone without a trace.

use contexture_wire::{
    CacheTtl, Format, HeadPart, disable_automatic_markers, head_markers, markers,
    remove_head_markers, remove_markers, set_head_marker, set_marker,
};

use crate::recorded::{findings, validators};

const CLAUDE: &str = r#"{"type":"ephemeral"}"#;
const BREAK: &str = r#"{"mode":"explicit"}"#;

/// Marks an element, and takes the mark off again.
#[track_caller]
fn check(format: Format, element: &str, expected: Option<&str>) {
    let marked = set_marker(format, element, CacheTtl::Usual);
    assert_eq!(marked.as_deref(), expected, "{format} {element}");
    let Some(marked) = marked else { return };
    assert_eq!(markers(format, &marked), [CacheTtl::Usual]);
    let bare = remove_markers(format, &marked).unwrap();
    assert_eq!(markers(format, &bare), []);
    assert_eq!(
        set_marker(format, &bare, CacheTtl::Usual).as_ref(),
        Some(&marked)
    );
    assert_eq!(
        set_marker(format, &marked, CacheTtl::Usual).as_ref(),
        Some(&marked),
        "once is enough"
    );
}

fn valid(format: Format, request: &str) {
    let found = findings(validators(format), request);
    assert_eq!(found, Vec::<String>::new(), "{request}");
}

#[test]
fn anthropic_marks_the_last_block_that_can_carry_one() {
    let check = |element: &str, expected: Option<String>| {
        check(Format::Anthropic, element, expected.as_deref());
        if let Some(expected) = expected {
            let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}"#;
            valid(
                Format::Anthropic,
                &format!(r#"{{"model":"m","max_tokens":1,"messages":[{call},{expected}]}}"#),
            );
        }
    };
    check(
        r#"{"role":"user","content":"x\"y"}"#,
        Some(format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"x\"y","cache_control":{CLAUDE}}}]}}"#
        )),
    );
    // Results of tools, and the model's turns with calls.
    check(
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"a","content":"b"}]}"#,
        Some(format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"a"}},{{"type":"tool_result","tool_use_id":"a","content":"b","cache_control":{CLAUDE}}}]}}"#
        )),
    );
    check(
        r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"a","name":"f","input":{}}]}"#,
        Some(format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"a"}},{{"type":"tool_use","id":"a","name":"f","input":{{}},"cache_control":{CLAUDE}}}]}}"#
        )),
    );
    // Thinking cannot carry one; the block before it can.
    let thinking = r#"{"type":"thinking","thinking":"t","signature":"s"}"#;
    check(
        &format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"a"}},{thinking}]}}"#),
        Some(format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"a","cache_control":{CLAUDE}}},{thinking}]}}"#
        )),
    );
    check(
        &format!(r#"{{"role":"assistant","content":[{thinking}]}}"#),
        None,
    );
    check(r#"{"role":"user","content":[]}"#, None);
    check(r#"{"role":"user","content":" "}"#, None);
    check("", None);
}

#[test]
fn only_the_last_element_is_touched() {
    let (a, b) = (
        r#"{"role":"user","content":[{"type":"text","text":"a"}]}"#,
        r#"{ "role" : "user", "content" : [ {"text":"b","type":"text"} ] }"#,
    );
    let marked = set_marker(Format::Anthropic, &format!("{a},{b}"), CacheTtl::Long).unwrap();
    let expected = r#"{ "role" : "user", "content" : [ {"text":"b","type":"text","cache_control":{"type":"ephemeral","ttl":"1h"}} ] }"#;
    assert_eq!(marked, format!("{a},{expected}"));
    assert_eq!(markers(Format::Anthropic, &marked), [CacheTtl::Long]);
    assert_eq!(
        remove_markers(Format::Anthropic, &marked),
        Some(format!("{a},{b}"))
    );
}

#[test]
fn openai_marks_what_people_and_tools_say() {
    let chat = |element: &str, expected: Option<String>| {
        check(Format::OpenAiChat, element, expected.as_deref());
        if let Some(expected) = expected {
            valid(
                Format::OpenAiChat,
                &format!(r#"{{"model":"m","messages":[{expected}]}}"#),
            );
        }
    };
    chat(
        r#"{"role":"system","content":"x"}"#,
        Some(format!(
            r#"{{"role":"system","content":[{{"type":"text","text":"x","prompt_cache_breakpoint":{BREAK}}}]}}"#
        )),
    );
    chat(
        r#"{"role":"tool","tool_call_id":"a","content":"x"}"#,
        Some(format!(
            r#"{{"role":"tool","tool_call_id":"a","content":[{{"type":"text","text":"x","prompt_cache_breakpoint":{BREAK}}}]}}"#
        )),
    );
    chat(r#"{"role":"assistant","content":"x"}"#, None);
    let responses = |element: &str, expected: Option<String>| {
        check(Format::OpenAiResponses, element, expected.as_deref());
        if let Some(expected) = expected {
            valid(
                Format::OpenAiResponses,
                &format!(r#"{{"model":"m","input":[{expected}]}}"#),
            );
        }
    };
    responses(
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}"#,
        Some(format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"x","prompt_cache_breakpoint":{BREAK}}}]}}"#
        )),
    );
    responses(
        r#"{"type":"function_call_output","call_id":"a","output":"x"}"#,
        Some(format!(
            r#"{{"type":"function_call_output","call_id":"a","output":[{{"type":"input_text","text":"x","prompt_cache_breakpoint":{BREAK}}}]}}"#
        )),
    );
    responses(
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}"#,
        None,
    );
    responses(
        r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}"#,
        None,
    );
    check(
        Format::Gemini,
        r#"{"role":"user","parts":[{"text":"x"}]}"#,
        None,
    );
}

#[test]
fn the_head_is_marked_in_its_parts() {
    let before = r#"{"model":"m","tools":[{"name":"f","input_schema":{"type":"object"}}],"system":"s","messages":["#;
    let check = |part, expected: &str| {
        let marked = set_head_marker(Format::Anthropic, before, part, CacheTtl::Usual).unwrap();
        assert_eq!(marked, expected);
        assert_eq!(
            head_markers(Format::Anthropic, &marked, part),
            [CacheTtl::Usual]
        );
        let bare = remove_head_markers(Format::Anthropic, &marked, part).unwrap();
        assert_eq!(head_markers(Format::Anthropic, &bare, part), []);
        valid(
            Format::Anthropic,
            &format!(r#"{marked}{{"role":"user","content":"x"}}],"max_tokens":1}}"#),
        );
    };
    check(
        HeadPart::System,
        &format!(
            r#"{{"model":"m","tools":[{{"name":"f","input_schema":{{"type":"object"}}}}],"system":[{{"type":"text","text":"s","cache_control":{CLAUDE}}}],"messages":["#
        ),
    );
    check(
        HeadPart::Tools,
        &format!(
            r#"{{"model":"m","tools":[{{"name":"f","input_schema":{{"type":"object"}},"cache_control":{CLAUDE}}}],"system":"s","messages":["#
        ),
    );
    assert_eq!(
        set_head_marker(
            Format::Anthropic,
            r#"{"model":"m","messages":["#,
            HeadPart::System,
            CacheTtl::Usual
        ),
        None
    );
}

#[test]
fn words_that_look_like_marks_are_none() {
    let said = r#"{"role":"user","content":[{"type":"text","text":"\"cache_control\":1"},{"type":"tool_use","id":"a","name":"f","input":{"cache_control":{"type":"ephemeral"}}}]}"#;
    assert_eq!(markers(Format::Anthropic, said), []);
    assert_eq!(remove_markers(Format::Anthropic, said), None);
}

#[test]
fn all_marks_are_found_those_inside_results_too() {
    let element = r#"{"role":"user","content":[{"cache_control":{"type":"ephemeral","ttl":"1h"},"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]},{"type":"text" , "cache_control" : {"type":"ephemeral"} , "text":"c"}]}"#;
    assert_eq!(
        markers(Format::Anthropic, element),
        [CacheTtl::Usual, CacheTtl::Long, CacheTtl::Usual]
    );
    let bare = remove_markers(Format::Anthropic, element).unwrap();
    assert_eq!(
        bare,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"b"}]},{"type":"text" , "text":"c"}]}"#
    );
}

#[test]
fn the_provider_is_told_to_set_no_mark() {
    let told = disable_automatic_markers(Format::OpenAiChat, r#"],"store":false}"#).unwrap();
    assert_eq!(
        told,
        r#"],"store":false,"prompt_cache_options":{"mode":"explicit"}}"#
    );
    valid(
        Format::OpenAiChat,
        &format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}{told}"#),
    );
    let bare = disable_automatic_markers(Format::OpenAiResponses, "]}").unwrap();
    assert_eq!(bare, r#"],"prompt_cache_options":{"mode":"explicit"}}"#);
    assert_eq!(
        disable_automatic_markers(Format::OpenAiChat, &told),
        None,
        "the request says so already"
    );
    assert_eq!(disable_automatic_markers(Format::Anthropic, "]}"), None);
}
