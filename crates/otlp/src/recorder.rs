//! What `metrics` is told, told to OpenTelemetry.
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
    pub(crate) fn new(meter: Meter) -> Self {
        let about = METRICS.iter().map(|metric| {
            let about = About {
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
            registry: Registry::new(Instruments { meter, about }),
        }
    }

    fn describe(&self, key: &KeyName, unit: Option<Unit>, text: SharedString) {
        let mut about = self.registry.storage().lock();
        about
            .entry(key.as_str().to_owned())
            .or_insert_with(|| About {
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
        self.describe(&key, unit, text);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&key, unit, text);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe(&key, unit, text);
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
    about: Mutex<BTreeMap<String, About>>,
}

/// What is known of a metric.
#[derive(Clone, Default)]
struct About {
    unit: String,
    text: String,
    bounds: Option<&'static [f64]>,
}

impl Instruments {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, About>> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn about(&self, key: &Key) -> About {
        self.lock().get(key.name()).cloned().unwrap_or_default()
    }
}

impl Storage<Key> for Instruments {
    type Counter = Arc<Sum>;
    type Gauge = Arc<Level>;
    type Histogram = Arc<Values>;

    fn counter(&self, key: &Key) -> Arc<Sum> {
        let about = self.about(key);
        let made = self.meter.u64_counter(key.name().to_owned());
        Arc::new(Sum {
            told: made
                .with_unit(about.unit)
                .with_description(about.text)
                .build(),
            attributes: attributes(key),
            so_far: Mutex::default(),
        })
    }

    fn gauge(&self, key: &Key) -> Arc<Level> {
        let about = self.about(key);
        let made = self.meter.f64_gauge(key.name().to_owned());
        Arc::new(Level {
            told: made
                .with_unit(about.unit)
                .with_description(about.text)
                .build(),
            attributes: attributes(key),
            now: Mutex::default(),
        })
    }

    fn histogram(&self, key: &Key) -> Arc<Values> {
        let about = self.about(key);
        let mut made = self.meter.f64_histogram(key.name().to_owned());
        if let Some(bounds) = about.bounds {
            made = made.with_boundaries(bounds.to_vec());
        }
        Arc::new(Values {
            told: made
                .with_unit(about.unit)
                .with_description(about.text)
                .build(),
            attributes: attributes(key),
        })
    }
}

fn attributes(key: &Key) -> Vec<KeyValue> {
    let labels = key.labels();
    labels
        .map(|label| KeyValue::new(label.key().to_owned(), label.value().to_owned()))
        .collect()
}

/// A counter with its attributes.
struct Sum {
    told: OtelCounter<u64>,
    attributes: Vec<KeyValue>,
    so_far: Mutex<u64>,
}

impl CounterFn for Sum {
    fn increment(&self, value: u64) {
        let mut so_far = self.so_far.lock().unwrap_or_else(PoisonError::into_inner);
        *so_far = so_far.saturating_add(value);
        self.told.add(value, &self.attributes);
    }

    /// A sum that only grows: a smaller one is not told.
    fn absolute(&self, value: u64) {
        let mut so_far = self.so_far.lock().unwrap_or_else(PoisonError::into_inner);
        self.told
            .add(value.saturating_sub(*so_far), &self.attributes);
        *so_far = value.max(*so_far);
    }
}

/// A gauge with its attributes.
struct Level {
    told: OtelGauge<f64>,
    attributes: Vec<KeyValue>,
    now: Mutex<f64>,
}

impl Level {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = change(*now);
        self.told.record(*now, &self.attributes);
    }
}

impl GaugeFn for Level {
    fn increment(&self, value: f64) {
        self.change(|now| now + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|now| now - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

/// A histogram with its attributes.
struct Values {
    told: OtelHistogram<f64>,
    attributes: Vec<KeyValue>,
}

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.told.record(value, &self.attributes);
    }
}
