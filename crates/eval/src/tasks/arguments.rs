//! Arguments of tool calls, read as models write them: a number may come as text.

use serde_json::Value;

/// Reads a text that must be there.
pub(crate) fn read_text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, String> {
    find_text(arguments, name).ok_or_else(|| format!("`{name}` is missing: expected a text"))
}

/// Finds a text that may be left out; an empty one counts as left out.
pub(crate) fn find_text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    let text = arguments.get(name)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Reads the number of an order.
pub(crate) fn read_order(arguments: &Value) -> Result<u32, String> {
    let value = arguments.get("order").unwrap_or(&Value::Null);
    let number = match value {
        Value::String(text) => text.trim().trim_start_matches('#').parse().ok(),
        value => value.as_u64().and_then(|number| u32::try_from(number).ok()),
    };
    number.ok_or_else(|| format!("`order` is {value}: expected a number such as 1001"))
}

/// Reads an amount of dollars, in cents.
pub(crate) fn read_cents(arguments: &Value) -> Result<i64, String> {
    let value = arguments.get("amount").unwrap_or(&Value::Null);
    let dollars = match value {
        Value::String(text) => text.trim().trim_start_matches('$').parse().ok(),
        value => value.as_f64(),
    };
    let dollars: Option<f64> = dollars.filter(|dollars| (0.01..1e6).contains(dollars));
    let dollars =
        dollars.ok_or_else(|| format!("`amount` is {value}: expected dollars such as 12.50"))?;
    // Below a million dollars, so a number of cents always fits.
    Ok((dollars * 100.0).round() as i64)
}
