//! Lists: the conventions want some values as lists, which `tracing` has not, so spans carry them as JSON.

use std::time::Duration;

use contexture_telemetry::LIST_FIELDS;
use opentelemetry::{Array, StringValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// An exporter that sends lists as lists.
#[derive(Debug)]
pub(crate) struct ListFields<E>(pub(crate) E);

impl<E: SpanExporter> SpanExporter for ListFields<E> {
    fn export(&self, mut batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        for attribute in batch.iter_mut().flat_map(|span| &mut span.attributes) {
            if LIST_FIELDS.contains(&attribute.key.as_str())
                && let Some(list) = parse_list(&attribute.value)
            {
                attribute.value = Value::Array(Array::String(list));
            }
        }
        self.0.export(batch)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

/// Reads a list of texts from its JSON; `None` for anything else, which is then sent as it is.
fn parse_list(value: &Value) -> Option<Vec<StringValue>> {
    let Value::String(json) = value else {
        return None;
    };
    let texts: Vec<String> = serde_json::from_str(json.as_str()).ok()?;
    Some(texts.into_iter().map(StringValue::from).collect())
}
