//! The console of one bot: a bot session on a separate thread, and its history.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use arbiter_games::BotName;
use arbiter_worker::fault::Fault;
use arbiter_worker::seat::{StopHandle, StopSignal};
use tokio::sync::oneshot;

use super::Session;
use super::bot_session::{BotSession, Exchange};

/// Maximum number of history entries.
const MAX_ENTRIES: usize = 100;

/// An entry of a console's history.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// A line and its reply.
    Exchange(Exchange),
    /// An event, such as the start of the bot.
    Event(String),
}

/// The console of one bot.
#[derive(Debug)]
pub(crate) struct Console {
    /// The position of the bot on the command line.
    bot: usize,
    pub(crate) name: BotName,
    history: Mutex<VecDeque<Entry>>,
    running: Mutex<Option<RunningBot>>,
}

/// A running bot and its thread.
#[derive(Debug)]
struct RunningBot {
    requests: mpsc::Sender<SendRequest>,
    stop_handle: StopHandle,
    thread: JoinHandle<()>,
}

/// A protocol unit to send, and a channel that reports the reply.
type SendRequest = (String, oneshot::Sender<()>);

impl Console {
    pub(super) fn new(bot: usize, name: BotName) -> Self {
        Self { bot, name, history: Mutex::default(), running: Mutex::default() }
    }

    /// The history, oldest first.
    pub(crate) fn history(&self) -> Vec<Entry> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.iter().cloned().collect()
    }

    /// Whether the bot is running.
    pub(crate) fn is_open(&self) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn add(&self, entry: Entry) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.push_back(entry);
        let surplus = history.len().saturating_sub(MAX_ENTRIES);
        history.drain(..surplus);
    }

    /// Sends the bot a protocol unit, and starts the bot first if it is not running. The receiver
    /// completes when the reply is in the history.
    pub(crate) fn send(
        self: &Arc<Self>,
        session: &Arc<Session>,
        unit: String,
    ) -> oneshot::Receiver<()> {
        let (reply_sender, reply_receiver) = oneshot::channel();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.as_ref().is_none_or(|bot| bot.thread.is_finished()) {
            *running = self.start(session);
        }
        if let Some(bot) = &*running
            && bot.requests.send((unit, reply_sender)).is_err()
        {
            self.add(Entry::Event("the bot has just ended; send the line again".to_owned()));
        }
        reply_receiver
    }

    /// Starts the bot as it is on disk.
    fn start(self: &Arc<Self>, session: &Arc<Session>) -> Option<RunningBot> {
        let (stop, stop_handle) = match StopSignal::new_pair() {
            Ok(both) => both,
            Err(error) => {
                self.add(Entry::Event(format!("cannot start the bot: {error}")));
                return None;
            }
        };
        let (requests, request_receiver) = mpsc::channel();
        let console = Arc::clone(self);
        let session = Arc::clone(session);
        let serve = move || {
            if let Err(error) = console.run(&session, &Arc::new(stop), &request_receiver) {
                console.add(Entry::Event(error));
            }
        };
        let thread = thread::Builder::new().name("console".to_owned()).spawn(serve);
        let report = |error| self.add(Entry::Event(format!("cannot start a thread: {error}")));
        thread.map_err(report).ok().map(|thread| RunningBot { requests, stop_handle, thread })
    }

    /// Starts the bot and sends it requests until the channel closes.
    fn run(
        &self,
        session: &Session,
        stop: &Arc<StopSignal>,
        requests: &mpsc::Receiver<SendRequest>,
    ) -> Result<(), String> {
        let roster = session.roster().map_err(|failure| failure.message().to_owned())?;
        let entry = roster.entries.get(self.bot).ok_or("no such bot")?;
        let to_text = |fault: Fault| fault.to_string();
        let mut bot_session = BotSession::open(session, &entry.bot, stop).map_err(to_text)?;
        self.add(Entry::Event(format!("{} was started", entry.name)));
        for (unit, reply_sender) in requests {
            match bot_session.send(&unit) {
                Ok(exchange) => self.add(Entry::Exchange(exchange)),
                Err(Fault::Abandoned) => break,
                Err(fault) => {
                    let close_error = bot_session.kill().err();
                    return Err(close_error.unwrap_or(fault).to_string());
                }
            }
            // Ignore an error: the browser may have closed the page.
            let _sent = reply_sender.send(());
        }
        bot_session.kill().map_err(to_text)
    }

    /// Stops the bot and waits for its end; the next line restarts it.
    pub(crate) fn close(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(RunningBot { requests, stop_handle, thread }) = running else { return };
        drop(requests);
        stop_handle.stop();
        drop(thread.join());
        self.add(Entry::Event("the bot was stopped".to_owned()));
    }
}
