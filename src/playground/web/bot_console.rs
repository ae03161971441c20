//! The console page of a bot: sends protocol lines and shows the replies.

use arbiter_games::{Game, Protocol, ProtocolExample};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Redirect;
use maud::{Markup, html};

use super::PageContext;
use super::layout::{WebError, page};
use crate::output::millis;
use crate::playground::bot_console::Entry;
use crate::playground::bot_session::Exchange;
use crate::playground::move_form::Fields;

/// Shows the history and the form.
pub(super) async fn show(
    State(context): State<PageContext>,
    Path(bot): Path<usize>,
    fields: Fields,
) -> Result<Markup, WebError> {
    let console = context.session.console(bot).ok_or_else(no_such_bot)?;
    let game = &context.session.options.game;
    let root = context.path(&format!("console/{bot}"));
    let draft = fields.get("line").unwrap_or_default();
    let title = format!("Talk to {}", console.name);
    let body = html! {
        h1 { (title) }
        p { (protocol_note(game)) " A reply may take " (context.session.options.limit) "." }
        form.say method="post" action={ (root) "/say" } {
            label { "Line" textarea name="line" rows="3" autofocus spellcheck="false" { (draft) } }
            button type="submit" { "Send" }
        }
        @if console.is_open() {
            form.action method="post" action={ (root) "/end" } {
                button type="submit" { "Stop the bot" }
                " The next line starts it again, as it is on disk at that time."
            }
        }
        h2 { "Messages, newest first" }
        @for entry in console.history().iter().rev() { (entry_of(entry)) }
        h2 { "Lines of the protocol" }
        (examples_of(&game.playground.examples, &root))
    };
    Ok(page(&context, &title, false, &body))
}

/// How the bot receives lines, by the game's protocol.
fn protocol_note(game: &Game) -> &'static str {
    match game.bots.protocol {
        Protocol::Exec => "Each line runs the bot once, with the words of the line as arguments.",
        Protocol::Stdio | Protocol::Http if game.bots.http => {
            "The bot keeps running and receives your lines on standard input. An HTTP bot receives \
             a line as the response to its request; its next request is the reply."
        }
        Protocol::Stdio | Protocol::Http => {
            "The bot keeps running and receives your lines on standard input."
        }
    }
}

fn entry_of(entry: &Entry) -> Markup {
    let exchange = match entry {
        Entry::Exchange(exchange) => exchange,
        Entry::Event(text) => return html! { div.exchange { em { (text) } } },
    };
    let Exchange { sent, reply, spent, stderr, exit } = exchange;
    html! {
        div.exchange {
            pre { "> " (sent) }
            @match reply {
                Some(Ok(answer)) => { pre.answer { (answer) } }
                Some(Err(failure)) => { p.forfeit { (failure) } }
                None => { p { em { "No reply expected." } } }
            }
            @if reply.is_some() { small { (millis(spent.wall)) ", CPU " (millis(spent.cpu)) } }
            @if let Some(exit) = exit { p { "The bot has ended: " (exit) "." } }
            @if !stderr.is_empty() {
                details open { summary { "Standard error" } pre { (stderr) } }
            }
        }
    }
}

fn examples_of(examples: &[ProtocolExample], root: &str) -> Markup {
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
                                button type="submit" { "Use" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Sends a line and waits for the reply.
pub(super) async fn send(
    State(context): State<PageContext>,
    Path(bot): Path<usize>,
    fields: Fields,
) -> Result<Redirect, WebError> {
    let console = context.session.console(bot).ok_or_else(no_such_bot)?;
    let line = fields
        .get("line")
        .unwrap_or_default()
        .replace("\r\n", "\n")
        .trim_end_matches('\n')
        .to_owned();
    if line.is_empty() {
        return Err(WebError::new(StatusCode::UNPROCESSABLE_ENTITY, "the line is empty"));
    }
    let replied = console.send(&context.session, line);
    // The history shows the reply, or why there is none.
    let _replied = replied.await;
    Ok(Redirect::to(&context.path(&format!("console/{bot}"))))
}

/// Stops the bot.
pub(super) async fn stop(
    State(context): State<PageContext>,
    Path(bot): Path<usize>,
) -> Result<Redirect, WebError> {
    let console = context.session.console(bot).ok_or_else(no_such_bot)?;
    let result = tokio::task::spawn_blocking(move || console.close()).await;
    result.map_err(|error| {
        WebError::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot stop the bot: {error}"))
    })?;
    Ok(Redirect::to(&context.path(&format!("console/{bot}"))))
}

fn no_such_bot() -> WebError {
    WebError::new(StatusCode::NOT_FOUND, "there is no such bot")
}
