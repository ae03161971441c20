//! QR codes as SVG.

use std::fmt::Write as _;

use maud::{Markup, html};
use qrcodegen::{QrCode, QrCodeEcc};

/// The width of the empty edge that readers need, in modules.
const QUIET_ZONE: i32 = 4;

/// The QR code of a text. `None` if the text is too long for a code (about 2300 bytes).
pub(super) fn svg(text: &str) -> Option<Markup> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
    let side = code.size() + 2 * QUIET_ZONE;
    let path = path(&code);
    // The colours do not follow the page's: many readers need dark modules on a light ground.
    Some(html! {
        svg.qr-code viewBox={ "0 0 " (side) " " (side) } role="img"
            aria-label="QR code of the login link" shape-rendering="crispEdges" {
            rect width=(side) height=(side) fill="#fff" {}
            path d=(path) fill="#000" {}
        }
    })
}

/// The dark modules as a path: one rectangle for each run of modules in a row.
fn path(code: &QrCode) -> String {
    let mut path = String::new();
    for y in 0..code.size() {
        let mut x = 0;
        while x < code.size() {
            let start = x;
            // Outside the code there are no dark modules.
            while code.get_module(x, y) {
                x += 1;
            }
            if x > start {
                let width = x - start;
                let left = start + QUIET_ZONE;
                let top = y + QUIET_ZONE;
                write!(path, "M{left} {top}h{width}v1h-{width}z").expect("writing to a string");
            }
            x += 1;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_covers_each_dark_module_once() {
        let code = QrCode::encode_text("https://arbiter.example/login", QrCodeEcc::Medium).unwrap();
        let dark = (0..code.size())
            .flat_map(|y| (0..code.size()).map(move |x| (x, y)))
            .filter(|(x, y)| code.get_module(*x, *y));
        let runs = path(&code);
        let widths = runs.split('M').skip(1).map(|run| {
            let width = run.split('h').nth(1).unwrap().trim_end_matches("v1");
            width.parse::<usize>().unwrap()
        });
        assert_eq!(widths.sum::<usize>(), dark.count());
        assert!(svg(&"x".repeat(5000)).is_none());
    }
}
