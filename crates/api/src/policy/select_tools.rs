//! Tool selection: of many tools, a request offers those that match what the user says.
//!
//! They are chosen by the first user message that matches any, and stay, because a provider's cache begins with the tools.
//! So the choice follows from the history alone, on every server alike. It fails open: tools that cannot be ranked are all
//! offered.
//!
//! Not here: ranking (`contexture-tools`), tools that may not be offered (`tools`).

use std::collections::BTreeSet;

use contexture::ir::{Item, Role, ToolChoice, ToolDefinition, Transcript};
use contexture::tools::{IndexedUnit, Registry, Tool, ToolError};

/// Returns the tools of a request with this history: of its functions the `most` that match best, those that were called, and the one
/// that is forced.
#[must_use]
pub fn select_tools<'a>(
    most: usize,
    request: &Transcript,
    history: impl Iterator<Item = &'a Item> + Clone,
) -> Vec<ToolDefinition> {
    let mut tools = request.tools.clone();
    let functions = tools.iter().filter(|tool| is_function(tool));
    let forced = match &request.options.tool_choice {
        // A choice in a provider's own format may name tools that cannot be read here.
        Some(ToolChoice::Other { .. }) => return tools,
        Some(ToolChoice::Function { name }) => Some(name.as_str()),
        _ => None,
    };
    // Ranking would leave nothing out.
    if functions.count() <= most {
        return tools;
    }
    let best = rank_functions(most, request, history.clone()).unwrap_or_else(|error| {
        tracing::warn!(%error, "all tools are offered, for they cannot be ranked");
        None
    });
    let Some(best) = best else {
        return tools;
    };
    let called: BTreeSet<&str> = history.filter_map(called_function).collect();
    tools.retain(|tool| {
        let name = tool.name();
        // A called tool stays: providers refuse a history with calls of an undefined one.
        !is_function(tool) || best.contains(name) || called.contains(name) || forced == Some(name)
    });
    tools
}

/// Returns the functions that best match what the user says; `None` if nothing matches any.
fn rank_functions<'a>(
    most: usize,
    request: &Transcript,
    history: impl Iterator<Item = &'a Item>,
) -> Result<Option<BTreeSet<String>>, ToolError> {
    let mut registry = Registry::new();
    for tool in request.tools.iter().filter(|tool| is_function(tool)) {
        registry.register(Tool::new(tool.clone()))?;
    }
    let ranked = |text: &str| {
        let ranked = registry.index().rank_units(text, most);
        // A message that matches nothing decides nothing: the next one is tried.
        let fits = ranked.first().is_some_and(|best| best.score > 0.0);
        let names = ranked.into_iter().filter_map(|ranked| match ranked.unit {
            IndexedUnit::Tool(tool) => Some(tool.name.as_str().to_owned()),
            IndexedUnit::Namespace(_) => None,
        });
        fits.then(|| names.collect())
    };
    let mut users = history.filter(|item| match item {
        Item::Message(message) => message.role == Role::User,
        _ => false,
    });
    Ok(users.find_map(|item| ranked(&item.text())))
}

const fn is_function(tool: &ToolDefinition) -> bool {
    matches!(tool, ToolDefinition::Function(_))
}

fn called_function(item: &Item) -> Option<&str> {
    match item {
        Item::FunctionCall(call) => Some(&call.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contexture::{Format, lift};
    use serde_json::{Value, json};

    fn check(more: &Value, messages: &Value, expected: &[&str]) {
        let tool = |name: &str, about: &str| json!({"type": "function", "function": {"name": name, "description": about}});
        let mut request = json!({"model": "gpt-4.1", "messages": messages, "tools": [
            tool("send_mail", "Sends an e-mail"), tool("weather", "Weather forecast for a city"),
            tool("shell", "Runs a command"), tool("book_train", "Books a seat in a train")]});
        let fields = more.as_object().unwrap().clone();
        request.as_object_mut().unwrap().extend(fields);
        let lifted = lift(Format::OpenAiChat, &request.to_string()).unwrap();
        let request = &lifted.transcript;
        let selected = select_tools(2, request, request.items.iter());
        let names: Vec<&str> = selected.iter().map(ToolDefinition::name).collect();
        assert_eq!(names, expected);
    }

    const ALL: [&str; 4] = ["send_mail", "weather", "shell", "book_train"];

    #[test]
    fn select_tools_keeps_first_match_called_and_forced_tools() {
        let says = |text: &str| json!({"role": "user", "content": text});
        let weather = says("What is the weather in this city?");
        let two = ["weather", "book_train"];
        let none = json!({});
        check(&none, &json!([weather]), &two);
        let hello = says("Hello!");
        check(&none, &json!([hello]), &ALL);
        check(
            &none,
            &json!([hello, weather, says("Run a command: shell")]),
            &two,
        );
        let call = json!({"role": "assistant", "tool_calls": [{"id": "1", "type": "function",
            "function": {"name": "shell", "arguments": "{}"}}]});
        check(
            &none,
            &json!([weather, call]),
            &["weather", "shell", "book_train"],
        );
        let insists =
            json!({"tool_choice": {"type": "function", "function": {"name": "send_mail"}}});
        check(
            &insists,
            &json!([weather]),
            &["send_mail", "weather", "book_train"],
        );
        let allowed = json!({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto",
            "tools": [{"type": "function", "function": {"name": "shell"}}]}}});
        check(&allowed, &json!([weather]), &ALL);
        let same = json!({"type": "function", "function": {"name": "a"}});
        let twice = json!({"tools": [same, same, same]});
        check(&twice, &json!([weather]), &["a", "a", "a"]);
    }
}
