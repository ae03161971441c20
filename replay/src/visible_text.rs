//! Makes characters visible that change the order of the text around them.
//!
//! Bots, owners and packages write some of the text on pages and in terminals. With Unicode's
//! bidirectional controls a text could show its parts, and what follows it, in another order
//! (<https://www.unicode.org/reports/tr9/>), so that a name or a result reads as another one.

/// The character that is shown instead.
const REPLACEMENT: char = '\u{fffd}';

/// Whether a character is a bidirectional control.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text with U+FFFD in place of each bidirectional control.
pub fn without_bidi_controls(text: String) -> String {
    if !text.contains(is_bidi_control) {
        return text;
    }
    text.chars().map(|c| if is_bidi_control(c) { REPLACEMENT } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_that_reorder_text_are_visible_and_other_characters_stay() {
        let text = "a\u{202e}b\u{2066}c\u{61c}d\u{200f}";
        assert_eq!(without_bidi_controls(text.to_owned()), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}");
        let other = "Zażółć – שלום ♠\u{200d}\n";
        assert_eq!(without_bidi_controls(other.to_owned()), other);
    }
}
