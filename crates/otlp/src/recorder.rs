//! A recorder that hands what `metrics` records to OpenTelemetry.
//!
//! Units, sentences and the bounds of our own histograms are those of [`METRICS`]; others have what they were described
//! with before they were told first.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_telemetry::{METRICS, MetricKind};
use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn};
use metrics::{Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_util::registry::{Registry, Storage};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use opentelemetry::metrics::{
    Counter as OtelCounter, Gauge as OtelGauge, Histogram as OtelHistogram,
};

/// A recorder that tells OpenTelemetry. Each metric with its attributes is kept, as `metrics` is meant to be used.
pub struct OtlpRecorder {
    registry: Registry<Key, Instruments>,
}

impl OtlpRecorder {
    pub(crate) fn from_meter(meter: Meter) -> Self {
        // Our own metrics are described beforehand; the facade cannot carry bounds of histograms.
        let about = METRICS.iter().map(|metric| {
            let about = MetricDescription {
                unit: metric.unit.to_owned(),
                text: metric.about.to_owned(),
                bounds: match metric.kind {
                    MetricKind::Counter => None,
                    MetricKind::Histogram { bounds } => Some(bounds),
                },
            };
            (metric.name.to_owned(), about)
        });
        let about = Mutex::new(about.collect());
        Self {
            registry: Registry::new(Instruments {
                meter,
                descriptions: about,
            }),
        }
    }

    fn describe_metric(&self, key: &KeyName, unit: Option<Unit>, text: SharedString) {
        let mut about = self.registry.storage().lock_descriptions();
        about
            .entry(key.as_str().to_owned())
            // The first description stays: ours must not be replaced by a program's own.
            .or_insert_with(|| MetricDescription {
                unit: unit.map_or("", |unit| unit.as_canonical_label()).to_owned(),
                text: text.into_owned(),
                bounds: None,
            });
    }
}

impl fmt::Debug for OtlpRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpRecorder").finish_non_exhaustive()
    }
}

impl Recorder for OtlpRecorder {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe_metric(&key, unit, text);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe_metric(&key, unit, text);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe_metric(&key, unit, text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.registry
            .get_or_create_counter(key, |sum| Counter::from_arc(Arc::clone(sum)))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.registry
            .get_or_create_gauge(key, |level| Gauge::from_arc(Arc::clone(level)))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.registry
            .get_or_create_histogram(key, |values| Histogram::from_arc(Arc::clone(values)))
    }
}

struct Instruments {
    meter: Meter,
    descriptions: Mutex<BTreeMap<String, MetricDescription>>,
}

/// What is known of a metric.
#[derive(Clone, Default)]
struct MetricDescription {
    unit: String,
    text: String,
    bounds: Option<&'static [f64]>,
}

impl Instruments {
    fn lock_descriptions(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, MetricDescription>> {
        self.descriptions
            .lock()
            // A panic while the lock was held leaves the map whole.
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn metric_description(&self, key: &Key) -> MetricDescription {
        self.lock_descriptions()
            .get(key.name())
            .cloned()
            .unwrap_or_default()
    }
}

impl Storage<Key> for Instruments {
    type Counter = Arc<OtelCounterCell>;
    type Gauge = Arc<OtelGaugeCell>;
    type Histogram = Arc<OtelHistogramCell>;

    fn counter(&self, key: &Key) -> Arc<OtelCounterCell> {
        let about = self.metric_description(key);
        let made = self.meter.u64_counter(key.name().to_owned());
        Arc::new(OtelCounterCell {
            instrument: made
                .with_unit(about.unit)
                .with_description(about.text)
                .build(),
            attributes: otel_attributes(key),
            total: Mutex::default(),
        })
    }

    fn gauge(&self, key: &Key) -> Arc<OtelGaugeCell> {
        let about = self.metric_description(key);
        let made = self.meter.f64_gauge(key.name().to_owned());
        Arc::new(OtelGaugeCell {
            instrument: made
                .with_unit(about.unit)
                .with_description(about.text)
                .build(),
            attributes: otel_attributes(key),
            value: Mutex::default(),
        })
    }

    fn histogram(&self, key: &Key) -> Arc<OtelHistogramCell> {
        let about = self.metric_description(key);
        let mut made = self.meter.f64_histogram(key.name().to_owned());
        // Without bounds OpenTelemetry uses its own, which are made for milliseconds.
        if let Some(bounds) = about.bounds {
            made = made.with_boundaries(bounds.to_vec());
        }
        Arc::new(OtelHistogramCell {
            instrument: made
                .with_unit(about.unit)
                .with_description(about.text)
                .build(),
            attributes: otel_attributes(key),
        })
    }
}

fn otel_attributes(key: &Key) -> Vec<KeyValue> {
    let labels = key.labels();
    labels
        .map(|label| KeyValue::new(label.key().to_owned(), label.value().to_owned()))
        .collect()
}

/// A counter with its attributes.
struct OtelCounterCell {
    instrument: OtelCounter<u64>,
    attributes: Vec<KeyValue>,
    total: Mutex<u64>,
}

impl CounterFn for OtelCounterCell {
    fn increment(&self, value: u64) {
        let mut so_far = self.total.lock().unwrap_or_else(PoisonError::into_inner);
        // The sum is kept because `absolute` needs it; OpenTelemetry's counters only take differences.
        *so_far = so_far.saturating_add(value);
        self.instrument.add(value, &self.attributes);
    }

    /// A sum that only grows: a smaller one is not told.
    fn absolute(&self, value: u64) {
        let mut so_far = self.total.lock().unwrap_or_else(PoisonError::into_inner);
        self.instrument
            .add(value.saturating_sub(*so_far), &self.attributes);
        *so_far = value.max(*so_far);
    }
}

/// A gauge with its attributes.
struct OtelGaugeCell {
    instrument: OtelGauge<f64>,
    attributes: Vec<KeyValue>,
    value: Mutex<f64>,
}

impl OtelGaugeCell {
    fn update_value(&self, change: impl FnOnce(f64) -> f64) {
        let mut now = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        // OpenTelemetry's gauges have no difference either, so the level is kept here.
        *now = change(*now);
        self.instrument.record(*now, &self.attributes);
    }
}

impl GaugeFn for OtelGaugeCell {
    fn increment(&self, value: f64) {
        self.update_value(|now| now + value);
    }

    fn decrement(&self, value: f64) {
        self.update_value(|now| now - value);
    }

    fn set(&self, value: f64) {
        self.update_value(|_| value);
    }
}

/// A histogram with its attributes.
struct OtelHistogramCell {
    instrument: OtelHistogram<f64>,
    attributes: Vec<KeyValue>,
}

impl HistogramFn for OtelHistogramCell {
    fn record(&self, value: f64) {
        self.instrument.record(value, &self.attributes);
    }
}
