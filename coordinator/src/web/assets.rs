//! The style sheet, the scripts and the icon. Browsers get them compressed.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};

use super::{compression, invitations};

/// Browsers cache assets for 5 minutes, so a new version is visible soon.
const CACHE_CONTROL: &str = "public, max-age=300";

/// The icon.
pub(super) const ICON: &str = include_str!("assets/arbiter.svg");

/// The style sheets of the pages, the forms, the invitations, the replays and the projector.
static STYLE_SHEET: LazyLock<String> = LazyLock::new(|| {
    let pages = include_str!("assets/arbiter.css");
    let forms = include_str!("assets/forms.css");
    let projector = include_str!("assets/projector.css");
    [pages, forms, invitations::STYLE, arbiter_replay::STYLE, projector].concat()
});

/// A text, and the same compressed by gzip.
#[derive(Debug)]
struct Asset {
    content_type: &'static str,
    text: &'static str,
    compressed: Bytes,
}

impl Asset {
    fn new(content_type: &'static str, text: &'static str) -> Self {
        Self { content_type, text, compressed: compression::gzip(text.as_bytes()) }
    }

    /// The response to a request with these headers.
    fn respond(&self, headers: &HeaderMap) -> Response {
        let common = [
            (header::CONTENT_TYPE, self.content_type),
            (header::CACHE_CONTROL, CACHE_CONTROL),
            (header::VARY, "accept-encoding"),
        ];
        if compression::accepts(headers, "gzip") {
            let encoding = [(header::CONTENT_ENCODING, "gzip")];
            (common, encoding, self.compressed.clone()).into_response()
        } else {
            (common, self.text).into_response()
        }
    }
}

/// The style sheet of all pages. A page that contains it needs no request for it.
pub fn style() -> &'static str {
    &STYLE_SHEET
}

pub(super) async fn style_sheet(headers: HeaderMap) -> Response {
    static ASSET: LazyLock<Asset> =
        LazyLock::new(|| Asset::new("text/css; charset=utf-8", style()));
    ASSET.respond(&headers)
}

pub(super) async fn replay_script(headers: HeaderMap) -> Response {
    static ASSET: LazyLock<Asset> =
        LazyLock::new(|| Asset::new("text/javascript; charset=utf-8", arbiter_replay::SCRIPT));
    ASSET.respond(&headers)
}

pub(super) async fn script(headers: HeaderMap) -> Response {
    static ASSET: LazyLock<Asset> = LazyLock::new(|| {
        Asset::new("text/javascript; charset=utf-8", include_str!("assets/arbiter.js"))
    });
    ASSET.respond(&headers)
}

pub(super) async fn icon(headers: HeaderMap) -> Response {
    static ASSET: LazyLock<Asset> = LazyLock::new(|| Asset::new("image/svg+xml", ICON));
    ASSET.respond(&headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of a colour, such as `#1c2126` (WCAG 2.2).
    fn luminance(colour: &str) -> f64 {
        let short = colour.len() == 4;
        let channel = |index: usize| {
            let digits = if short {
                colour[index + 1..index + 2].repeat(2)
            } else {
                colour[2 * index + 1..2 * index + 3].to_owned()
            };
            let value = f64::from(u8::from_str_radix(&digits, 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
    }

    #[test]
    fn coloured_text_has_enough_contrast_in_light_and_dark() {
        let themes: Vec<_> = style().split(":root").skip(1).take(2).collect();
        assert!(themes[1].contains("--paper: #14181c"), "the second theme is the dark one");
        for theme in themes {
            let luminance_of = |name: &str| {
                let (_, colour) = theme.split_once(&format!("--{name}: ")).unwrap();
                luminance(colour.split(';').next().unwrap())
            };
            for ground in ["paper", "soft"] {
                for text in ["ink", "quiet", "link", "good", "bad", "unofficial"] {
                    let [text_light, ground_light] = [text, ground].map(luminance_of);
                    let light = text_light.max(ground_light) + 0.05;
                    let dark = text_light.min(ground_light) + 0.05;
                    assert!(light / dark >= 4.5, "{text} on {ground}: {}", light / dark);
                }
            }
        }
    }
}
