//! Checks that the actions of an answer are possible.

use arbiter_games::Seat;

use crate::protocol::{Action, Answer, MAX_FRAME, MAX_SCORE, MAX_TEXT};

/// The state of a match that decides which actions are possible.
#[derive(Debug)]
pub(crate) struct AnswerCheck {
    /// The number of components of a score.
    pub(crate) columns: usize,
    /// For each seat, whether its program was ended.
    pub(crate) dismissed: Vec<bool>,
}

impl AnswerCheck {
    /// Checks the actions in order.
    ///
    /// # Errors
    /// What is wrong with the first one that is not possible.
    pub(crate) fn check(mut self, answer: &Answer) -> Result<(), String> {
        let mut asked = Vec::new();
        for (index, action) in answer.actions.iter().enumerate() {
            if !asked.is_empty() && !matches!(action, Action::Ask { .. }) {
                return Err("only more requests may follow a request".to_owned());
            }
            match action {
                Action::Tell { tell: seat, text } => self.check_text(*seat, text)?,
                Action::Ask { ask: seat, text } => {
                    self.check_text(*seat, text)?;
                    if asked.contains(seat) {
                        return Err(format!("seat {seat} is asked twice at once"));
                    }
                    asked.push(*seat);
                }
                Action::Dismiss { dismiss: seat } => {
                    self.check_seat(*seat)?;
                    self.dismissed[seat.index()] = true;
                }
                Action::Illegal { illegal: seat, why } => self.check_text(*seat, why)?,
                Action::Note { note } => check_length(note, MAX_TEXT)?,
                Action::Frame { frame, viewer } => {
                    check_length(&frame.svg, MAX_FRAME)?;
                    check_length(&frame.caption, MAX_TEXT)?;
                    viewer.map_or(Ok(()), |seat| self.check_number(seat))?;
                }
                Action::Over { over } => {
                    self.check_scores(over)?;
                    if index + 1 < answer.actions.len() {
                        return Err("nothing may follow the end of the match".to_owned());
                    }
                }
            }
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

    fn check_scores(&self, scores: &[Vec<i64>]) -> Result<(), String> {
        let seats = self.dismissed.len();
        let columns = self.columns;
        if scores.len() != seats || scores.iter().any(|score| score.len() != columns) {
            return Err(format!("the scores of {seats} seats need {columns} numbers each"));
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

fn check_length(text: &str, limit: usize) -> Result<(), String> {
    if text.len() <= limit {
        return Ok(());
    }
    Err(format!("a text of {} bytes; the maximum is {limit}", text.len()))
}
