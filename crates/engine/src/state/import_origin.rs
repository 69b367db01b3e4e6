//! Where an imported conversation came from.

use contexture_ir::{NodeId, Raw};
use contexture_wire::Format;
use serde::{Deserialize, Serialize};

/// The metadata entry that says where a conversation came from.
pub(crate) const IMPORT_KEY: &str = "import";

/// Where an imported conversation came from, as kept in its metadata.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImportOrigin {
    pub(crate) format: String,
    pub(crate) source: String,
    pub(crate) nodes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blob: Option<String>,
}

impl ImportOrigin {
    /// A conversation of our own: it has no origin elsewhere.
    pub(crate) fn not_imported(source: &str) -> Self {
        Self {
            format: Format::Items.as_str().to_owned(),
            source: source.to_owned(),
            nodes: 0,
            metadata: None,
            blob: None,
        }
    }
}

/// The key from which the ids of a session's nodes derive.
pub(crate) fn node_key_base(source_id: &str) -> [u8; 16] {
    *NodeId::derive("import", &[source_id.as_bytes()]).as_bytes()
}
