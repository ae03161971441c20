//! A match by the rules of a package.
//!
//! # Theory of operation
//!
//! The rules answer a list of actions, which this state machine performs one by one as
//! [`MatchState::step`] is called. Requests end a list. The referee sends them one after another,
//! while the other bots are stopped, and the rules hear all replies at once: the moves are
//! simultaneous. Then the rules are asked again, until they end the match.
//!
//! The rules are not trusted. A failure, an answer that is not valid or a wrong score is a fault:
//! the match does not count, and is never a bot's forfeit.
//!
//! A copy of a match shares the rules of the original: it asks them only which replies are legal,
//! which changes nothing, and only while the original is at the same question.

use std::collections::VecDeque;
use std::sync::Arc;

use arbiter_games::move_form::{FormFields, MoveForm};
use arbiter_games::picture::{Key, Picture};
use arbiter_games::{
    Allowance, EntrantName, ExpectedReply, Forfeit, Frame, Illegal, MatchState, MatchView, Message,
    Micros, Note, Seat, SeatResult, Step,
};

use crate::answer_check::AnswerCheck;
use crate::answer_error;
use crate::clock::{Banks, PackageClock, Telling};
use crate::protocol::{Action, Heard, NewMatch, Question};
use crate::rules_host::RulesHost;
use crate::session::{Access, Session};
use crate::view;

/// What a match begins with.
#[derive(Debug)]
pub(crate) struct MatchSetup {
    pub(crate) host: Arc<dyn RulesHost>,
    /// The number of components of a score.
    pub(crate) columns: usize,
    pub(crate) clock: PackageClock,
    /// The first question.
    pub(crate) new: NewMatch,
    /// Whether the rules give arguments to programs, so that they are asked before these start.
    pub(crate) has_arguments: bool,
}

/// A match in progress.
#[derive(Clone, Debug)]
pub(crate) struct PackageMatch {
    setup: Arc<MatchSetup>,
    /// The rules, as soon as they run.
    access: Access,
    /// The number of questions to the rules so far that moved the match on.
    questions: u64,
    /// The rest of the last answer.
    actions: VecDeque<Action>,
    /// The replies to the requests of the last answer.
    heard: Vec<Heard>,
    banks: Banks,
    /// The request that follows an announcement of the time.
    announced: Option<Message>,
    /// The seat that owes a reply.
    asked: Option<Seat>,
    /// Whether the rules said how long this reply may take.
    has_own_time: bool,
    /// The arguments for each seat's program.
    arguments: Vec<Vec<String>>,
    /// Each seat's first forfeit.
    forfeits: Vec<Option<Forfeit>>,
    /// The seats whose programs were ended.
    dismissed: Vec<bool>,
    /// The length of the texts to each seat since its last request, in bytes.
    told: Vec<usize>,
    /// The last pictures: the one for all people, and the one for each seat.
    frames: (Option<Arc<Frame>>, Vec<Option<Arc<Frame>>>),
    /// The number of pictures so far.
    frame_count: u64,
    /// Whether seats have pictures of their own, so that none may see the one for all people.
    hides: bool,
    /// The last step, when the match has ended.
    end: Option<Step>,
}

impl PackageMatch {
    /// A match whose rules do not run yet.
    pub(crate) fn new(setup: MatchSetup) -> Self {
        let seats = setup.new.bots.len();
        Self {
            banks: Banks::new(setup.clock.clone(), seats),
            setup: Arc::new(setup),
            access: Access::NotStarted,
            questions: 0,
            actions: VecDeque::new(),
            heard: Vec::new(),
            announced: None,
            asked: None,
            has_own_time: false,
            arguments: vec![Vec::new(); seats],
            forfeits: vec![None; seats],
            dismissed: vec![false; seats],
            told: vec![0; seats],
            frames: (None, vec![None; seats]),
            frame_count: 0,
            hides: false,
            end: None,
        }
    }

    /// The rules. They start now if they do not run yet.
    fn session(&mut self) -> Result<Arc<Session>, String> {
        match &self.access {
            Access::Reader(_) => Err("a copy of a match cannot go on".to_owned()),
            Access::Owner(session) => Ok(Arc::clone(session)),
            Access::NotStarted => {
                let session = Arc::new(Session::new(self.setup.host.begin(self.setup.new.seed)?));
                self.access = Access::Owner(Arc::clone(&session));
                Ok(session)
            }
        }
    }

    /// Asks the rules what to do next.
    fn ask_rules(&mut self) -> Result<(), String> {
        let session = self.session()?;
        let question = if self.questions == 0 {
            Question::New(self.setup.new.clone())
        } else if self.heard.is_empty() {
            return Err("their answer neither asks a seat nor ends the match".to_owned());
        } else {
            self.heard.sort_by_key(|heard| heard.seat);
            Question::Heard(std::mem::take(&mut self.heard))
        };
        let line = serde_json::to_string(&question).map_err(|error| error.to_string())?;
        self.questions += 1;
        let text = session.ask(self.questions, &line)?;
        let answer = answer_error::parse(&text, self.dismissed.len())
            .map_err(|error| error.fault(&line, &text))?;
        let check = AnswerCheck {
            columns: self.setup.columns,
            dismissed: self.dismissed.clone(),
            forfeits: self.forfeits.clone(),
            told: self.told.clone(),
            may_launch: self.questions == 1 && self.setup.has_arguments,
        };
        check.check(&answer).map_err(|error| error.fault(&line, &text))?;
        self.actions = answer.actions.into();
        // Before the first of these pictures is shown: the one for all people may come first.
        self.hides |= self.actions.iter().any(is_private);
        while let Some(Action::Launch { launch, arguments }) = self.actions.front_mut() {
            self.arguments[launch.index()] = std::mem::take(arguments);
            self.actions.pop_front();
        }
        Ok(())
    }

    /// The replies of a seat that are legal. Empty if the rules cannot list them, or the match has
    /// gone on.
    pub(crate) fn legal_replies(&self, seat: Seat) -> Vec<String> {
        match &self.access {
            Access::Owner(session) | Access::Reader(session) if self.asked == Some(seat) => {
                session.legal_replies(self.questions, seat)
            }
            _ => Vec::new(),
        }
    }

    /// The last picture that the player of the seat `viewer` may see. Without a viewer: the one for
    /// all people.
    pub(crate) fn frame(&self, viewer: Option<Seat>) -> Option<&Frame> {
        let (public, private) = &self.frames;
        match viewer {
            None => public.as_deref(),
            // Games without hidden information draw one picture for all.
            Some(_) if !self.hides => public.as_deref(),
            Some(seat) => private.get(seat.index())?.as_deref(),
        }
    }

    /// Performs an action. Returns what the referee does for it.
    fn perform(&mut self, action: Action) -> Step {
        match action {
            Action::Launch { .. } => unreachable!("programs have their arguments already"),
            Action::Tell { tell, text, timed } => {
                self.told[tell.index()] += text.len() + 1;
                Step::Send(self.notice(tell, &text, timed))
            }
            Action::Ask { ask, text, timed, ack, move_us, bank_us } => {
                let own = move_us.map(|limit| Allowance::Move(Micros(limit)));
                let own = own.or(bank_us.map(|bank| Allowance::Bank(Micros(bank))));
                let mut request = self.notice(ask, &text, timed);
                request.expected_reply = if ack { ExpectedReply::Ack } else { ExpectedReply::Move };
                request.allowance = own.unwrap_or_else(|| self.banks.allowance(ask));
                self.asked = Some(ask);
                self.told[ask.index()] = 0;
                self.has_own_time = own.is_some();
                match self.banks.announcement(ask).filter(|_| own.is_none()) {
                    Some(Telling { text, tells_time }) => {
                        self.announced = Some(request);
                        Step::Send(Message { tells_time, ..Message::notice(ask, text) })
                    }
                    None => Step::Send(request),
                }
            }
            Action::Dismiss { dismiss } => {
                self.dismissed[dismiss.index()] = true;
                Step::Dismiss(dismiss)
            }
            Action::Note { note } => Step::Note(Note::Text { note }),
            Action::Frame { frame, viewer } => {
                let shown = match viewer {
                    None => &mut self.frames.0,
                    Some(seat) => &mut self.frames.1[seat.index()],
                };
                *shown = Some(Arc::new(frame.clone()));
                self.frame_count += 1;
                Step::Note(Note::Frame { frame, viewer })
            }
            Action::Illegal { illegal, why } => {
                self.forfeits[illegal.index()].get_or_insert(Forfeit::Illegal);
                Step::Illegal(illegal, Illegal(why))
            }
            Action::Over { over, forfeits, bad_answers } => {
                let forfeits = forfeits.unwrap_or_else(|| self.forfeits.clone());
                let bad_answers = bad_answers.unwrap_or_else(|| vec![0; over.len()]);
                let results = over.into_iter().zip(forfeits).zip(bad_answers);
                let results = results.map(|((score, forfeit), bad_answers)| SeatResult {
                    bad_answers,
                    ..SeatResult::new(score, forfeit)
                });
                self.end.insert(Step::Over(results.collect())).clone()
            }
        }
    }

    fn notice(&self, seat: Seat, text: &str, timed: bool) -> Message {
        let Telling { text, tells_time } = self.banks.tell(seat, text);
        Message { tells_time: tells_time || timed, ..Message::notice(seat, text) }
    }
}

impl MatchState for PackageMatch {
    fn step(&mut self) -> Step {
        if let Some(end) = &self.end {
            return end.clone();
        }
        if let Some(request) = self.announced.take() {
            return Step::Send(request);
        }
        loop {
            if let Some(action) = self.actions.pop_front() {
                return self.perform(action);
            }
            if let Err(cause) = self.ask_rules() {
                return self.end.insert(Step::Fault(cause)).clone();
            }
        }
    }

    fn receive_reply(
        &mut self,
        reply: Result<&str, Forfeit>,
        charged: Micros,
    ) -> Result<(), Illegal> {
        let seat = self.asked.expect("a seat was asked");
        if matches!(self.access, Access::Reader(_))
            && let Ok(reply) = reply
        {
            view::check_legal(&self.legal_replies(seat), reply)?;
        }
        self.asked = None;
        let has_own_time = std::mem::take(&mut self.has_own_time);
        if !has_own_time {
            self.banks.charge(seat, charged);
        }
        let (text, forfeit) = match reply {
            Ok(text) => (Some(text.to_owned()), None),
            Err(forfeit) => (None, Some(forfeit)),
        };
        if let Some(forfeit) = forfeit {
            self.forfeits[seat.index()].get_or_insert(forfeit);
        }
        let charged_us = has_own_time.then_some(charged.0);
        self.heard.push(Heard { seat, text, forfeit, charged_us });
        // Whether it is legal is in the next answer.
        Ok(())
    }

    /// Programs that get arguments from the rules wait for the first answer.
    fn prepare(&mut self) {
        let result =
            if self.setup.has_arguments { self.ask_rules() } else { self.session().map(drop) };
        if let Err(cause) = result {
            self.end = Some(Step::Fault(cause));
        }
    }

    fn launch_arguments(&self, seat: Seat) -> Vec<String> {
        self.arguments.get(seat.index()).cloned().unwrap_or_default()
    }

    fn view(&self) -> &dyn MatchView {
        self
    }
}

impl MatchView for PackageMatch {
    fn picture(&self, names: &[EntrantName], viewer: Option<Seat>) -> Picture {
        Picture::of_frame(self.frame(viewer), names)
    }

    fn picture_key(&self) -> Key {
        [self.frame_count, 0, 0, 0, 0, 0]
    }

    fn move_form(&self, seat: Seat, _chosen: &FormFields) -> MoveForm {
        view::move_form(&self.legal_replies(seat))
    }
}

/// Whether an action is a picture for one seat.
fn is_private(action: &Action) -> bool {
    matches!(action, Action::Frame { viewer: Some(_), .. })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arbiter_games::{Allowance, Micros, Seed, Values};

    use super::*;
    use crate::protocol::PROTOCOL_VERSION;
    use crate::rules_host::RulesSession;

    /// Rules that answer everything with this line.
    #[derive(Clone, Debug)]
    struct Constant(&'static str);

    impl RulesHost for Constant {
        fn begin(&self, _: Seed) -> Result<Box<dyn RulesSession>, String> {
            Ok(Box::new(self.clone()))
        }
    }

    impl RulesSession for Constant {
        fn ask(&mut self, _: &str) -> Result<String, String> {
            Ok(self.0.to_owned())
        }
    }

    fn begin(answer: &'static str) -> PackageMatch {
        let names = ["ada", "bob"].map(|name| name.parse().unwrap());
        PackageMatch::new(MatchSetup {
            host: Arc::new(Constant(answer)),
            columns: 1,
            clock: PackageClock {
                allowance: Allowance::Move(Micros::from_millis(500)),
                increment: Micros::ZERO,
                announcement: None,
            },
            new: NewMatch {
                protocol: PROTOCOL_VERSION,
                params: Values::new(),
                seed: Seed([0; 32]),
                bots: names.to_vec(),
                frames: true,
            },
            has_arguments: false,
        })
    }

    /// What a viewer sees after each step.
    fn seen(game: &mut PackageMatch, viewer: Option<Seat>) -> Vec<Option<String>> {
        let after_step = |_| {
            game.step();
            game.frame(viewer).map(|frame| frame.caption.clone())
        };
        (0..3).map(after_step).collect()
    }

    #[test]
    fn a_seat_never_sees_the_picture_for_all_if_it_has_its_own() {
        let answer = r#"{"do":[{"frame":{"svg":"<svg/>","caption":"all"}},{"frame":{"svg":"<svg/>","caption":"own"},"for":1},{"ask":1,"text":"x"}]}"#;
        let one = Some(Seat::from_index(0));
        let two = Some(Seat::from_index(1));
        let own = Some("own".to_owned());
        assert_eq!(seen(&mut begin(answer), one), [None, own.clone(), own]);
        assert_eq!(seen(&mut begin(answer), two), [None, None, None]);
        let open = r#"{"do":[{"frame":{"svg":"<svg/>","caption":"all"}},{"note":"x"},{"ask":1,"text":"x"}]}"#;
        assert_eq!(seen(&mut begin(open), two), [0; 3].map(|_| Some("all".to_owned())));
        assert_eq!(seen(&mut begin(answer), None), [0; 3].map(|_| Some("all".to_owned())));
    }
}
