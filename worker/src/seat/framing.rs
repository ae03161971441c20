//! Splits a bot's output into replies. No I/O.

use arbiter_games::{Framing, Text};

/// Maximum length of a reply, in bytes.
pub const MAX_REPLY_LEN: usize = 64 * 1024;

/// Maximum output of a bot in a whole match, in bytes.
pub const MAX_OUTPUT_LEN: usize = 16 * 1024 * 1024;

/// Limits of a program's output, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Maximum length of a reply.
    pub reply: usize,
    /// Maximum output in a whole match.
    pub total: usize,
}

impl OutputLimits {
    /// The limits of bots.
    pub const BOT: Self = Self { reply: MAX_REPLY_LEN, total: MAX_OUTPUT_LEN };

    /// The limits of bots that think aloud until a last line, as UCI engines do.
    const UNTIL_LAST_LINE: Self = Self { reply: 256 * 1024, total: 64 * 1024 * 1024 };

    /// The limits of bots with this framing.
    pub fn of(framing: &Framing) -> Self {
        match framing {
            Framing::EndsWith(_) => Self::UNTIL_LAST_LINE,
            Framing::Gtp | Framing::Line | Framing::BlankLine => Self::BOT,
        }
    }
}

/// Tolerated white space outside of replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolWarnings {
    /// Lines ended with CR LF.
    pub carriage_returns: bool,
    /// Lines ended with blanks.
    pub trailing_blanks: bool,
    /// Blanks or empty lines preceded a reply.
    pub leading_blanks: bool,
}

impl ProtocolWarnings {
    /// Checks the white space before a reply.
    fn check_before(&mut self, blank: &[u8]) {
        self.carriage_returns |= blank.contains(&b'\r');
        self.leading_blanks |= !blank.is_empty();
    }

    /// Checks the white space after a reply, with the newlines that end it.
    fn check_after(&mut self, reply: &[u8], blank: &[u8], framing: &Framing) {
        self.carriage_returns |= blank.contains(&b'\r');
        // GTP writes a reply without a text as `= `, with the blank.
        let is_bare = *framing == Framing::Gtp && matches!(reply, b"=" | b"?");
        let rest = blank.strip_prefix(b" ").filter(|_| is_bare).unwrap_or(blank);
        self.trailing_blanks |= rest.iter().any(|byte| matches!(byte, b' ' | b'\t'));
    }
}

/// Collects output until a reply is complete. Ignores white space before a reply, whenever it
/// arrives.
#[derive(Debug)]
pub struct ReplyFramer {
    framing: Framing,
    limits: OutputLimits,
    /// Bytes after the last reply. They never start with white space.
    pending: Vec<u8>,
    /// Offset of the last unfinished line.
    line: usize,
    /// Number of leading bytes without an end of that line.
    searched: usize,
    /// Number of all bytes pushed.
    total: usize,
    warnings: ProtocolWarnings,
}

impl ReplyFramer {
    /// A framer without output.
    pub fn new(framing: Framing, limits: OutputLimits) -> Self {
        Self {
            framing,
            limits,
            pending: Vec::new(),
            line: 0,
            searched: 0,
            total: 0,
            warnings: ProtocolWarnings::default(),
        }
    }

    /// Adds output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len();
        let is_first = self.pending.is_empty();
        let text = if is_first { bytes.trim_ascii_start() } else { bytes };
        self.warnings.check_before(&bytes[..bytes.len() - text.len()]);
        self.pending.extend_from_slice(text);
    }

    /// Takes the next complete reply without its frame: a line without its newline, or the lines of
    /// a GTP reply without the empty line.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let end = self.end().filter(|end| *end <= self.limits.reply)?;
        let after = &self.pending[end..];
        let pending = after.trim_ascii_start().to_vec();
        self.warnings.check_before(&after[..after.len() - pending.len()]);
        let mut reply = std::mem::replace(&mut self.pending, pending);
        let text_len = reply[..end].trim_ascii_end().len();
        self.warnings.check_after(&reply[..text_len], &reply[text_len..end], &self.framing);
        reply.truncate(text_len);
        self.line = 0;
        self.searched = 0;
        Some(reply)
    }

    /// The limits of the output.
    pub fn limits(&self) -> OutputLimits {
        self.limits
    }

    /// Tolerated white space so far.
    pub fn warnings(&self) -> ProtocolWarnings {
        self.warnings
    }

    /// Whether the output exceeds a limit.
    pub fn flooded(&self) -> bool {
        self.pending.len() > self.limits.reply || self.total > self.limits.total
    }

    /// Output after the last reply, if there is any. A bot that thinks aloud until a last line may
    /// think at any time, so that only a whole reply counts.
    pub fn surplus(&self) -> Option<&[u8]> {
        let mut lines = self.pending.split_inclusive(|byte| *byte == b'\n');
        let counts = match &self.framing {
            Framing::EndsWith(words) => lines.any(|line| is_last(line, words)),
            Framing::Gtp | Framing::Line | Framing::BlankLine => true,
        };
        let surplus = self.pending.trim_ascii_end();
        (counts && !surplus.is_empty()).then_some(surplus)
    }

    /// Drops the output after the last reply.
    pub fn drop_surplus(&mut self) {
        self.pending.clear();
        self.line = 0;
        self.searched = 0;
    }

    /// Bytes of output in the whole match.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Bytes of an unfinished reply.
    pub fn unfinished(&self) -> usize {
        self.pending.len()
    }

    /// The end of the first reply, after its last newline.
    fn end(&mut self) -> Option<usize> {
        loop {
            let newline = self.pending[self.searched..].iter().position(|byte| *byte == b'\n');
            let Some(newline) = newline else {
                self.searched = self.pending.len();
                return None;
            };
            let end = self.searched + newline + 1;
            let blank = self.pending[self.line..end].trim_ascii().is_empty();
            let is_gtp = matches!(self.pending[0], b'=' | b'?');
            let is_end = match &self.framing {
                Framing::Line => true,
                Framing::Gtp => blank || !is_gtp,
                Framing::BlankLine => blank,
                Framing::EndsWith(words) => is_last(&self.pending[self.line..end], words),
            };
            if is_end {
                return Some(end);
            }
            (self.line, self.searched) = (end, end);
        }
    }
}

/// Whether a line begins with one of these words.
fn is_last(line: &[u8], words: &[Text]) -> bool {
    let first = line.trim_ascii_start().split(u8::is_ascii_whitespace).next();
    words.iter().any(|word| first == Some(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The replies in `bytes`. They must be the same if `bytes` are pushed at once or byte by byte.
    fn replies(framing: Framing, bytes: &[u8]) -> Vec<String> {
        let mut framer = ReplyFramer::new(framing.clone(), OutputLimits::BOT);
        framer.push(bytes);
        let at_once: Vec<_> = std::iter::from_fn(|| framer.take()).collect();
        let mut byte_framer = ReplyFramer::new(framing, OutputLimits::BOT);
        let mut one_by_one = Vec::new();
        for byte in bytes {
            byte_framer.push(&[*byte]);
            one_by_one.extend(byte_framer.take());
        }
        assert_eq!(at_once, one_by_one);
        at_once.into_iter().map(|reply| String::from_utf8_lossy(&reply).into_owned()).collect()
    }

    #[test]
    fn line_replies() {
        let bytes = b"\n(7,7)\n(1,2)\r\n\n \r\n x\nrest";
        assert_eq!(replies(Framing::Line, bytes), ["(7,7)", "(1,2)", "x"]);
        assert!(replies(Framing::Line, b"no end").is_empty());
    }

    #[test]
    fn gtp_replies() {
        let bytes = b"= pass\n\n=\n\n\r\n\n= check\r\n\r\n=\nhelp\nname\n \n? no\n\n";
        let expected = ["= pass", "=", "= check", "=\nhelp\nname", "? no"];
        assert_eq!(replies(Framing::Gtp, bytes), expected);
        assert!(replies(Framing::Gtp, b"= pass\n").is_empty());
        assert_eq!(replies(Framing::Gtp, b"pass\n\n= pass\n\n"), ["pass", "= pass"]);
    }

    #[test]
    fn a_bare_reply_of_gtp_may_have_its_blank() {
        let warns = |framing: Framing, bytes: &[u8]| {
            let mut frames = ReplyFramer::new(framing, OutputLimits::BOT);
            frames.push(bytes);
            while frames.take().is_some() {}
            frames.warnings().trailing_blanks
        };
        assert!(!warns(Framing::Gtp, b"= \n\n=\n\n? \n\n= pass\n\n"));
        for unclean in [&b"=  \n\n"[..], b"= pass \n\n", b"= \n \n", b"=\t\n\n"] {
            assert!(warns(Framing::Gtp, unclean), "{:?}", String::from_utf8_lossy(unclean));
        }
        assert!(warns(Framing::Line, b"= \n"));
    }

    #[test]
    fn replies_until_an_empty_line() {
        let bytes = b"\nname\nhelp\n \r\n\n=x\n\n";
        assert_eq!(replies(Framing::BlankLine, bytes), ["name\nhelp", "=x"]);
    }

    #[test]
    fn replies_until_a_word() {
        let framing = Framing::EndsWith(["uciok".into(), "bestmove".into()].into());
        let bytes = b"id name x\nuciok\n\ninfo bestmove\nbestmoves\n bestmove e2e4\r\nuciok";
        let expected = ["id name x\nuciok", "info bestmove\nbestmoves\n bestmove e2e4"];
        assert_eq!(replies(framing.clone(), bytes), expected);
        let mut frames = ReplyFramer::new(framing, OutputLimits::BOT);
        frames.push(b"Engine 1 by its author\n");
        assert_eq!(frames.surplus(), None, "a bot may think aloud");
        frames.push(b"bestmove e2e4\n");
        assert!(frames.surplus().is_some());
    }

    #[test]
    fn bytes_that_are_not_utf8_pass_through() {
        let mut frames = ReplyFramer::new(Framing::Line, OutputLimits::BOT);
        frames.push(b"\0\xff\xfe\n");
        assert_eq!(frames.take().unwrap(), b"\0\xff\xfe");
    }

    #[test]
    fn too_much_output_is_a_flood() {
        let mut frames = ReplyFramer::new(Framing::Line, OutputLimits::BOT);
        frames.push(&vec![b'x'; MAX_REPLY_LEN]);
        assert!(!frames.flooded());
        frames.push(b"x");
        assert!(frames.flooded());
        frames.push(b"\n");
        assert_eq!(frames.take(), None, "a reply that is too long is not taken");

        let mut frames = ReplyFramer::new(Framing::Line, OutputLimits::BOT);
        let line = [vec![b'x'; 1023], vec![b'\n']].concat();
        for _ in 0..MAX_OUTPUT_LEN / line.len() {
            frames.push(&line);
            assert!(!frames.flooded() && frames.take().is_some());
        }
        frames.push(b"\n");
        assert!(frames.flooded());
    }

    #[test]
    fn blanks_around_a_reply_are_ignored() {
        let mut frames = ReplyFramer::new(Framing::Line, OutputLimits::BOT);
        frames.push(b"(7,7)\n \n\t");
        assert!(frames.take().is_some() && frames.surplus().is_none());
        frames.push(b"\n\n");
        assert!(frames.take().is_none() && frames.surplus().is_none());
        frames.push(b"(1,1)\n");
        assert_eq!(frames.take().unwrap(), b"(1,1)");
        frames.push(b"again\n");
        assert_eq!(frames.surplus(), Some(&b"again"[..]));
        frames.drop_surplus();
        assert_eq!((frames.take(), frames.total()), (None, 23));
    }
}
