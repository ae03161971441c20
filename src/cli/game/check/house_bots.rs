//! House bots play the matches of packages whose rules do not list the legal replies.

use std::sync::Arc;

use arbiter_games::{ClockKind, Framing, Message, Protocol};
use arbiter_worker::bot::Bot;
use arbiter_worker::fault::Fault;
use arbiter_worker::package::Package;
use arbiter_worker::sandbox::{Host, Jail, JailConfig, Workdir};
use arbiter_worker::seat::{ExecSeat, SeatDriver, StdioSeat, StopSignal};

use super::playout::{Ask, Players, Reply};
use super::problem::Problem;

/// The bots that come with a package, and where they run.
#[derive(Debug)]
pub(super) struct HouseBots {
    pub(super) bots: Vec<Bot>,
    pub(super) framing: Framing,
    /// The protocol of bots that name none.
    pub(super) protocol: Protocol,
    pub(super) host: Arc<Host>,
    pub(super) stop: Arc<StopSignal>,
}

/// Loads the house bots of a package, by name.
///
/// # Errors
/// Why one of them cannot be used.
pub(super) fn load(package: &Package) -> Result<Vec<Bot>, String> {
    let folders = package.house_bots().into_iter();
    folders.map(|path| Bot::load(&path).map_err(|error| error.to_string())).collect()
}

impl HouseBots {
    /// Starts a bot for each seat.
    pub(super) fn seat(&self, seats: usize) -> Result<SeatedBots, Problem> {
        let bots = self.bots.iter().cycle().take(seats);
        let drivers: Result<Vec<_>, Fault> = bots.map(|bot| self.start(bot)).collect();
        drivers.map(SeatedBots).map_err(|fault| Problem::new(fault.to_string()))
    }

    fn start(&self, bot: &Bot) -> Result<Box<dyn SeatDriver>, Fault> {
        let workdir = Workdir::new(&bot.source)?;
        let jail = Jail::open(&self.host, workdir, &JailConfig::default())?;
        let stop = Arc::clone(&self.stop);
        if bot.protocol.unwrap_or(self.protocol) == Protocol::Exec {
            return Ok(Box::new(ExecSeat::new(jail, bot.run.clone(), stop)));
        }
        StdioSeat::start(jail, &bot.run, self.framing.clone(), ClockKind::Wall, stop)
    }
}

/// A bot in each seat of a match.
pub(super) struct SeatedBots(Vec<Box<dyn SeatDriver>>);

impl Players for SeatedBots {
    fn hear(&mut self, message: &Message) {
        self.0[message.seat.index()].notify(&message.text);
    }

    fn reply(&mut self, ask: &Ask<'_>) -> Result<Reply, Problem> {
        let message = ask.message;
        let bot = &mut self.0[message.seat.index()];
        let reply = bot.ask(&message.text, message.allowance.time());
        let reply = reply.map_err(|fault| Problem::new(fault.to_string()))?;
        bot.wait_until_stopped().map_err(|fault| Problem::new(fault.to_string()))?;
        let reply = reply.reply.map_err(|failure| failure.forfeit);
        Ok(reply.map(|reply| String::from_utf8_lossy(&reply).into_owned()))
    }
}
