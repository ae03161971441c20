//! Where an answer ends: bytes in, answers out, no I/O.

/// The most a bot may write without ending an answer, in bytes.
pub const LONGEST_ANSWER: usize = 64 * 1024;

/// The most a bot may write in a whole match, in bytes.
pub const MOST_OUTPUT: usize = 16 * 1024 * 1024;

/// How the answers of a protocol are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// An answer starts with `=` or `?` and ends with an empty line. One that starts otherwise
    /// ends with its first line, so that it is judged at once and not at the deadline.
    Gtp,
    /// An answer is a line.
    Line,
}

/// Collects what a bot writes until an answer is complete.
#[derive(Debug)]
pub struct Frames {
    framing: Framing,
    /// Bytes that belong to no answer taken so far.
    pending: Vec<u8>,
    /// How many of them are known to hold no answer's end.
    scanned: usize,
    /// All bytes ever pushed.
    total: usize,
}

impl Frames {
    /// Nothing written so far.
    pub fn new(framing: Framing) -> Self {
        Self { framing, pending: Vec::new(), scanned: 0, total: 0 }
    }

    /// Takes in what the bot has written.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len();
        self.pending.extend_from_slice(bytes);
    }

    /// The next complete answer without its frame: a line without its end, or the lines of a GTP
    /// answer without blank lines around them.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let end = match self.framing {
            Framing::Line => self.line_end(self.scanned)?,
            Framing::Gtp => self.gtp_end()?,
        };
        if end > LONGEST_ANSWER {
            return None;
        }
        let rest = self.pending.split_off(end);
        let mut answer = std::mem::replace(&mut self.pending, rest);
        self.scanned = 0;
        answer.pop();
        Some(match self.framing {
            Framing::Line => {
                answer.truncate(answer.strip_suffix(b"\r").map_or(answer.len(), <[u8]>::len));
                answer
            }
            Framing::Gtp => answer.trim_ascii().to_vec(),
        })
    }

    /// Whether more was written than any answer needs.
    pub fn flooded(&self) -> bool {
        self.pending.len() > LONGEST_ANSWER || self.total > MOST_OUTPUT
    }

    /// What was written beyond the answers taken; white space alone counts as nothing.
    pub fn surplus(&self) -> Option<&[u8]> {
        let surplus = self.pending.trim_ascii();
        (!surplus.is_empty()).then_some(surplus)
    }

    /// Forgets white space that follows an answer, so that it cannot pass for the next one.
    pub fn drop_blanks(&mut self) {
        if self.surplus().is_none() {
            self.pending.clear();
            self.scanned = 0;
        }
    }

    /// Bytes written in the whole match.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Bytes waiting for an answer's end.
    pub fn unfinished(&self) -> usize {
        self.pending.len()
    }

    /// The end of the line in which `start` lies, behind its newline.
    fn line_end(&mut self, start: usize) -> Option<usize> {
        let found = self.pending[start..].iter().position(|byte| *byte == b'\n');
        if found.is_none() && self.framing == Framing::Line {
            self.scanned = self.pending.len();
        }
        found.map(|position| start + position + 1)
    }

    /// The end of a GTP answer, behind the empty line or the line that cannot start an answer.
    fn gtp_end(&mut self) -> Option<usize> {
        let mut line = self.scanned;
        while let Some(end) = self.line_end(line) {
            let blank = self.pending[line..end].trim_ascii().is_empty();
            let first = self.pending[..end].trim_ascii();
            if blank && !first.is_empty() {
                return Some(end);
            }
            if !blank && !first.starts_with(b"=") && !first.starts_with(b"?") {
                return Some(end);
            }
            line = end;
            self.scanned = line;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers in `bytes`, pushed whole and byte by byte: both must give the same.
    fn answers(framing: Framing, bytes: &[u8]) -> Vec<String> {
        let mut whole = Frames::new(framing);
        whole.push(bytes);
        let all: Vec<_> = std::iter::from_fn(|| whole.take()).collect();
        let mut dribbled = Frames::new(framing);
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
        assert_eq!(answers(Framing::Line, b"(7,7)\n(1,2)\r\n\nrest"), ["(7,7)", "(1,2)", ""]);
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
        let mut frames = Frames::new(Framing::Line);
        frames.push(b"\0\xff\xfe\n");
        assert_eq!(frames.take().unwrap(), b"\0\xff\xfe");
    }

    #[test]
    fn floods() {
        let mut frames = Frames::new(Framing::Line);
        frames.push(&vec![b'x'; LONGEST_ANSWER]);
        assert!(!frames.flooded());
        frames.push(b"x");
        assert!(frames.flooded());
        frames.push(b"\n");
        assert_eq!(frames.take(), None, "an answer that is too long is none");

        let mut frames = Frames::new(Framing::Line);
        let line = [vec![b'x'; 1023], vec![b'\n']].concat();
        for _ in 0..MOST_OUTPUT / line.len() {
            frames.push(&line);
            assert!(!frames.flooded() && frames.take().is_some());
        }
        frames.push(b"\n");
        assert!(frames.flooded());
    }

    #[test]
    fn blanks_behind_an_answer_are_nothing() {
        let mut frames = Frames::new(Framing::Line);
        frames.push(b"(7,7)\n \n\t");
        assert!(frames.take().is_some() && frames.surplus().is_none());
        frames.drop_blanks();
        frames.push(b"(1,1)\n");
        assert_eq!(frames.take().unwrap(), b"(1,1)");
        frames.push(b"again\n");
        assert_eq!(frames.surplus(), Some(&b"again"[..]));
    }
}
