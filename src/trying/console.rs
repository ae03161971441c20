//! The console of one bot, for pages: a dialogue on a thread of its own, and its history.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use arbiter_games::BotName;
use arbiter_worker::fault::Fault;
use arbiter_worker::seat::{StopHandle, StopSignal};
use tokio::sync::oneshot;

use super::House;
use super::dialogue::{Dialogue, Exchange};

/// How many exchanges are shown.
const KEPT: usize = 100;

/// What was said in a console.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// A line and its answer.
    Said(Exchange),
    /// Something to know: a bot was started, or could not be.
    Remark(String),
}

/// The console of one bot.
#[derive(Debug)]
pub(crate) struct Console {
    /// Its position among those of the command line.
    bot: usize,
    pub(crate) name: BotName,
    history: Mutex<VecDeque<Entry>>,
    talk: Mutex<Option<Talk>>,
}

/// A bot that runs, and its thread.
#[derive(Debug)]
struct Talk {
    orders: mpsc::Sender<Order>,
    cord: StopHandle,
    thread: JoinHandle<()>,
}

/// What the bot is to be told, and who waits until it has answered.
type Order = (String, oneshot::Sender<()>);

impl Console {
    pub(super) fn new(bot: usize, name: BotName) -> Self {
        Self { bot, name, history: Mutex::default(), talk: Mutex::default() }
    }

    /// What was said, the oldest first.
    pub(crate) fn history(&self) -> Vec<Entry> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.iter().cloned().collect()
    }

    /// Whether the bot was started.
    pub(crate) fn is_open(&self) -> bool {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn add(&self, entry: Entry) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.push_back(entry);
        let surplus = history.len().saturating_sub(KEPT);
        history.drain(..surplus);
    }

    /// Tells the bot a protocol unit, and starts it first if it does not run, or could not be
    /// started before. The answer is in the
    /// history when the receiver hears.
    pub(crate) fn say(self: &Arc<Self>, house: &Arc<House>, unit: String) -> oneshot::Receiver<()> {
        let (done, heard) = oneshot::channel();
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        if talk.as_ref().is_none_or(|talk| talk.thread.is_finished()) {
            *talk = self.start(house);
        }
        if let Some(talk) = &*talk
            && talk.orders.send((unit, done)).is_err()
        {
            self.add(Entry::Remark("it has just ended; send that again".to_owned()));
        }
        heard
    }

    /// Starts the bot as it is now on disk.
    fn start(self: &Arc<Self>, house: &Arc<House>) -> Option<Talk> {
        let (stop, cord) = match StopSignal::new_pair() {
            Ok(both) => both,
            Err(error) => {
                self.add(Entry::Remark(format!("cannot start it: {error}")));
                return None;
            }
        };
        let (orders, received) = mpsc::channel();
        let (console, house) = (Arc::clone(self), Arc::clone(house));
        let serve = move || {
            if let Err(why) = console.talk(&house, &Arc::new(stop), &received) {
                console.add(Entry::Remark(why));
            }
        };
        let thread = thread::Builder::new().name("console".to_owned()).spawn(serve);
        let told = |error| self.add(Entry::Remark(format!("cannot start a thread: {error}")));
        thread.map_err(told).ok().map(|thread| Talk { orders, cord, thread })
    }

    /// Starts the bot, and lets it answer until nobody asks any more.
    fn talk(
        &self,
        house: &House,
        stop: &Arc<StopSignal>,
        orders: &mpsc::Receiver<Order>,
    ) -> Result<(), String> {
        let roster = house.roster().map_err(|failure| failure.message().to_owned())?;
        let entry = roster.entries.get(self.bot).ok_or("no such bot")?;
        let failed = |fault: Fault| fault.to_string();
        let mut dialogue = Dialogue::open(house, &entry.bot, stop).map_err(failed)?;
        self.add(Entry::Remark(format!("{} was started", entry.name)));
        for (unit, done) in orders {
            match dialogue.say(&unit) {
                Ok(exchange) => self.add(Entry::Said(exchange)),
                Err(Fault::Abandoned) => break,
                Err(fault) => {
                    let closed = dialogue.kill().err();
                    return Err(closed.unwrap_or(fault).to_string());
                }
            }
            // Whoever asked may be gone.
            let _unheard = done.send(());
        }
        dialogue.kill().map_err(failed)
    }

    /// Ends the bot, and waits for that; the next line starts it again.
    pub(crate) fn close(&self) {
        let talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Talk { orders, cord, thread }) = talk else { return };
        drop(orders);
        cord.stop();
        drop(thread.join());
        self.add(Entry::Remark("it was ended".to_owned()));
    }
}
