//! Inline media: `data:` URLs cut apart and put together, never decoded.

/// A base64 `data:` URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataUrl<'a> {
    /// `image/png`; empty if the URL states none.
    pub media_type: &'a str,
    /// The base64 text.
    pub base64: &'a str,
}

impl<'a> DataUrl<'a> {
    /// Cuts a URL apart; `None` if it is not a base64 data URL. Parameters of the media type other
    /// than `base64` stay part of it.
    #[must_use]
    pub fn parse(url: &'a str) -> Option<Self> {
        let (head, base64) = url.strip_prefix("data:")?.split_once(',')?;
        let media_type = head.strip_suffix(";base64")?;
        Some(Self { media_type, base64 })
    }

    /// Whether the bytes are some, and base64.
    pub(crate) fn is_base64(&self) -> bool {
        let digits = self.base64.trim_end_matches('=');
        // Encoders may break lines, which decoders skip.
        let is_digit =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'\n' | b'\r');
        !digits.is_empty() && self.base64.len() - digits.len() <= 2 && digits.bytes().all(is_digit)
    }

    /// The type of picture that the bytes are; `None` if they begin like no picture that every provider takes.
    pub(crate) fn picture_type(&self) -> Option<&'static str> {
        let begins = |start: &str| self.base64.starts_with(start);
        // The first bytes of each kind of file, in base64: three bytes are four digits, whatever follows.
        Some(match () {
            () if begins("iVBORw0K") => "image/png",
            () if begins("/9j/") => "image/jpeg",
            () if begins("R0lGOD") => "image/gif",
            // `RIFF`, four bytes of length, `WEBP`.
            () if begins("UklGR") && self.base64.get(11..16) == Some("XRUJQ") => "image/webp",
            () => return None,
        })
    }

    /// Puts a URL together.
    #[must_use]
    pub fn build(media_type: &str, base64: &str) -> String {
        format!("data:{media_type};base64,{base64}")
    }
}

/// A name for a file that has none, where a provider demands one.
pub(crate) fn default_filename(media_type: &str) -> String {
    let extension = match media_type.split(';').next().unwrap_or_default().trim() {
        "application/pdf" => "pdf",
        "application/json" => "json",
        "text/plain" => "txt",
        "text/markdown" => "md",
        "text/html" => "html",
        "text/csv" => "csv",
        _ => return "file".to_owned(),
    };
    format!("file.{extension}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_cut_and_join() {
        let url = "data:image/png;base64,AAAA";
        let parts = DataUrl::parse(url).unwrap();
        assert_eq!((parts.media_type, parts.base64), ("image/png", "AAAA"));
        assert_eq!(DataUrl::build(parts.media_type, parts.base64), url);
        for other in [
            "https://example.org/a.png",
            "data:text/plain,hello",
            "data:",
            "",
        ] {
            assert_eq!(DataUrl::parse(other), None, "{other}");
        }
    }
}
