//! Where an answer ends: bytes in, answers out, no I/O.

use arbiter_games::Framing;

/// The most a bot may write without ending an answer, in bytes.
pub const MAX_REPLY_LEN: usize = 64 * 1024;

/// The most a bot may write in a whole match, in bytes.
pub const MAX_OUTPUT_LEN: usize = 16 * 1024 * 1024;

/// What a bot wrote that is no part of any answer, and is put up with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtocolWarnings {
    /// Lines ended in CR LF.
    pub carriage_returns: bool,
    /// There were blanks at the end of a line.
    pub trailing_blanks: bool,
    /// There were blanks or empty lines before an answer.
    pub leading_blanks: bool,
}

impl ProtocolWarnings {
    /// Looks at the white space before an answer.
    fn see_before(&mut self, blank: &[u8]) {
        self.carriage_returns |= blank.contains(&b'\r');
        self.leading_blanks |= !blank.is_empty();
    }

    /// Looks at the white space behind an answer, with the newlines that end it.
    fn see_behind(&mut self, blank: &[u8]) {
        self.carriage_returns |= blank.contains(&b'\r');
        self.trailing_blanks |= blank.iter().any(|byte| matches!(byte, b' ' | b'\t'));
    }
}

/// Collects what a bot writes until an answer is complete. White space in front of an answer is
/// nothing, whenever it comes: what follows one answer is what precedes the next.
#[derive(Debug)]
pub struct ReplyFramer {
    framing: Framing,
    /// Bytes that belong to no answer taken so far; they never start with white space.
    pending: Vec<u8>,
    /// Where the last line begins that has no end yet.
    line: usize,
    /// How many bytes are known to hold no end of that line.
    searched: usize,
    /// All bytes ever pushed.
    total: usize,
    manners: ProtocolWarnings,
}

impl ReplyFramer {
    /// Nothing written so far.
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            pending: Vec::new(),
            line: 0,
            searched: 0,
            total: 0,
            manners: ProtocolWarnings::default(),
        }
    }

    /// Takes in what the bot has written.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len();
        let first = self.pending.is_empty();
        let words = if first { bytes.trim_ascii_start() } else { bytes };
        self.manners.see_before(&bytes[..bytes.len() - words.len()]);
        self.pending.extend_from_slice(words);
    }

    /// The next complete answer without its frame: a line without its end, or the lines of a GTP
    /// answer without the blank one.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let end = self.end().filter(|end| *end <= MAX_REPLY_LEN)?;
        let behind = &self.pending[end..];
        let rest = behind.trim_ascii_start().to_vec();
        self.manners.see_before(&behind[..behind.len() - rest.len()]);
        let mut answer = std::mem::replace(&mut self.pending, rest);
        let words = answer[..end].trim_ascii_end().len();
        self.manners.see_behind(&answer[words..end]);
        answer.truncate(words);
        (self.line, self.searched) = (0, 0);
        Some(answer)
    }

    /// What was put up with so far.
    pub fn manners(&self) -> ProtocolWarnings {
        self.manners
    }

    /// Whether more was written than any answer needs.
    pub fn flooded(&self) -> bool {
        self.pending.len() > MAX_REPLY_LEN || self.total > MAX_OUTPUT_LEN
    }

    /// What was written beyond the answers taken, if anything.
    pub fn surplus(&self) -> Option<&[u8]> {
        let surplus = self.pending.trim_ascii_end();
        (!surplus.is_empty()).then_some(surplus)
    }

    /// Forgets what was written beyond the answers taken.
    pub fn drop_surplus(&mut self) {
        self.pending.clear();
        (self.line, self.searched) = (0, 0);
    }

    /// Bytes written in the whole match.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Bytes waiting for an answer's end.
    pub fn unfinished(&self) -> usize {
        self.pending.len()
    }

    /// The end of the first answer, behind its last newline.
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
            if self.framing == Framing::Line || blank || !is_gtp {
                return Some(end);
            }
            (self.line, self.searched) = (end, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers in `bytes`, pushed whole and byte by byte: both must give the same.
    fn answers(framing: Framing, bytes: &[u8]) -> Vec<String> {
        let mut whole = ReplyFramer::new(framing);
        whole.push(bytes);
        let all: Vec<_> = std::iter::from_fn(|| whole.take()).collect();
        let mut dribbled = ReplyFramer::new(framing);
        let mut one_by_one = Vec::new();
        for byte in bytes {
            dribbled.push(&[*byte]);
            one_by_one.extend(dribbled.take());
        }
        assert_eq!(all, one_by_one);
        all.into_iter().map(|answer| String::from_utf8_lossy(&answer).into_owned()).collect()
    }

    #[test]
    fn lines() {
        let bytes = b"\n(7,7)\n(1,2)\r\n\n \r\n x\nrest";
        assert_eq!(answers(Framing::Line, bytes), ["(7,7)", "(1,2)", "x"]);
        assert!(answers(Framing::Line, b"no end").is_empty());
    }

    #[test]
    fn gtp_answers() {
        let bytes = b"= pass\n\n=\n\n\r\n\n= check\r\n\r\n=\nhelp\nname\n \n? no\n\n";
        let found = ["= pass", "=", "= check", "=\nhelp\nname", "? no"];
        assert_eq!(answers(Framing::Gtp, bytes), found);
        assert!(answers(Framing::Gtp, b"= pass\n").is_empty());
        assert_eq!(answers(Framing::Gtp, b"pass\n\n= pass\n\n"), ["pass", "= pass"]);
    }

    #[test]
    fn bytes_that_are_no_text_pass_through() {
        let mut frames = ReplyFramer::new(Framing::Line);
        frames.push(b"\0\xff\xfe\n");
        assert_eq!(frames.take().unwrap(), b"\0\xff\xfe");
    }

    #[test]
    fn floods() {
        let mut frames = ReplyFramer::new(Framing::Line);
        frames.push(&vec![b'x'; MAX_REPLY_LEN]);
        assert!(!frames.flooded());
        frames.push(b"x");
        assert!(frames.flooded());
        frames.push(b"\n");
        assert_eq!(frames.take(), None, "an answer that is too long is none");

        let mut frames = ReplyFramer::new(Framing::Line);
        let line = [vec![b'x'; 1023], vec![b'\n']].concat();
        for _ in 0..MAX_OUTPUT_LEN / line.len() {
            frames.push(&line);
            assert!(!frames.flooded() && frames.take().is_some());
        }
        frames.push(b"\n");
        assert!(frames.flooded());
    }

    #[test]
    fn blanks_around_an_answer_are_nothing() {
        let mut frames = ReplyFramer::new(Framing::Line);
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
