//! `arbiter try`: an author plays against bots on this machine.
//!
//! # Theory of operation
//!
//! A [`Session`] is one run of the command: a game, some bots, and a web server for one browser. It
//! plays one match at a time, a [`LiveMatch`], on its own thread, with the same referee, clocks and
//! sandbox as any match. Its hooks into the match (see [`arbiter_worker::match_runner`]) wrap
//! the game. So the session gets each state of the game before a message is sent, copies it for the
//! pages, and delays the match while it is paused or shown slowly. No clock runs during a delay.
//! A person's seat waits for a page where a bot's seat waits for a pipe. The copy checks a person's
//! answer first: an answer that the rules refuse never reaches the match.
//!
//! Pages draw the copy from the view of one seat. A page contains nothing that is hidden from this
//! seat.
//!
//! A [`BotSession`](bot_session::BotSession) is a bot without a match: it sends protocol lines and
//! returns the replies as a referee receives them.

pub(crate) mod bot_console;
pub(crate) mod bot_session;
pub(crate) mod live_match;
pub(crate) mod match_hooks;
pub(crate) mod move_form;
pub(crate) mod session;
pub(crate) mod web;

pub(crate) use live_match::LiveMatch;
pub(crate) use session::Session;
