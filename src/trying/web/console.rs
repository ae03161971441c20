//! The console of a bot: any line of its protocol, and what comes back.

use arbiter_games::{Game, Protocol, ProtocolExample};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Redirect;
use maud::{Markup, html};

use super::Desk;
use super::page::{WebError, page};
use crate::output::millis;
use crate::trying::console::Entry;
use crate::trying::dialogue::Exchange;
use crate::trying::moves::Fields;

/// The history, and a form to go on.
pub(super) async fn show(
    State(desk): State<Desk>,
    Path(bot): Path<usize>,
    fields: Fields,
) -> Result<Markup, WebError> {
    let console = desk.house.console(bot).ok_or_else(no_such_bot)?;
    let game = &desk.house.wish.game;
    let root = desk.path(&format!("console/{bot}"));
    let draft = fields.get("line").unwrap_or_default();
    let title = format!("Talk to {}", console.name);
    let body = html! {
        h1 { (title) }
        p { (manner(game)) " An answer may take " (desk.house.wish.limit) "." }
        form.say method="post" action={ (root) "/say" } {
            label { "Line" textarea name="line" rows="3" autofocus spellcheck="false" { (draft) } }
            button type="submit" { "Send" }
        }
        @if console.is_open() {
            form.action method="post" action={ (root) "/end" } {
                button type="submit" { "End the bot" } " The next line starts it again, as it is then on disk."
            }
        }
        h2 { "What was said, the latest first" }
        @for entry in console.history().iter().rev() { (entry_of(entry)) }
        h2 { "Lines of the protocol" }
        (phrases_of(&game.playground.examples, &root))
    };
    Ok(page(&desk, &title, false, &body))
}

/// How this game's bots are spoken to.
fn manner(game: &Game) -> &'static str {
    match game.bots.protocol {
        Protocol::Exec => "The bot is executed for each line, with its words as arguments.",
        Protocol::Stdio | Protocol::Http if game.bots.http => {
            "The bot runs until it is ended, and hears what you send; a bot of HTTP gets it as the \
             answer to its request, and its next request is its answer."
        }
        Protocol::Stdio | Protocol::Http => {
            "The bot runs until it is ended, and hears what you send on its standard input."
        }
    }
}

fn entry_of(entry: &Entry) -> Markup {
    let exchange = match entry {
        Entry::Said(exchange) => exchange,
        Entry::Remark(what) => return html! { div.exchange { em { (what) } } },
    };
    let Exchange { told, reply, spent, stderr, exit } = exchange;
    html! {
        div.exchange {
            pre { "> " (told) }
            @match reply {
                Some(Ok(answer)) => { pre.answer { (answer) } }
                Some(Err(failure)) => { p.forfeit { (failure.forfeit) ": " (failure.detail) } }
                None => { p { em { "Nothing is due." } } }
            }
            @if reply.is_some() { small { (millis(spent.wall)) ", processor " (millis(spent.cpu)) } }
            @if let Some(exit) = exit { p { "The bot has ended: " (exit) "." } }
            @if !stderr.is_empty() { details open { summary { "Standard error" } pre { (stderr) } } }
        }
    }
}

fn phrases_of(examples: &[ProtocolExample], root: &str) -> Markup {
    html! {
        table.examples {
            thead { tr { th { "Line" } th { "Meaning" } th {} } }
            tbody {
                @for ProtocolExample { line, meaning } in examples {
                    @let line = line.replace("\\n", "\n");
                    tr {
                        td { code { (line) } }
                        td { (meaning) }
                        td {
                            form.inline method="get" action=(root) {
                                input type="hidden" name="line" value=(line);
                                button type="submit" { "Take" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Sends a line, and waits for the answer.
pub(super) async fn say(
    State(desk): State<Desk>,
    Path(bot): Path<usize>,
    fields: Fields,
) -> Result<Redirect, WebError> {
    let console = desk.house.console(bot).ok_or_else(no_such_bot)?;
    let line = fields.get("line").unwrap_or_default().replace("\r\n", "\n");
    let line = line.trim_end_matches('\n').to_owned();
    if line.is_empty() {
        return Err(WebError::new(StatusCode::UNPROCESSABLE_ENTITY, "write a line to be sent"));
    }
    let heard = console.say(&desk.house, line);
    // Whether it was answered or not, the history tells.
    let _answered = heard.await;
    Ok(Redirect::to(&desk.path(&format!("console/{bot}"))))
}

/// Ends the bot.
pub(super) async fn end(
    State(desk): State<Desk>,
    Path(bot): Path<usize>,
) -> Result<Redirect, WebError> {
    let console = desk.house.console(bot).ok_or_else(no_such_bot)?;
    let closed = tokio::task::spawn_blocking(move || console.close()).await;
    closed.map_err(|error| {
        WebError::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the bot was not ended: {error}"))
    })?;
    Ok(Redirect::to(&desk.path(&format!("console/{bot}"))))
}

fn no_such_bot() -> WebError {
    WebError::new(StatusCode::NOT_FOUND, "there is no such bot")
}
