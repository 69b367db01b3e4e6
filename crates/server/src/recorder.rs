//! Where figures are gathered: one recorder a process.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// The process's recorder, installed when first asked for; `None` if the program installed another.
pub(crate) fn recorder() -> Option<PrometheusHandle> {
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    RECORDER
        .get_or_init(|| PrometheusBuilder::new().install_recorder().ok())
        .clone()
}
