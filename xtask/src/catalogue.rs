//! `cargo xtask catalogue`: makes `crates/catalogue/data/models.json` from public price data.
//!
//! The source is LiteLLM's table of models (MIT), which is part of its Python package; additions and corrections are in
//! `crates/catalogue/data/facts.toml`. Without an argument the package is fetched with `pip download`. Not here:
//! reading the result, and a user's own models file, which overrides prices (the catalogue crate's `models_file.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const TABLE: &str = "litellm/model_prices_and_context_window_backup.json";

/// Content of `facts.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FactsFile {
    take: Vec<ProviderImport>,
    #[serde(default)]
    model: Vec<Map<String, Value>>,
    fact: Vec<ModelFact>,
    media: Map<String, Value>,
}

/// Selects the entries of the source that become models of a provider.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderImport {
    provider: String,
    from: String,
    include: Vec<String>,
    exclude: Vec<String>,
    #[serde(default)]
    strip: String,
    defaults: Map<String, Value>,
}

/// Fields merged into the models that match a pattern.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFact {
    models: Vec<String>,
    set: Map<String, Value>,
}

/// Writes `models.json` from the source table at `source`: the JSON file itself or a wheel that contains it.
pub(crate) fn update_catalogue(source: &Path) -> Result<()> {
    let data = data_directory();
    let text = fs::read_to_string(data.join("facts.toml")).context("reading facts.toml")?;
    let facts: FactsFile = toml::from_str(&text).context("facts.toml")?;
    let (table, version) = read_source(source)?;
    let models = build_models(&table, &facts)?;
    let output = data.join("models.json");
    fs::write(&output, format_catalogue(&models, &facts, &version)?)
        .with_context(|| format!("writing {}", output.display()))?;
    eprintln!("{} models in {}", models.len(), output.display());
    Ok(())
}

/// Fetches the newest `litellm` wheel into `directory` with pip and returns its path.
pub(crate) fn download_wheel(directory: &Path) -> Result<PathBuf> {
    let status = Command::new("pip")
        .args(["download", "--quiet", "--no-deps", "--dest"])
        .arg(directory)
        .arg("litellm")
        .status()
        .context("running pip; give the path of a downloaded litellm wheel instead")?;
    ensure!(status.success(), "pip download litellm failed: {status}");
    fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        // The folder was empty before, so there is at most one wheel.
        .find(|path| path.extension().is_some_and(|kind| kind == "whl"))
        .context("pip downloaded no wheel")
}

fn data_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/catalogue/data")
}

fn read_source(source: &Path) -> Result<(Map<String, Value>, String)> {
    let wheel = source.extension().is_some_and(|kind| kind == "whl");
    let (bytes, version) = if wheel {
        let output = Command::new("unzip")
            .arg("-p")
            .arg(source)
            .arg(TABLE)
            .output()
            .context("running unzip")?;
        ensure!(output.status.success(), "{TABLE} is not in the wheel");
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        // A wheel is named name-version-….whl.
        let version = name.split('-').nth(1).unwrap_or("unknown").to_owned();
        (output.stdout, version)
    } else {
        let bytes = fs::read(source).with_context(|| format!("reading {}", source.display()))?;
        (bytes, "unknown".to_owned())
    };
    let table = serde_json::from_slice(&bytes).context("the source is not a JSON object")?;
    Ok((table, version))
}

fn build_models(
    table: &Map<String, Value>,
    facts: &FactsFile,
) -> Result<BTreeMap<String, Map<String, Value>>> {
    let mut models = BTreeMap::new();
    for take in &facts.take {
        let before = models.len();
        for (key, entry) in table {
            // The table also lists models for embeddings, images and speech, which are not used here.
            if entry["litellm_provider"] != json!(take.from)
                || !matches!(entry["mode"].as_str(), Some("chat" | "responses"))
            {
                continue;
            }
            let id = key.strip_prefix(&take.strip).unwrap_or(key);
            if !has_glob_match(&take.include, id) || has_glob_match(&take.exclude, id) {
                continue;
            }
            let id = without_bedrock_version(id);
            if let Some(model) = convert_entry(id, entry, take)? {
                models.insert(id.to_owned(), model);
            }
        }
        ensure!(
            // Otherwise a provider that was renamed in the source would be dropped silently.
            models.len() > before,
            "nothing taken from {} for {}",
            take.from,
            take.provider
        );
    }
    // After the source's models, because each is a copy of one of them.
    for extra in &facts.model {
        let id = require_text(extra, "id")?;
        let like = require_text(extra, "like")?;
        let mut model = models
            .get(like)
            .with_context(|| format!("{id} is to be like {like}, which is not there"))?
            .clone();
        model.insert("id".to_owned(), json!(id));
        models.insert(id.to_owned(), model);
    }
    // Before the facts: a fact that names only the undated model would make its dated copies differ.
    drop_equal_snapshots(&mut models);
    for fact in &facts.fact {
        for pattern in &fact.models {
            let mut matched = false;
            for (id, model) in &mut models {
                if is_glob_match(pattern, id) {
                    matched = true;
                    merge_fields(model, &fact.set);
                }
            }
            // A fact that matches nothing is out of date and must be reviewed.
            ensure!(matched, "the fact for {pattern:?} matches no model");
        }
    }
    for (id, model) in &models {
        let media = require_text(model, "media")?;
        ensure!(
            facts.media.contains_key(media),
            "{id} names media rules {media:?}, which facts.toml lacks"
        );
    }
    Ok(models)
}

/// Strips Bedrock's version from an id: `claude-3-opus-20240229-v1:0`.
fn without_bedrock_version(id: &str) -> &str {
    let id = id.split(':').next().unwrap_or(id);
    id.strip_suffix("-v1")
        .or_else(|| id.strip_suffix("-v2"))
        .unwrap_or(id)
}

fn convert_entry(
    id: &str,
    entry: &Value,
    take: &ProviderImport,
) -> Result<Option<Map<String, Value>>> {
    // Entries without a window are only announced.
    let Some(window) = entry["max_input_tokens"].as_f64() else {
        return Ok(None);
    };
    let mut model = Map::new();
    model.insert("id".to_owned(), json!(id));
    model.insert("provider".to_owned(), json!(take.provider));
    for (name, value) in &take.defaults {
        // These two are merged with the source's values below.
        if name != "cache" && name != "capabilities" {
            model.insert(name.clone(), value.clone());
        }
    }
    // The source has some numbers as floats.
    model.insert("context_window".to_owned(), json!(window as u64));
    if let Some(limit) = entry["max_output_tokens"].as_f64() {
        model.insert("output_limit".to_owned(), json!(limit as u64));
    }
    if let Some(date) = entry["deprecation_date"].as_str() {
        model.insert("retires".to_owned(), json!(date));
    }
    model.insert("prices".to_owned(), read_prices(entry)?);
    model.insert("capabilities".to_owned(), model_capabilities(entry, take));
    model.insert("cache".to_owned(), cache_settings(entry, take));
    Ok(Some(model))
}

fn read_prices(entry: &Value) -> Result<Value> {
    let mut prices = read_tier_prices(entry, "")?;
    let mut tiers: BTreeMap<u64, Map<String, Value>> = BTreeMap::new();
    // The source has the threshold in the field's name; these are all thresholds in use.
    for above in [32, 100, 128, 200, 256, 272] {
        let tier = read_tier_prices(entry, &format!("_above_{above}k_tokens"))?;
        if !tier.is_empty() {
            tiers.insert(above * 1000, tier);
        }
    }
    for tier in entry["tiered_pricing"].as_array().into_iter().flatten() {
        let from = tier
            .pointer("/range/0")
            .and_then(Value::as_f64)
            .unwrap_or(0.0) as u64;
        let found = read_tier_prices(tier, "")?;
        match from {
            // The tier that starts at 0 is the base price.
            0 => prices.extend(found),
            from => drop(tiers.insert(from, found)),
        }
    }
    if !tiers.is_empty() {
        let tiers: Vec<Value> = tiers
            .into_iter()
            .map(|(above, mut tier)| {
                tier.insert("above_input_tokens".to_owned(), json!(above));
                Value::Object(tier)
            })
            .collect();
        prices.insert("tiers".to_owned(), Value::Array(tiers));
    }
    Ok(Value::Object(prices))
}

/// Reads the prices of one tier, in dollars per million tokens, as decimal text.
fn read_tier_prices(entry: &Value, suffix: &str) -> Result<Map<String, Value>> {
    let mut prices = Map::new();
    for (name, field) in [
        ("input", "input_cost_per_token"),
        ("output", "output_cost_per_token"),
        ("cache_read", "cache_read_input_token_cost"),
        ("cache_write", "cache_creation_input_token_cost"),
        (
            "cache_write_1h",
            "cache_creation_input_token_cost_above_1hr",
        ),
        ("input_audio", "input_cost_per_audio_token"),
    ] {
        if let Some(cost) = entry[format!("{field}{suffix}")].as_f64() {
            ensure!(
                // Detects a price per thousand or per million tokens, which would be far above this.
                (0.0..0.1).contains(&cost),
                "{field}{suffix} is {cost} dollars a token"
            );
            // As decimal text and per million tokens, so that prices are never computed with floats later.
            let dollars = format!("{:.6}", cost * 1e6);
            let dollars = dollars.trim_end_matches('0').trim_end_matches('.');
            prices.insert(name.to_owned(), json!(dollars));
        }
    }
    Ok(prices)
}

fn model_capabilities(entry: &Value, take: &ProviderImport) -> Value {
    let mut capabilities = Map::new();
    for (name, field) in [
        ("prefill", "supports_assistant_prefill"),
        (
            "mid_conversation_system",
            "supports_mid_conversation_system",
        ),
        ("tools", "supports_function_calling"),
        ("parallel_tools", "supports_parallel_function_calling"),
        ("images", "supports_vision"),
        ("files", "supports_pdf_input"),
        ("audio", "supports_audio_input"),
        ("reasoning", "supports_reasoning"),
        ("structured_output", "supports_response_schema"),
    ] {
        if let Some(value) = entry[field].as_bool() {
            capabilities.insert(name.to_owned(), json!(value));
        }
    }
    if let Some(Value::Object(defaults)) = take.defaults.get("capabilities") {
        for (name, value) in defaults {
            capabilities
                .entry(name.clone())
                .or_insert_with(|| value.clone());
        }
    }
    // False values are left out: absent means the same, and the file stays small.
    capabilities.retain(|_, value| *value == json!(true));
    Value::Object(capabilities)
}

fn cache_settings(entry: &Value, take: &ProviderImport) -> Value {
    let caches = entry["supports_prompt_caching"] == json!(true)
        || entry["cache_read_input_token_cost"].is_number();
    let mut cache = match take.defaults.get("cache") {
        // How a provider caches is in `facts.toml`; the source only says whether a model does.
        Some(Value::Object(cache)) if caches => cache.clone(),
        _ => return json!({"kind": "none"}),
    };
    if let Some(minimum) = entry["prompt_cache_min_tokens"].as_u64() {
        cache.insert("minimum_tokens".to_owned(), json!(minimum));
    }
    Value::Object(cache)
}

/// Removes dated snapshots whose data equals that of their undated model, which name resolution finds anyway.
fn drop_equal_snapshots(models: &mut BTreeMap<String, Map<String, Value>>) {
    let same = |a: &Map<String, Value>, b: &Map<String, Value>| {
        a.iter().all(|(name, value)| {
            // Dated ids always differ in these.
            matches!(name.as_str(), "id" | "retires") || b.get(name) == Some(value)
        })
    };
    let redundant: Vec<String> = models
        .iter()
        .filter(|(id, model)| {
            without_date(id)
                .is_some_and(|base| models.get(base).is_some_and(|base| same(model, base)))
        })
        .map(|(id, _)| id.clone())
        .collect();
    for id in redundant {
        models.remove(&id);
    }
}

/// Returns the id without `-YYYYMMDD` or `-YYYY-MM-DD`; `None` if it has no date.
fn without_date(id: &str) -> Option<&str> {
    // `-20250929` and `-2025-09-29`.
    [9, 11].into_iter().find_map(|length| {
        let (base, date) = id.split_at_checked(id.len().checked_sub(length)?)?;
        let digits = date.bytes().filter(u8::is_ascii_digit).count();
        let dashes = date.bytes().filter(|&byte| byte == b'-').count();
        (date.starts_with('-') && digits == 8 && digits + dashes == length).then_some(base)
    })
}

fn format_catalogue(
    models: &BTreeMap<String, Map<String, Value>>,
    facts: &FactsFile,
    version: &str,
) -> Result<String> {
    let mut rows: Vec<&Map<String, Value>> = models.values().collect();
    // One model per line in a fixed order, so that an update is readable as a diff.
    rows.sort_by_key(|model| (model["provider"].to_string(), model["id"].to_string()));
    let rows: Vec<String> = rows
        .into_iter()
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()?;
    let media: Vec<String> = facts
        .media
        .iter()
        .map(|(name, rule)| Ok(format!("{}:{}", json!(name), serde_json::to_string(rule)?)))
        .collect::<Result<_>>()?;
    let source = json!({
        "package": "litellm",
        "version": version,
        "licence": "MIT",
        "copyright": "Copyright (c) 2023 Berri AI",
        "made_by": "cargo xtask catalogue",
    });
    Ok(format!(
        "{{\n\"source\":{source},\n\"media\":{{\n{}\n}},\n\"models\":[\n{}\n]\n}}\n",
        media.join(",\n"),
        rows.join(",\n")
    ))
}

fn require_text<'a>(model: &'a Map<String, Value>, field: &str) -> Result<&'a str> {
    match model.get(field) {
        Some(Value::String(text)) => Ok(text),
        _ => bail!("a model lacks {field}: {}", json!(model)),
    }
}

fn merge_fields(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge_fields(into, from),
            _ => drop(into.insert(name.clone(), value.clone())),
        }
    }
}

fn has_glob_match(patterns: &[String], id: &str) -> bool {
    patterns.iter().any(|pattern| is_glob_match(pattern, id))
}

/// Whether `text` matches `pattern`, in which `*` matches any characters.
fn is_glob_match(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut tail) = text.strip_prefix(head) else {
        return false;
    };
    // The part after the last star must end the text; those between may occur anywhere, in order.
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match tail.split_once(part) {
            Some((_, after)) => tail = after,
            None => return false,
        }
    }
    tail.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_written() {
        for (pattern, text, expected) in [
            ("gpt-4", "gpt-4", true),
            ("gpt-4", "gpt-4o", false),
            ("gpt-4-*", "gpt-4-turbo", true),
            ("*-tts*", "gemini-2.5-pro-tts", true),
            ("*-tts*", "gemini-2.5-pro", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
        ] {
            assert_eq!(is_glob_match(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn dates_are_recognised() {
        assert_eq!(without_date("gpt-5.1-2025-11-13"), Some("gpt-5.1"));
        assert_eq!(
            without_date("claude-sonnet-5-20260901"),
            Some("claude-sonnet-5")
        );
        assert_eq!(without_date("gpt-4-0613"), None);
        assert_eq!(without_date("o1"), None);
    }
}
