//! "How to play": the text for authors of bots of a tournament's game, starter kits, and the file
//! of its game package.

use arbiter_games::{Framing, Game, Protocol};
use arbiter_packages::{MAX_BOT_MD, packed_file};
use arbiter_proto::v1::GetPackageRequest;
use axum::body::Body;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use tokio_stream::StreamExt as _;

use super::error::WebError;
use super::session::Session;
use super::tournament_page::{Tab, TournamentPage};
use super::{download, layout, markdown, parameter_words, settings_in_words};
use crate::db::worker_runtimes::RuntimeCount;
use crate::service::{ConnectedWorkers, GameGuide, PlayConditions};

/// Maximum size of a file of a bot that the page shows, in bytes.
const MAX_SHOWN_FILE: usize = 32 << 10;

/// The page.
pub(super) async fn show(
    session: Session,
    Path(tournament): Path<String>,
) -> Result<Markup, WebError> {
    if session.service.lacks_package(&tournament).await? == Some(true) {
        return Ok(without_package(&session, &tournament).await);
    }
    let guide = session.service.game_guide(&session.caller, &tournament).await?;
    let text = &guide.content.text;
    let is_cut = text.len() as u64 >= MAX_BOT_MD;
    let body = html! {
        (downloads(&tournament, &guide))
        (conditions(&guide.game, &guide.conditions))
        (bot_to_copy(&guide))
        @if text.is_empty() {
            p { "The game package has no text for authors of bots (BOT.md)." }
        } @else {
            (precedence(&format!("/t/{tournament}/about"), "About"))
            article.guide { (markdown::render(text, "guide-")) }
        }
        @if is_cut { p { "The text is longer. All of it is in the game package." } }
    };
    Ok(TournamentPage::new(&tournament, Tab::HowToPlay).render(&session, &body).await)
}

/// The page before an organiser has sent the game package.
async fn without_package(session: &Session, tournament: &str) -> Markup {
    let body = html! {
        p { "The organiser has not sent the game package yet. It contains this page's text and the \
            starter kits. Bots can be submitted when it is here." }
        @if session.caller.is_organiser() {
            p {
                "Send it from " a href={ "/t/" (tournament) "/organise" } { "the page Organise" }
                " or with " code { "arbiter tournament package " (tournament) " DIR" } "."
            }
        }
    };
    TournamentPage::new(tournament, Tab::HowToPlay).render(session, &body).await
}

/// The starter kits and the game package.
fn downloads(tournament: &str, guide: &GameGuide) -> Markup {
    let file = package_file(&guide.game);
    let game = file.as_deref().unwrap_or(&guide.game.name);
    html! {
        @if !guide.content.starters.is_empty() {
            p {
                "Download a starter kit, a complete bot: "
                @for (index, starter) in guide.content.starters.iter().enumerate() {
                    @if index > 0 { ", " }
                    a href={ "/t/" (tournament) "/how-to-play/" (starter.language) } download {
                        (layout::label(starter.language))
                    }
                }
                "."
            }
        }
        @if let Some(file) = &file {
            p {
                "This game is a game package. Download "
                a href={ "/t/" (tournament) "/package" } download { (file) }
                " to play it on your machine."
            }
        }
        p {
            "Then try your bot with " code { "arbiter preflight " (game) " mybot" }
            " and submit it with " code { "arbiter submit " (tournament) " mybot" } ", or "
            a href={ "/t/" (tournament) "/submit" } { "in the browser" } "."
        }
    }
}

/// What applies where the text of a game differs from the tournament. The page with this address
/// and this name has all settings.
pub(super) fn precedence(address: &str, page: &str) -> Markup {
    html! {
        p {
            "The text below is about the game with its default parameters and schedule. Where it "
            "differs from the conditions above or from "
            a href=(address) { "the page " (page) } ", those apply."
        }
    }
}

/// The protocol, the clock, the limits and the languages of a tournament, in words.
pub(super) fn conditions(game: &Game, conditions: &PlayConditions) -> Markup {
    let PlayConditions { params, clock, limits, ponder, workers } = conditions;
    html! {
        h2 { "Conditions in this tournament" }
        dl.conditions {
            dt { "Protocol" } dd { (protocol(game)) }
            @if !params.is_empty() {
                dt { "Parameters" }
                dd {
                    ul.plain {
                        @for (param, value) in params {
                            li { code { (param.key) " = " (value) } ": " (parameter_words::description(param)) }
                        }
                    }
                }
            }
            dt { "Clock" } dd { (settings_in_words::clock(clock, *ponder, game.bots.protocol)) }
            dt { "Limits" } dd { (settings_in_words::limits(limits)) }
            @if let Some(ConnectedWorkers { count, runtimes }) = workers {
                dt { "Languages" } dd { (languages(*count, runtimes)) }
            }
        }
    }
}

/// How a bot talks to the referee.
fn protocol(game: &Game) -> Markup {
    let end = match &game.bots.framing {
        Framing::Gtp => "A reply begins with `=` and ends with an empty line.",
        Framing::Line => "A reply is one line.",
        Framing::BlankLine => "A reply ends with an empty line.",
        Framing::EndsWith(_) => "A reply ends with the line that the protocol names.",
    };
    let end = layout::with_code(end);
    html! {
        @match game.bots.protocol {
            Protocol::Stdio => {
                "The bot runs for the whole match. It reads standard input line by line and replies \
                on standard output. " (end) " Flush after each reply. Debug output belongs on \
                standard error."
            }
            Protocol::Exec => {
                "The bot is started for each decision. It reads the request from its arguments, and \
                what it prints on standard output is the reply."
            }
            Protocol::Http => "The bot is an HTTP client.",
        }
        @if game.bots.http && game.bots.protocol != Protocol::Http { " HTTP clients can play, too." }
    }
}

/// What the connected workers have.
fn languages(workers: i64, runtimes: &[RuntimeCount]) -> Markup {
    html! {
        @if workers == 0 {
            "No worker is connected now, so the languages are not known. A bot is built and tried as \
            soon as a worker connects."
        } @else if runtimes.is_empty() {
            "The connected workers have not reported their languages."
        } @else {
            ul.plain.languages {
                @for RuntimeCount { program, version, workers } in runtimes {
                    li {
                        (language(program))
                        // The version of a compiler of C is not that of the language.
                        @if ["cc", "c++"].contains(&program.as_str()) { " (compiler " (version) ", " }
                        @else { " " (version) " (" }
                        code { (program) } ", " (layout::count(*workers, "worker", "workers")) ")"
                    }
                }
            }
            "Bots can use these, the libraries installed with them, and all files in the directory of the bot."
        }
    }
}

/// The language of an interpreter or compiler.
fn language(program: &str) -> &str {
    match program {
        "python3" => "Python",
        "pypy3" => "PyPy (Python)",
        "node" => "Node.js (JavaScript)",
        "perl" => "Perl",
        "ruby" => "Ruby",
        "lua" => "Lua",
        "php" => "PHP",
        "cc" => "C",
        "c++" => "C++",
        "rustc" => "Rust",
        "go" => "Go",
        "java" => "Java",
        "javac" => "Java compiler",
        other => other,
    }
}

/// A complete bot to copy, if the text below shows none.
fn bot_to_copy(guide: &GameGuide) -> Markup {
    let shows_bot = guide.content.text.contains("```python");
    let starter = guide.content.starters.first().filter(|_| !shows_bot);
    let files = starter.map(|starter| starter.files("mybot")).unwrap_or_default();
    html! {
        @if let Some(starter) = starter {
            h2 { "A complete bot" }
            p { "Save " (layout::count(files.len(), "file", "files")) " in a directory named "
                code { "mybot" } ". The language is " (starter.language) "." }
            @for file in files.iter().filter(|file| file.contents.len() <= MAX_SHOWN_FILE) {
                h3 { code { (file.path) } }
                (layout::code(&file.path, &String::from_utf8_lossy(&file.contents)))
            }
        }
    }
}

/// The name of the file of a game package.
fn package_file(game: &Game) -> Option<String> {
    game.package.is_some().then(|| packed_file(&game.name, &game.rules_version))
}

/// The starter kit in a language.
pub(super) async fn starter(
    session: Session,
    Path((tournament, language)): Path<(String, String)>,
) -> Result<Response, WebError> {
    let guide = session.service.game_guide(&session.caller, &tournament).await?;
    let starter = guide.content.starters.iter().find(|starter| starter.language == language);
    let starter = starter.ok_or_else(|| {
        let message = format!("the game {} has no starter kit in {language}", guide.game.name);
        WebError::new(StatusCode::NOT_FOUND, message)
    })?;
    let archive = starter.tar_gz(&format!("{}-bot", guide.game.name)).map_err(|error| {
        let message = format!("cannot pack the starter kit in {language}: {error}");
        WebError::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    })?;
    let file = format!("{}-{language}.tar.gz", guide.game.name);
    Ok(download::file(&file, "application/gzip", archive))
}

/// The packed files of the tournament's game package.
pub(super) async fn package(
    session: Session,
    Path(tournament): Path<String>,
) -> Result<Response, WebError> {
    let game = session.service.game_of(&tournament).await?;
    let request = GetPackageRequest { tournament, digest: Vec::new() };
    let pieces = session.service.get_package(&session.caller, request).await?;
    let file = package_file(&game).unwrap_or_default();
    let pieces = pieces.map(|piece| piece.map(|piece| piece.bytes));
    Ok(download::file(&file, "application/zstd", Body::from_stream(pieces)))
}
