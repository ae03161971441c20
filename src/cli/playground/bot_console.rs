//! The console on the terminal: sends lines of standard input to a bot and prints its replies.

use std::io::{self, BufRead as _};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use arbiter_games::ProtocolExample;
use arbiter_worker::fault::Fault;
use arbiter_worker::seat::StopSignal;
use serde_json::json;

use super::super::play::stop_on_signals;
use crate::failure::Failure;
use crate::output::eprint_line;
use crate::output::{Output, millis, printable};
use crate::playground::Session;
use crate::playground::bot_session::{BotSession, Exchange, Farewell, unit};

/// What the console does after a bot has ended.
enum Next {
    Restart,
    End,
}

/// Talks to the first bot of a session until standard input ends.
pub(super) fn run(session: &Session, json: bool) -> Result<(), Failure> {
    let stop = stop_on_signals()?;
    let lines = lines()?;
    let mut console = Console { session, json, out: Output::new(), lines: 0, failed: 0 };
    while let Next::Restart = console.talk(&stop, &lines)? {}
    console.out.flush()?;
    match console.failed {
        0 => Ok(()),
        failed => Err(Failure::Negative(format!(
            "{failed} of {} lines had no valid reply",
            console.lines
        ))),
    }
}

/// How often a waiting console checks for interruption.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Reads standard input on a separate thread, so that Ctrl-C works while it waits.
fn lines() -> Result<Receiver<io::Result<String>>, Failure> {
    let (sender, lines) = mpsc::sync_channel(0);
    let read_lines = move || {
        for line in io::stdin().lock().split(b'\n') {
            let line = line.map(|line| String::from_utf8_lossy(&line).into_owned());
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    let spawned = thread::Builder::new().name("lines".to_owned()).spawn(read_lines);
    spawned.map_err(|error| Failure::Negative(format!("cannot start a thread: {error}")))?;
    Ok(lines)
}

struct Console<'a> {
    session: &'a Session,
    json: bool,
    out: Output,
    /// The number of lines that required a reply, and how many of these got no valid reply.
    lines: usize,
    failed: usize,
}

impl Console<'_> {
    /// Starts the bot as it is on disk and sends lines to it.
    fn talk(
        &mut self,
        stop: &Arc<StopSignal>,
        lines: &Receiver<io::Result<String>>,
    ) -> Result<Next, Failure> {
        let roster = self.session.roster()?;
        let bot = &roster.entries[0].bot;
        let mut bot_session = BotSession::open(self.session, bot, stop).map_err(to_failure)?;
        let next = self.send_lines(&mut bot_session, stop, lines);
        match next {
            Ok(next) => {
                let farewell = bot_session.close().map_err(to_failure)?;
                self.show_farewell(&farewell)?;
                Ok(next)
            }
            Err(failure) => match bot_session.kill() {
                Ok(()) => Err(failure),
                Err(fault) => Err(to_failure(fault)),
            },
        }
    }

    fn send_lines(
        &mut self,
        bot_session: &mut BotSession,
        stop: &StopSignal,
        lines: &Receiver<io::Result<String>>,
    ) -> Result<Next, Failure> {
        loop {
            let line = match lines.recv_timeout(POLL_INTERVAL) {
                Ok(line) => {
                    line.map_err(|error| Failure::Negative(format!("standard input: {error}")))?
                }
                Err(RecvTimeoutError::Timeout) => {
                    stop.check().map_err(to_failure)?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(Next::End),
            };
            match line.trim() {
                "" => {}
                ":quit" => return Ok(Next::End),
                ":restart" => return Ok(Next::Restart),
                ":help" => self.help(),
                other if other.starts_with(':') => {
                    eprint_line(&format!(
                        "unknown command {}; use :help, :restart or :quit",
                        printable(other)
                    ));
                }
                _ => {
                    let exchange = bot_session.send(&unit(&line)).map_err(to_failure)?;
                    self.show(&exchange)?;
                }
            }
        }
    }

    /// Prints the lines of the protocol.
    fn help(&self) {
        for ProtocolExample { line, meaning } in &self.session.options.game.playground.examples {
            eprint_line(&format!("{line}\n    {meaning}"));
        }
    }

    fn show(&mut self, exchange: &Exchange) -> Result<(), Failure> {
        let Exchange { sent, reply, spent, stderr, exit } = exchange;
        if let Some(reply) = reply {
            self.lines += 1;
            self.failed += usize::from(reply.is_err());
        }
        let failure = reply.as_ref().and_then(|reply| reply.as_ref().err());
        if self.json {
            self.out.json(&json!({
                "told": sent,
                "reply": reply.as_ref().and_then(|reply| reply.as_ref().ok()),
                "forfeit": failure.map(|failure| failure.forfeit),
                "detail": failure.map(|failure| &failure.detail),
                "wall_us": spent.wall.0,
                "cpu_us": spent.cpu.0,
                "stderr": stderr,
                "exit": exit,
            }))?;
            return self.out.flush();
        }
        match reply {
            Some(Ok(answer)) => answer.split('\n').try_for_each(|line| self.out.line(line))?,
            Some(Err(failure)) => self.out.line(&format!("forfeit: {failure}"))?,
            None => {}
        }
        // Print the reply before its times, which go to standard error.
        self.out.flush()?;
        if reply.is_some() {
            eprint_line(&format!("  ({}, CPU {})", millis(spent.wall), millis(spent.cpu)));
        }
        show_ending(stderr, exit.as_deref());
        Ok(())
    }

    fn show_farewell(&mut self, farewell: &Farewell) -> Result<(), Failure> {
        let Farewell { exit, stderr, usage } = farewell;
        if self.json {
            self.out.json(&json!({
                "ended": true,
                "exit": exit,
                "stderr": stderr,
                "cpu_us": usage.cpu.0,
                "memory": usage.memory.map(|memory| memory.0),
            }))?;
            return self.out.flush();
        }
        show_ending(stderr, exit.as_deref());
        Ok(())
    }
}

/// Prints a bot's standard error and how it ended, if it did.
fn show_ending(stderr: &str, exit: Option<&str>) {
    for line in stderr.lines() {
        eprint_line(&format!("  [stderr] {}", printable(line)));
    }
    if let Some(exit) = exit {
        eprint_line(&format!("  the bot has ended: {exit}"));
    }
}

fn to_failure(fault: Fault) -> Failure {
    Failure::Negative(match fault {
        Fault::Abandoned => "interrupted".to_owned(),
        fault @ (Fault::System { .. } | Fault::Rules(_)) => fault.to_string(),
    })
}
