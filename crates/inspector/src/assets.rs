//! The files that pages load: a style sheet, a module, an icon. They are part of the program, and their names have a hash of what is
//! in them, so that a browser may keep them for ever.

use std::sync::LazyLock;

use contexture_report::BAND_STYLE;

/// A file of the inspector.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Its name, with the hash of its content.
    pub name: String,
    /// Its media type.
    pub media_type: &'static str,
    /// Its content, all of it.
    pub text: String,
}

/// All files, each under the name by which pages load it.
pub(crate) struct Assets {
    pub(crate) style: Asset,
    pub(crate) module: Asset,
    pub(crate) icon: Asset,
}

pub(crate) static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
    // One file for both: a page waits for its styles once.
    let style = format!("{BAND_STYLE}{}", include_str!("../assets/inspector.css"));
    let module = include_str!("../assets/inspector.js").to_owned();
    let icon = include_str!("../assets/icon.svg").to_owned();
    Assets {
        style: Asset::new("inspector", "css", "text/css; charset=utf-8", style),
        module: Asset::new("inspector", "js", "text/javascript; charset=utf-8", module),
        icon: Asset::new("icon", "svg", "image/svg+xml", icon),
    }
});

/// Returns the file of a name; `None` for a name that no page of this version has.
#[must_use]
pub fn find_asset(name: &str) -> Option<&'static Asset> {
    let assets = &*ASSETS;
    [&assets.style, &assets.module, &assets.icon]
        .into_iter()
        .find(|asset| asset.name == name)
}

impl Asset {
    fn new(stem: &str, extension: &str, media_type: &'static str, text: String) -> Self {
        Self {
            name: format!("{stem}-{:016x}.{extension}", fnv1a(text.as_bytes())),
            media_type,
            text,
        }
    }
}

/// FNV-1a of 64 bits: it tells versions of a file apart, and keeps no secrets.
fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_the_names_that_pages_have() {
        for asset in [&ASSETS.style, &ASSETS.module, &ASSETS.icon] {
            let found = find_asset(&asset.name).map(|found| found.text.len());
            assert_eq!(found, Some(asset.text.len()), "{}", asset.name);
        }
        assert!(find_asset("inspector.css").is_none());
        // The test vector of the algorithm's authors.
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
