//! All metrics: name, kind, unit, attributes, and where the classes of histograms end.
//!
//! Not here: when they are recorded.

use metrics::{Unit, describe_counter, describe_histogram};

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// A sum that only grows.
    Counter,
    /// How often a value fell between these bounds.
    Histogram {
        /// The upper bounds of all classes but the last, ascending.
        bounds: &'static [f64],
    },
}

/// A metric of this library.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Name of the metric.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// Its unit, by UCUM.
    pub unit: &'static str,
    /// The attributes it may have.
    pub attributes: &'static [&'static str],
    /// What it says, in a sentence.
    pub about: &'static str,
}

pub(crate) const TOKEN_USAGE: &str = "gen_ai.client.token.usage";
pub(crate) const CALL_DURATION: &str = "gen_ai.client.operation.duration";
pub(crate) const FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";
pub(crate) const AGENT_DURATION: &str = "gen_ai.invoke_agent.duration";
pub(crate) const TOOL_DURATION: &str = "gen_ai.execute_tool.duration";
pub(crate) const COMPILE_DURATION: &str = "ctx.compile.duration";
pub(crate) const COMPILE_TOKENS: &str = "ctx.compile.tokens";
pub(crate) const OMITTED_TOKENS: &str = "ctx.compile.omitted_tokens";
pub(crate) const CACHE_READ: &str = "ctx.cache.read_tokens";
pub(crate) const CACHE_PREDICTED: &str = "ctx.cache.predicted_read_tokens";
pub(crate) const CALL_COST: &str = "ctx.call.cost";
pub(crate) const ITEMS: &str = "ctx.items.appended";
pub(crate) const COMPACTIONS: &str = "ctx.compactions";
pub(crate) const LAYER_FAILURES: &str = "ctx.layer.failures";
pub(crate) const RETRIES: &str = "ctx.client.retries";

/// From a token to 67 million.
// Bounds as the semantic conventions give them, so that dashboards made for other programs fit.
const TOKENS: MetricKind = MetricKind::Histogram {
    bounds: &[
        1.0,
        4.0,
        16.0,
        64.0,
        256.0,
        1024.0,
        4096.0,
        16_384.0,
        65_536.0,
        262_144.0,
        1_048_576.0,
        4_194_304.0,
        16_777_216.0,
        67_108_864.0,
    ],
};
/// From 10 ms to 82 s.
// Bounds of the conventions; longer calls fall into the last class.
const CALLS: MetricKind = MetricKind::Histogram {
    bounds: &[
        0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    ],
};
/// From 100 ms to 7 minutes.
const RUNS: MetricKind = MetricKind::Histogram {
    bounds: &[
        0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6,
    ],
};
/// From 100 µs to 1.6 s.
// Bounds of our own: a compile takes a fraction of a millisecond to a second.
const COMPILES: MetricKind = MetricKind::Histogram {
    bounds: &[
        0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512, 0.1024,
        0.2048, 0.4096, 0.8192, 1.6384,
    ],
};

/// From a thousandth of a cent to 100 dollars.
const COSTS: MetricKind = MetricKind::Histogram {
    bounds: &[
        0.000_01, 0.000_03, 0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0,
        30.0, 100.0,
    ],
};

const CALL: &[&str] = &[
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
];
const MODEL: &[&str] = &["gen_ai.provider.name", "gen_ai.request.model"];

/// Every metric there is.
pub const METRICS: &[Metric] = &[
    Metric {
        name: TOKEN_USAGE,
        kind: TOKENS,
        unit: "{token}",
        attributes: &[
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.response.model",
            "gen_ai.token.type",
        ],
        about: "What a call of a model read (`input`) and wrote (`output`), as reported",
    },
    Metric {
        name: CALL_DURATION,
        kind: CALLS,
        unit: "s",
        attributes: &[
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.response.model",
            "error.type",
        ],
        about: "How long a call of a model took, also one that failed or was called off",
    },
    Metric {
        name: FIRST_CHUNK,
        kind: CALLS,
        unit: "s",
        attributes: CALL,
        about: "How long a streamed answer took to begin",
    },
    Metric {
        name: AGENT_DURATION,
        kind: RUNS,
        unit: "s",
        attributes: &["gen_ai.agent.name", "error.type"],
        about: "How long an agent worked without a pause, its children included",
    },
    Metric {
        name: TOOL_DURATION,
        kind: CALLS,
        unit: "s",
        attributes: &["gen_ai.tool.name", "gen_ai.tool.type", "error.type"],
        about: "How long a tool, or a function of a layer, ran; those with `error.type` failed",
    },
    Metric {
        name: COMPILE_DURATION,
        kind: COMPILES,
        unit: "s",
        attributes: &["gen_ai.provider.name", "gen_ai.request.model", "error.type"],
        about: "How long a compile took",
    },
    Metric {
        name: COMPILE_TOKENS,
        kind: TOKENS,
        unit: "{token}",
        attributes: MODEL,
        about: "What a compiled call holds, as counted",
    },
    Metric {
        name: OMITTED_TOKENS,
        kind: MetricKind::Counter,
        unit: "{token}",
        attributes: MODEL,
        about: "What compiled calls would have held beside what they hold, as counted",
    },
    Metric {
        name: CACHE_READ,
        kind: MetricKind::Counter,
        unit: "{token}",
        attributes: MODEL,
        about: "What the provider read from its cache, as answers report it",
    },
    Metric {
        name: CACHE_PREDICTED,
        kind: MetricKind::Counter,
        unit: "{token}",
        attributes: MODEL,
        about: "What it was predicted to read there, for the same answers",
    },
    Metric {
        name: CALL_COST,
        kind: COSTS,
        unit: "USD",
        attributes: MODEL,
        about: "What an answer to a run cost, where the price is known",
    },
    Metric {
        name: ITEMS,
        kind: MetricKind::Counter,
        unit: "{item}",
        attributes: &[],
        about: "Items stored, each once",
    },
    Metric {
        name: COMPACTIONS,
        kind: MetricKind::Counter,
        unit: "{compaction}",
        attributes: &[],
        about: "Compactions stored",
    },
    Metric {
        name: LAYER_FAILURES,
        kind: MetricKind::Counter,
        unit: "{failure}",
        attributes: &["ctx.layer.id", "ctx.layer.hook", "error.type"],
        about: "Hooks of layers that failed",
    },
    Metric {
        name: RETRIES,
        kind: MetricKind::Counter,
        unit: "{retry}",
        attributes: &["gen_ai.provider.name", "gen_ai.request.model", "error.type"],
        about: "Requests over HTTP that were sent again before an answer began, and why",
    },
];

/// Tells the recorder that is installed what each metric is. Once, by whoever installs it.
pub fn describe_metrics() {
    // `metrics` has no unit for `{token}`; the recorder of `contexture-otlp` takes units from the table
    // instead.
    for metric in METRICS {
        let unit = match metric.unit {
            "s" => Unit::Seconds,
            _ => Unit::Count,
        };
        match metric.kind {
            MetricKind::Counter => describe_counter!(metric.name, unit, metric.about),
            MetricKind::Histogram { .. } => describe_histogram!(metric.name, unit, metric.about),
        }
    }
}
