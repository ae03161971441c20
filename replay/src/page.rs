//! A replay as one page: a file that needs no server and no network.
//!
//! The page contains its style, its script and all steps. Its content security policy forbids every
//! request. The policy allows only elements with a nonce to act. The nonce is the hash of all other
//! contents, so no text of a record can contain it.

use std::io::Read;

use arbiter_games::picture::name;
use arbiter_games::{EntrantName, Games, Seat};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chunk::decode_chunk;
use crate::line_blocks::LineBlocks;
use crate::lines::Difference;
use crate::reader::{Reader, ShownNames};
use crate::render::{score_cells, score_columns, score_heads, who};
use crate::render_chunks::{RenderedChunks, render_chunks};
use crate::steps_builder::Overview;
use crate::viewer::{SCRIPT, StepSource, Viewer};
use crate::visible_text::without_bidi_controls;

/// What a page shows besides the replay.
#[derive(Clone, Copy, Debug)]
pub struct PageOptions<'a> {
    /// The heading of the page, such as the name of the match. Without it, the heading names the
    /// bots.
    pub title: Option<&'a str>,
    /// The names of the bots to show instead of those in the record.
    pub names: &'a ShownNames,
    /// The style sheet of the pages and of the viewer. It must not load anything.
    pub style: &'a str,
    /// A link at the top of the page, as text and URL, such as to the list of matches.
    pub back: Option<(&'a str, &'a str)>,
}

/// A whole HTML document with the replay of a record.
///
/// # Errors
/// The first difference between the record and the rules.
pub fn replay_page(
    games: &Games,
    record: impl Read + Send,
    options: PageOptions<'_>,
) -> Result<String, Difference> {
    let lines = LineBlocks::new(record);
    let reader = Reader { names: Some(options.names), visible: None };
    let replay = render_chunks(games, lines, (0..usize::MAX, reader))?;
    let first = replay.chunks.first().map(|chunk| decode_chunk(chunk)).transpose()?;
    let first = first.and_then(|steps| steps.into_iter().next()).map(PreEscaped);
    Ok(page(&replay, first.as_ref(), options))
}

/// The document. `first` is the first step.
fn page(
    replay: &RenderedChunks,
    first: Option<&PreEscaped<String>>,
    options: PageOptions<'_>,
) -> String {
    let PageOptions { title, style, back, .. } = options;
    let RenderedChunks { overview, chunks } = replay;
    let chunks = chunk_elements(chunks);
    let names: Vec<_> = overview.names.iter().map(EntrantName::as_str).collect();
    let names = names.join(", ");
    let title = title.unwrap_or(&names);
    let source = StepSource::Page;
    let viewer = Viewer { overview, step: 0, shown: first, source, autoplay: None };
    let body = html! {
        @if let Some((text, address)) = back { p { a href=(address) { (text) } } }
        h1 { (title) }
        (result(overview))
        noscript { p { "This page shows the first step only, because scripts are off." } }
        (viewer)
    };
    let body = PreEscaped(without_bidi_controls(body.into_string()));
    let nonce = blake3::hash([title, &body.0, &chunks].concat().as_bytes()).to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         img-src data:; base-uri 'none'; form-action 'none'"
    );
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Arbiter" }
                link rel="icon" href="data:,";
                style nonce=(nonce) { (PreEscaped(style)) }
            }
            body {
                main { (body) }
                (PreEscaped(&chunks))
                script nonce=(nonce) { (PreEscaped(SCRIPT)) }
            }
        }
    };
    document.into_string()
}

/// The elements that contain the chunks.
fn chunk_elements(chunks: &[Vec<u8>]) -> String {
    let element = |(number, chunk)| {
        let chunk = BASE64.encode(chunk);
        format!("<script type=\"text/plain\" id=\"chunk-{number}\">{chunk}</script>\n")
    };
    chunks.iter().enumerate().map(element).collect()
}

/// The seats with their scores and forfeits.
fn result(overview: &Overview) -> Markup {
    let Overview { names, standings, columns, .. } = overview;
    let shown_columns = score_columns(columns, standings);
    let has_forfeits = standings.iter().any(|standing| standing.forfeit.is_some());
    html! {
        table.scores {
            thead {
                tr { th { "Bot" } (score_heads(shown_columns)) @if has_forfeits { th { "Forfeit" } } }
            }
            tbody {
                @for (seat, standing) in Seat::all(standings.len()).zip(standings) {
                    tr {
                        td aria-label=(name(names, seat)) { (who(seat, names)) }
                        (score_cells(standing, shown_columns))
                        @if has_forfeits {
                            td { @if let Some(kind) = standing.forfeit { em.forfeit { (kind) } } }
                        }
                    }
                }
            }
        }
    }
}
