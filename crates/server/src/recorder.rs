//! Where figures are gathered: one recorder a process.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// Samples are kept one by one for so long before they are summed up.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The process's recorder, installed when first asked for; `None` if the program installed another.
pub(crate) fn install_recorder() -> Option<PrometheusHandle> {
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    RECORDER
        .get_or_init(|| PrometheusBuilder::new().install_recorder().ok())
        .clone()
}

/// Sums up samples again and again, whether anybody asks for the figures or not.
pub(crate) async fn run_upkeep_loop(figures: PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP_INTERVAL).await;
        figures.run_upkeep();
    }
}
