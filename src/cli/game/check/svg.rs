//! Checks pictures. They are shown as images, so that nothing in them acts. A picture that tries to
//! act, or that needs something from elsewhere, does not look as its author means it.

use arbiter_games::Frame;

/// What a picture must not contain, and why.
const FORBIDDEN: [(&str, &str); 7] = [
    ("<script", "contains a script"),
    ("<!doctype", "contains a document type"),
    ("<!entity", "contains an entity"),
    ("<foreignobject", "contains a foreign object"),
    ("javascript:", "contains a script"),
    ("@import", "imports a style sheet"),
    ("<?", "contains a processing instruction"),
];

/// Checks a picture.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(frame: &Frame) -> Result<(), String> {
    let svg = &frame.svg;
    let picture = |cause: &str| format!("the picture {cause}");
    if !svg.starts_with("<svg") {
        return Err(picture("does not begin with <svg"));
    }
    let head = svg.split('>').next().unwrap_or_default();
    for attribute in ["xmlns=\"http://www.w3.org/2000/svg\"", "viewBox="] {
        if !head.replace('\'', "\"").contains(attribute) {
            return Err(picture(&format!("has no {attribute} in its first tag")));
        }
    }
    if !svg.trim_end().ends_with("</svg>") && !head.ends_with('/') {
        return Err(picture("does not end with </svg>"));
    }
    let lower = svg.to_ascii_lowercase();
    if let Some((_, cause)) = FORBIDDEN.iter().find(|(text, _)| lower.contains(text)) {
        return Err(picture(cause));
    }
    for (start, _) in lower.match_indices("href") {
        let value = lower[start + 4..].trim_start().strip_prefix('=').map(str::trim_start);
        if value.is_some_and(|value| !value.starts_with("\"#") && !value.starts_with("'#")) {
            return Err(picture("has a link that leads outside of it"));
        }
    }
    for (start, text) in lower.match_indices("url(") {
        let target = lower[start + text.len()..].trim_start_matches(['"', '\'', ' ']);
        if !target.starts_with('#') {
            return Err(picture("uses a url( that leads outside of it"));
        }
    }
    if frame.caption.trim().is_empty() {
        return Err(picture("has no caption, which people read who cannot see it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_that_act_or_need_others_are_found() {
        let inside = |inner: &str| {
            let head = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\">";
            let svg = format!("{head}{inner}</svg>");
            check(&Frame { svg, caption: "a board".to_owned() })
        };
        assert_eq!(inside("<use href=\"#stone\"/><path fill=\"url(#red)\"/>"), Ok(()));
        for inner in [
            "<script>alert(1)</script>",
            "<SCRIPT/>",
            "<a href=\"https://example.org\"/>",
            "<image xlink:href = 'data:x'/>",
            "<path fill=\"url(https://example.org)\"/>",
            "<style>@import 'x'</style>",
            "<foreignObject/>",
        ] {
            assert!(inside(inner).is_err(), "{inner}");
        }
        let frame = |svg: &str| Frame { svg: svg.to_owned(), caption: "a board".to_owned() };
        for svg in ["<?xml?><svg/>", "<svg viewBox=\"0 0 1 1\"></svg>", "text"] {
            assert!(check(&frame(svg)).is_err(), "{svg}");
        }
    }
}
