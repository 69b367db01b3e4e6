//! What only UI messages can say, kept beside an item or a part.

use contexture_ir::Extra;

/// The fields kept for UI messages; empty if there are none.
pub(super) fn part_hints(extra: &Extra) -> Extra {
    if extra.is_empty() {
        Extra::new()
    } else {
        extra.wire("ui")
    }
}
