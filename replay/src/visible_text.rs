//! How texts and numbers appear on pages.
//!
//! Bots, owners and packages write some of the text on pages and in terminals. With Unicode's
//! bidirectional controls a text could show its parts, and what follows it, in another order
//! (<https://www.unicode.org/reports/tr9/>), so that a name or a result reads as another one.

use memchr::memchr2_iter;

/// The character that is shown instead.
const REPLACEMENT: char = '\u{fffd}';

/// Whether a character is a bidirectional control.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is invisible or changes how the text around it is shown, so that two texts
/// that differ could look the same: a control character, a space or line break other than U+0020,
/// or a character that is shown as nothing (Unicode's `Default_Ignorable_Code_Point`, format
/// controls and blank letters). Every bidirectional control is one of them.
pub fn is_invisible(c: char) -> bool {
    is_bidi_control(c)
        || c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// A text with U+FFFD in place of each bidirectional control.
pub fn without_bidi_controls(text: String) -> String {
    // Almost no text has one, and a long text is searched fast for the first bytes of them.
    let mut candidates = memchr2_iter(0xd8, 0xe2, text.as_bytes());
    if !candidates.any(|begin| text[begin..].starts_with(is_bidi_control)) {
        return text;
    }
    text.chars().map(|c| if is_bidi_control(c) { REPLACEMENT } else { c }).collect()
}

/// A label with a capital first letter: the names of score components are lower case.
pub fn label(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// A number as pages show it. Its minus sign is as wide as a digit; data for programs keeps the
/// hyphen. A number that is rounded to zero has no sign. A margin may follow the number.
#[expect(clippy::needless_pass_by_value, reason = "callers have numbers and new texts")]
pub fn number_text(number: impl ToString) -> String {
    let text = number.to_string();
    let unsigned = text.strip_prefix(['-', '+']).filter(|rest| begins_with_zero(rest));
    unsigned.unwrap_or(&text).replace('-', "−")
}

/// Whether a text begins with a number that is zero.
fn begins_with_zero(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.starts_with('0') && text[..end].chars().all(|c| c == '0' || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_have_a_minus_sign_and_no_hyphen() {
        let texts = [(-3).to_string(), format!("{:+.2}", -0.5), format!("{:.1e}", -1.5e-7)];
        assert_eq!(texts.map(number_text), ["−3", "−0.50", "−1.5e−7"]);
        assert_eq!(number_text("-12 ± 3"), "−12 ± 3");
        assert_eq!(number_text(format!("{:.3}", -0.0001)), "0.000");
        let rounded = ["+0.00", "-0.000 ± 0.012", "-0 ± 3", "-0.5 ± 0.0", "+0.01"];
        let shown = ["0.00", "0.000 ± 0.012", "0 ± 3", "−0.5 ± 0.0", "+0.01"];
        assert_eq!(rounded.map(number_text), shown);
        assert_eq!([7, 0].map(number_text), ["7", "0"]);
    }

    #[test]
    fn controls_that_reorder_text_are_visible_and_other_characters_stay() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let shown = if is_bidi_control(c) { REPLACEMENT } else { c };
            assert_eq!(without_bidi_controls(format!("a{c}")), format!("a{shown}"), "{c:?}");
        }
        let text = "a\u{202e}b\u{2066}c\u{61c}d\u{200f}";
        assert_eq!(without_bidi_controls(text.to_owned()), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}");
        let other = "Zażółć – שלום ♠\u{200d}\n";
        assert_eq!(without_bidi_controls(other.to_owned()), other);
    }

    #[test]
    fn invisible_characters_are_known_and_letters_of_any_script_are_visible() {
        let controls = "\0\t\n\u{7f}\u{85}\u{ad}\u{61c}\u{200b}\u{200d}\u{202e}\u{2060}";
        let blanks = "\u{a0}\u{2028}\u{3164}\u{feff}\u{fe0f}";
        for c in controls.chars().chain(blanks.chars()) {
            assert!(is_invisible(c), "{c:?}");
        }
        for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| is_bidi_control(*c)) {
            assert!(is_invisible(c), "{c:?}");
        }
        for c in "Ada Żółć שלום علي 王 한글 e\u{301} ♠ - 🎲".chars() {
            assert!(!is_invisible(c), "{c:?}");
        }
    }
}
