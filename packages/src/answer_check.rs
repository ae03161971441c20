//! Checks that the actions of an answer are possible.

use std::iter;

use arbiter_games::{Forfeit, Seat};

use crate::answer_error::AnswerError;
use crate::protocol::{
    Action, Answer, MAX_ALLOWANCE, MAX_ARGUMENTS, MAX_BAD_ANSWERS, MAX_FRAME, MAX_SCORE, MAX_TEXT,
    MAX_TOLD,
};

/// The state of a match that decides which actions are possible.
#[derive(Debug)]
pub(crate) struct AnswerCheck {
    /// The number of components of a score.
    pub(crate) columns: usize,
    /// For each seat, whether its program was ended.
    pub(crate) dismissed: Vec<bool>,
    /// Each seat's first forfeit.
    pub(crate) forfeits: Vec<Option<Forfeit>>,
    /// The length of the texts to each seat since its last request, in bytes.
    pub(crate) told: Vec<usize>,
    /// Whether programs have not started yet and may get arguments.
    pub(crate) may_launch: bool,
}

impl AnswerCheck {
    /// Checks the actions in order.
    ///
    /// # Errors
    /// What is wrong with the first one that is not possible.
    pub(crate) fn check(mut self, answer: &Answer) -> Result<(), AnswerError> {
        let mut asked = Vec::new();
        for (number, action) in iter::zip(1.., &answer.actions) {
            let is_last = number == answer.actions.len();
            check_order(action, is_last, &mut asked)
                .and_then(|()| self.check_action(action))
                .map_err(|cause| AnswerError::in_action(number, action, &cause))?;
        }
        Ok(())
    }

    fn check_action(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Launch { launch, arguments } => return self.check_launch(*launch, arguments),
            Action::Tell { tell, text, .. } => {
                self.check_text(*tell, text)?;
                self.told[tell.index()] += text.len() + 1;
            }
            Action::Ask { ask, text, move_us, bank_us, .. } => {
                self.check_text(*ask, text)?;
                self.check_told(*ask)?;
                check_time(*move_us, *bank_us)?;
            }
            Action::Dismiss { dismiss: seat } => {
                self.check_seat(*seat)?;
                self.dismissed[seat.index()] = true;
            }
            Action::Illegal { illegal: seat, why } => {
                self.check_text(*seat, why)?;
                self.forfeits[seat.index()].get_or_insert(Forfeit::Illegal);
            }
            Action::Note { note } => check_length(note, MAX_TEXT)?,
            Action::Frame { frame, viewer } => {
                check_length(&frame.svg, MAX_FRAME)?;
                check_characters(&frame.svg)?;
                check_length(&frame.caption, MAX_TEXT)?;
                viewer.map_or(Ok(()), |seat| self.check_number(seat))?;
            }
            Action::Over { over, forfeits, bad_answers } => {
                self.check_scores(over)?;
                self.check_forfeits(forfeits.as_deref())?;
                self.check_bad_answers(bad_answers.as_deref())?;
            }
        }
        self.may_launch = false;
        Ok(())
    }

    fn check_launch(&self, seat: Seat, arguments: &[String]) -> Result<(), String> {
        self.check_number(seat)?;
        if !self.may_launch {
            let cause = "only the first answer may give arguments, at its beginning, if game.toml \
                         has `arguments = true` in [bot]";
            return Err(cause.to_owned());
        }
        let (count, length) = MAX_ARGUMENTS;
        if arguments.len() > count || arguments.iter().map(String::len).sum::<usize>() > length {
            return Err(format!("more than {count} arguments or {length} bytes for seat {seat}"));
        }
        if arguments.iter().any(|argument| argument.contains('\0')) {
            return Err(format!("an argument for seat {seat} contains a zero byte"));
        }
        Ok(())
    }

    fn check_text(&self, seat: Seat, text: &str) -> Result<(), String> {
        self.check_seat(seat)?;
        if text.contains('\0') {
            return Err(format!("the text to seat {seat} contains a zero byte"));
        }
        check_length(text, MAX_TEXT)
    }

    /// A program that missed a part of what it was told could not be blamed for its reply.
    fn check_told(&self, seat: Seat) -> Result<(), String> {
        let told = self.told[seat.index()];
        if told <= MAX_TOLD {
            return Ok(());
        }
        let cause = format!("seat {seat} was told {told} bytes since its last request");
        Err(format!("{cause}; the maximum is {MAX_TOLD}"))
    }

    fn check_number(&self, seat: Seat) -> Result<(), String> {
        let seats = self.dismissed.len();
        if (1..=seats).contains(&usize::from(seat.number())) {
            return Ok(());
        }
        Err(format!("seat {seat} is not one of 1 to {seats}"))
    }

    fn check_seat(&self, seat: Seat) -> Result<(), String> {
        self.check_number(seat)?;
        if self.dismissed[seat.index()] {
            return Err(format!("seat {seat} was dismissed"));
        }
        Ok(())
    }

    /// Rules may waive a forfeit, but not invent one.
    fn check_forfeits(&self, forfeits: Option<&[Option<Forfeit>]>) -> Result<(), String> {
        let Some(forfeits) = forfeits else { return Ok(()) };
        let seats = self.forfeits.len();
        if forfeits.len() != seats {
            return Err(format!("`forfeits` needs {seats} members, one for each seat"));
        }
        let happened =
            |(own, seen): (&Option<Forfeit>, &Option<Forfeit>)| own.is_none() || own == seen;
        match forfeits.iter().zip(&self.forfeits).position(|pair| !happened(pair)) {
            Some(index) => {
                Err(format!("seat {} did not forfeit so: `forfeits`", Seat::from_index(index)))
            }
            None => Ok(()),
        }
    }

    fn check_bad_answers(&self, counts: Option<&[u32]>) -> Result<(), String> {
        let Some(counts) = counts else { return Ok(()) };
        let seats = self.forfeits.len();
        if counts.len() == seats && counts.iter().all(|count| *count <= MAX_BAD_ANSWERS) {
            return Ok(());
        }
        Err(format!("`bad_answers` needs {seats} numbers from 0 to {MAX_BAD_ANSWERS}"))
    }

    fn check_scores(&self, scores: &[Vec<i64>]) -> Result<(), String> {
        let seats = self.dismissed.len();
        let columns = self.columns;
        if scores.len() != seats || scores.iter().any(|score| score.len() != columns) {
            let plural = if columns == 1 { "" } else { "s" };
            return Err(format!("each of {seats} seats needs {columns} number{plural} in `over`"));
        }
        let bounds = -MAX_SCORE..=MAX_SCORE;
        match scores.iter().flatten().find(|score| !bounds.contains(score)) {
            Some(score) => {
                Err(format!("score {score} is not between -{MAX_SCORE} and {MAX_SCORE}"))
            }
            None => Ok(()),
        }
    }
}

/// Checks that requests or the end of the match come last. `asked` has the seats of the requests so
/// far.
fn check_order(action: &Action, is_last: bool, asked: &mut Vec<Seat>) -> Result<(), String> {
    match action {
        Action::Ask { ask: seat, .. } if asked.contains(seat) => {
            Err(format!("seat {seat} is asked twice at once"))
        }
        Action::Ask { ask: seat, .. } => {
            asked.push(*seat);
            Ok(())
        }
        _ if !asked.is_empty() => Err("only more requests may follow a request".to_owned()),
        Action::Over { .. } if !is_last => {
            Err("nothing may follow the end of the match".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks the time that a request gives, if it gives one.
fn check_time(move_us: Option<i64>, bank_us: Option<i64>) -> Result<(), String> {
    match (move_us, bank_us) {
        (None, None) => Ok(()),
        (Some(_), Some(_)) => Err("a request has `move_us` or `bank_us`, not both".to_owned()),
        (Some(limit), None) if (0..=MAX_ALLOWANCE).contains(&limit) => Ok(()),
        (None, Some(bank)) if (-MAX_ALLOWANCE..=MAX_ALLOWANCE).contains(&bank) => Ok(()),
        _ => Err(format!("the time of a request is not within {MAX_ALLOWANCE} microseconds")),
    }
}

/// XML has no control characters but white space. In a record they would take six times the room.
fn check_characters(svg: &str) -> Result<(), String> {
    let is_wrong = |letter: &char| letter.is_ascii_control() && !"\n\r\t".contains(*letter);
    match svg.chars().find(is_wrong) {
        Some(letter) => {
            Err(format!("a picture contains the character U+{:04X}", u32::from(letter)))
        }
        None => Ok(()),
    }
}

fn check_length(text: &str, limit: usize) -> Result<(), String> {
    if text.len() <= limit {
        return Ok(());
    }
    Err(format!("a text of {} bytes; the maximum is {limit}", text.len()))
}
