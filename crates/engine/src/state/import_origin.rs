//! Where an imported conversation came from, as stored in its metadata.

use contexture_ir::{NodeId, Raw};
use contexture_wire::Format;
use serde::{Deserialize, Serialize};

/// The metadata entry that says where a conversation came from.
pub(crate) const IMPORT_KEY: &str = "import";

/// The origin of an imported conversation, as stored in its metadata.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImportOrigin {
    /// The session format, by its name.
    pub(crate) format: String,
    /// The session's own id, from which all node ids derive.
    pub(crate) source: String,
    /// How many nodes of the session are stored.
    pub(crate) nodes: usize,
    /// What the session holds besides items, if it is small.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Raw>,
    /// The blob that holds it otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blob: Option<String>,
}

impl ImportOrigin {
    /// Describes a conversation that was not imported, for exports in a wire format.
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

/// Returns the key from which the ids of a session's nodes derive.
pub(crate) fn node_key_base(source_id: &str) -> [u8; 16] {
    *NodeId::derive("import", &[source_id.as_bytes()]).as_bytes()
}
