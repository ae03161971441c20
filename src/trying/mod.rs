//! `arbiter try`: a table on this machine at which an author sits down with his bots.
//!
//! # Theory of operation
//!
//! A [`House`] is one run of the command: a game, some bots, a server of pages for one browser. At
//! its table one match is played at a time, a [`Sitting`], by the same referee, clocks and sandbox
//! as any match, on a thread of its own. The sitting is the match's *company*
//! ([`arbiter_worker::match_runner::MatchHooks`]): it wraps the game, so that it sees the state of the rules
//! before anything is said, keeps a copy of it for the pages, and holds the match up while it is
//! paused or shown slowly; nobody's clock runs then. A person's seat waits for a page where a bot's
//! seat waits for a pipe. What a person answers is tried on the copy first: what the rules refuse
//! there never reaches the match.
//!
//! Pages draw the copy for the eyes of one seat. What is hidden from that seat is not in the page.
//!
//! A [`Dialogue`](dialogue::Dialogue) is a bot without a match: lines of the protocol go in, and
//! what the referee would have heard comes out.

pub(crate) mod company;
pub(crate) mod console;
pub(crate) mod dialogue;
pub(crate) mod house;
pub(crate) mod moves;
pub(crate) mod sitting;
pub(crate) mod web;

pub(crate) use house::House;
pub(crate) use sitting::Sitting;
