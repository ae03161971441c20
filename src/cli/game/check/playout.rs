//! Plays a match without bots: someone chooses each reply or forfeit.

use arbiter_games::move_form::FormFields;
use arbiter_games::{
    BotName, ExpectedReply, Forfeit, Framing, Game, Illegal, MatchState, Message, Micros, Note,
    Params, Seat, SeatResult, Seed, Step, Values,
};
use arbiter_packages::{Descriptor, LegalReplies, MAX_LEGAL};
use std::sync::Arc;

use super::dialogue::{Dialogue, RulesSupply};
use super::problem::Problem;
use super::svg;

/// Maximum number of replies in a match.
const MAX_REPLIES: usize = 20_000;

/// The charge for each reply.
const CHARGE: Micros = Micros::from_millis(1);

/// The names of the bots.
const NAMES: [&str; 16] = [
    "alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "ken",
    "laura", "mallory", "niaj", "olivia", "peggy",
];

/// A match to play.
#[derive(Clone, Debug)]
pub(super) struct MatchPlan {
    pub(super) seats: usize,
    /// The parameters that are not official.
    pub(super) values: Values,
    pub(super) seed: Seed,
}

/// A reply, or why there is none.
pub(super) type Reply = Result<String, Forfeit>;

/// A request in a match.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) message: &'a Message,
    /// The number of the request in the match, from 0.
    pub(super) number: usize,
    state: &'a dyn MatchState,
    dialogue: &'a Dialogue,
    framing: &'a Framing,
}

impl Ask<'_> {
    /// The legal replies. Empty if the rules do not list them.
    pub(super) fn legal(&self) -> Result<Vec<String>, Problem> {
        let before = self.dialogue.lock().exchanges.len();
        drop(self.state.view().move_form(self.message.seat, &FormFields::default()));
        let problem = |cause: String| Problem::after(self.dialogue, cause);
        let answer = match self.dialogue.lock().exchanges.get(before) {
            Some(exchange) => exchange.answer.clone(),
            None => return Ok(Vec::new()),
        };
        let answer = answer.map_err(|cause| problem(format!("the rules failed: {cause}")))?;
        let answer: Result<LegalReplies, _> = serde_json::from_str(&answer);
        let legal =
            answer.map_err(|error| problem(format!("not an answer to `legal`: {error}")))?.legal;
        if legal.len() > MAX_LEGAL {
            let count = legal.len();
            return Err(problem(format!("{count} legal replies; the maximum is {MAX_LEGAL}")));
        }
        let is_lines = *self.framing == Framing::Line;
        if let Some(reply) = legal.iter().find(|reply| is_lines && reply.contains('\n')) {
            return Err(problem(format!("the legal reply {reply:?} is not one line")));
        }
        Ok(legal)
    }
}

/// Those who reply.
pub(super) trait Players {
    /// A message that expects no reply.
    fn hear(&mut self, _message: &Message) {}

    /// Replies to a request.
    fn reply(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem>;
}

impl<F: FnMut(&Ask<'_>) -> Result<Reply, Problem>> Players for F {
    fn reply(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        self(ask)
    }
}

/// A match that has ended.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) results: Vec<SeatResult>,
    pub(super) replies: Vec<(Seat, Reply)>,
    /// What is wrong if all replies are legal: the first one that the rules called illegal.
    pub(super) illegal: Option<Problem>,
    /// The number of pictures.
    pub(super) frames: usize,
    /// The size of the largest picture, in bytes.
    pub(super) largest_frame: usize,
    /// What is wrong with the first picture that is not as it should be.
    pub(super) frame_problem: Option<Problem>,
    pub(super) dialogue: Dialogue,
}

/// The package whose matches are played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) descriptor: &'a Descriptor,
    pub(super) digest: &'a str,
}

impl Subject<'_> {
    /// The game, whose rules come from `supply` and write down their dialogue.
    pub(super) fn game(&self, supply: &Arc<RulesSupply>, dialogue: &Dialogue) -> Game {
        Game::new(self.descriptor.game(self.digest, supply.tapped(dialogue)))
    }

    /// Plays a match to its end.
    ///
    /// # Errors
    /// How the rules failed.
    pub(super) fn play(
        &self,
        supply: &Arc<RulesSupply>,
        plan: &MatchPlan,
        players: &mut dyn Players,
    ) -> Result<Played, Problem> {
        let dialogue = Dialogue::default();
        let game = self.game(supply, &dialogue);
        let values = serde_json::to_value(&plan.values).expect("values have a text");
        let params = Params::read(&game, &values)
            .map_err(|error| Problem::new(format!("trial values: {error}")))?;
        let names: Vec<BotName> =
            NAMES[..plan.seats].iter().map(|name| name.parse().expect("a valid name")).collect();
        let state = params.start(&names, plan.seed);
        let state = state.map_err(|error| Problem::new(error.to_string()))?;
        let played = Played {
            results: Vec::new(),
            replies: Vec::new(),
            illegal: None,
            frames: 0,
            largest_frame: 0,
            frame_problem: None,
            dialogue,
        };
        let framing = &self.descriptor.framing;
        Driver { state, framing, players, played, out: vec![None; plan.seats] }.play()
    }
}

struct Driver<'a> {
    state: Box<dyn MatchState>,
    framing: &'a Framing,
    players: &'a mut dyn Players,
    played: Played,
    /// The first forfeit of each seat that does not run any more.
    out: Vec<Option<Forfeit>>,
}

impl Driver<'_> {
    fn play(mut self) -> Result<Played, Problem> {
        loop {
            match self.state.step() {
                Step::Send(message) if message.expected_reply == ExpectedReply::None => {
                    self.players.hear(&message);
                }
                Step::Send(message) => self.ask(&message)?,
                Step::Dismiss(seat) => self.out[seat.index()] = Some(Forfeit::Gone),
                Step::Note(Note::Frame { frame, .. }) => {
                    self.played.frames += 1;
                    self.played.largest_frame = self.played.largest_frame.max(frame.svg.len());
                    if let (None, Err(cause)) = (&self.played.frame_problem, svg::check(&frame)) {
                        let problem = Problem::after(&self.played.dialogue, cause);
                        self.played.frame_problem = Some(problem);
                    }
                }
                Step::Note(_) => {}
                Step::Illegal(seat, Illegal(why)) => self.illegal(seat, &why),
                Step::Fault(cause) => {
                    // The question and the answer follow in the problem.
                    let cause = cause.split("; asked: ").next().unwrap_or_default();
                    let cause = format!("the rules failed: {cause}");
                    return Err(Problem::after(&self.played.dialogue, cause));
                }
                Step::Over(results) => {
                    self.played.results = results;
                    return Ok(self.played);
                }
            }
        }
    }

    fn ask(&mut self, message: &Message) -> Result<(), Problem> {
        let seat = message.seat;
        let number = self.played.replies.len();
        if number == MAX_REPLIES {
            let cause = format!("the match does not end within {MAX_REPLIES} replies");
            return Err(Problem::after(&self.played.dialogue, cause));
        }
        let reply = match self.out[seat.index()] {
            Some(forfeit) => Err(forfeit),
            None => self.players.reply(&Ask {
                message,
                number,
                state: self.state.as_ref(),
                dialogue: &self.played.dialogue,
                framing: self.framing,
            })?,
        };
        // The program of a bot that forfeited does not run any more.
        if let Err(forfeit) = reply {
            self.out[seat.index()] = Some(forfeit);
        }
        let outcome =
            self.state.receive_reply(reply.as_deref().map_err(|forfeit| *forfeit), CHARGE);
        self.played.replies.push((seat, reply));
        if let Err(Illegal(why)) = outcome {
            self.illegal(seat, &why);
        }
        Ok(())
    }

    /// Notes that the rules have just called the last reply of this seat illegal.
    fn illegal(&mut self, seat: Seat, why: &str) {
        let played = &mut self.played;
        let last = played.replies.iter().rev().find(|(other, _)| *other == seat);
        if let (None, Some((_, Ok(reply)))) = (&played.illegal, last) {
            let cause = format!(
                "the rules list the reply {reply:?} of seat {seat} as legal, and then call it \
                 illegal: {why}"
            );
            played.illegal = Some(Problem::after(&played.dialogue, cause));
        }
    }
}
