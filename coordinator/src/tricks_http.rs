//! Tricks over HTTP: players send cards with any HTTP client, and play against the server's bot,
//! the house.
//!
//! # Theory of operation
//!
//! `POST /tricks.php` follows the original game: a request with a token starts a session of some
//! tables, a request with a token and cards continues it, and each response reports the events
//! since the last one. [`arbiter_proto::tricks_http`] parses the requests, and `session` plays.
//! Between two requests a session is a row of the database, so any coordinator can handle the next
//! one, and restarts do no harm. A request is stored before its response is sent, and only if the
//! session has not changed in the meantime. So of two concurrent requests, one is refused.
//!
//! Invalid tokens are limited ([`crate::access::token_throttle`]). The requests of one token are
//! handled one at a time (see `rate_limit`). The bot computes its cards on separate threads, at
//! most one for each processor.
//!
//! The response to an invalid request is a line `error: …`; the session does not change. A session
//! with a good result earns a victory token (see `victory_token`), except in
//! [test mode](Mode::Test). `GET /tricks` shows the leaderboard.

mod pages;
#[path = "../../bots/tricks/house/player.rs"]
mod player;
mod rate_limit;
mod session;
mod victory_token;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arbiter_games::{Seed, string_enum};
use arbiter_proto::ids::TokenId;
use arbiter_proto::tricks_http::{Format, MAX_BODY, PATH, Request as PlayRequest};
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use sqlx::{Error, PgPool};
use thiserror::Error as ThisError;
use time::OffsetDateTime;
use tokio::sync::{OnceCell, Semaphore};

use crate::access::token_throttle::{Origin, TokenThrottle};
use crate::access::{self, Role, Secret};
use crate::database_clock::Clock;
use crate::db::tricks_http::{self, Ending, Holder, StoredSession};
use crate::queue::retry;
use crate::rate_limit::TokenBucket;
use rate_limit::{Buckets, price};
use session::{Session, WrongCount};
use victory_token::Victory;

/// The default and maximum number of tables of a session.
const DEFAULT_TABLES: usize = 3;
const MAX_TABLES: usize = 200;

/// How long a session is stored after its start.
const SESSION_LIFETIME: time::Duration = time::Duration::days(1);

/// How long the body of a request may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

string_enum! {
    /// Whether victories count.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Mode {
        /// Victories count.
        #[default]
        Official = "official",
        /// For trying the game: no session earns a victory token.
        Test = "test",
    }
    FromStr, Err = ModeError
}

/// A text that is not a [`Mode`].
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("`{0}` is not a mode of tricks: write official, or test for no victory tokens")]
pub struct ModeError(String);

/// The routes of the game, for a database and a mode.
pub fn router(pool: PgPool, clock: Clock, token_throttle: TokenThrottle, mode: Mode) -> Router {
    let bot_threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let server = TricksServer {
        pool,
        clock,
        token_throttle,
        mode,
        buckets: Buckets::default(),
        bot_threads: Arc::new(Semaphore::new(bot_threads)),
        key: Arc::default(),
    };
    Router::new()
        .route(PATH, post(play).fallback(wrong_method))
        .route("/tricks", get(pages::leaderboard_page))
        .route("/tricks/victory/{token}", get(pages::victory))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(server)
}

/// The state shared by all requests.
#[derive(Clone, Debug)]
struct TricksServer {
    pool: PgPool,
    clock: Clock,
    token_throttle: TokenThrottle,
    mode: Mode,
    buckets: Buckets,
    /// One permit for each thread on which the bot may compute.
    bot_threads: Arc<Semaphore>,
    /// The key of victory tokens, once it was read.
    key: Arc<OnceCell<[u8; 32]>>,
}

/// The refusal of a request, with the text of its response.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    text: String,
    /// The delay after which the client may retry.
    retry_after: Option<Duration>,
}

impl Refusal {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), retry_after: None }
    }

    /// A refusal by a rate limit.
    fn later(subject: &str, retry_after: Duration) -> Self {
        let text = format!("too many {subject}; wait {} s", retry_after.as_secs() + 1);
        Self { status: StatusCode::TOO_MANY_REQUESTS, text, retry_after: Some(retry_after) }
    }

    fn into_response(self, format: Format) -> Response {
        let mut response = response(self.status, format, &format!("error: {}", self.text));
        if let Some(retry_after) = self.retry_after {
            let seconds = HeaderValue::from(retry_after.as_secs() + 1);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        tracing::warn!(%error, "a request of tricks failed");
        let text = "the database does not respond; nothing has changed, try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }
}

impl From<BytesRejection> for Refusal {
    fn from(rejection: BytesRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                let text = format!("a request has at most {MAX_BODY} bytes");
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, text)
            }
            _ => Self::new(
                StatusCode::BAD_REQUEST,
                "the body of the request is incomplete; send it again",
            ),
        }
    }
}

fn response(status: StatusCode, format: Format, lines: &str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, format.media_type()), (header::CACHE_CONTROL, "no-store")];
    (status, headers, format.response(lines)).into_response()
}

/// Refuses all methods except `POST`.
async fn wrong_method() -> Response {
    let text = "tricks is played with POST requests; send token=… as a form";
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text);
    let mut response = refusal.into_response(Format::Lines);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

/// Handles a request.
async fn play(State(server): State<TricksServer>, from: Origin, request: Request) -> Response {
    let body = match receive(request).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into_response(Format::Lines),
    };
    let format = Format::of(&body);
    match server.execute(&body, &from).await {
        Ok(lines) => response(StatusCode::OK, format, &lines),
        Err(refusal) => refusal.into_response(format),
    }
}

/// Waits for the body of a request.
async fn receive(request: Request) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, &())).await {
        Ok(body) => Ok(body?),
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            "the request did not arrive in time; send it again",
        )),
    }
}

/// The number of tables that a request asks for.
fn tables(games: Option<&str>) -> Result<usize, Refusal> {
    let Some(games) = games else { return Ok(DEFAULT_TABLES) };
    let number = games.parse().ok().filter(|number| (1..=MAX_TABLES).contains(number));
    number.ok_or_else(|| {
        let text = format!("_games is a number from 1 to {MAX_TABLES}");
        Refusal::new(StatusCode::BAD_REQUEST, text)
    })
}

impl TricksServer {
    /// Executes a request, and returns the lines of its response.
    async fn execute(&self, body: &[u8], from: &Origin) -> Result<String, Refusal> {
        let PlayRequest { token, games, cards } = PlayRequest::read(body)
            .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        let secret = token.as_deref().map(access::secret_without_prefix).ok_or_else(|| {
            Refusal::new(StatusCode::UNAUTHORIZED, "token is missing; send token=…")
        })?;
        let mut bucket = self.buckets.lock(secret.hash(), Instant::now()).await;
        // Checked after the wait, because the previous request of the token may have been counted.
        self.token_throttle.check(&secret, from, Instant::now()).map_err(|retry_after| {
            Refusal::later("invalid tokens from this address", retry_after)
        })?;
        let holder = self.find(&secret, from).await?;
        match cards {
            Some(cards) => self.play_cards(holder, &cards, &mut bucket).await,
            None => self.begin(holder.id, tables(games.as_deref())?, &mut bucket).await,
        }
    }

    /// The holder of a token, with the session.
    async fn find(&self, secret: &Secret, from: &Origin) -> Result<Holder, Refusal> {
        let hash = secret.hash();
        let now = self.clock.now();
        let holder =
            retry(|| tricks_http::find(&self.pool, &hash, now - SESSION_LIFETIME, now)).await?;
        match holder {
            Some(_) => self.token_throttle.record_valid(secret, Instant::now()),
            None => self.token_throttle.record_invalid(secret, from, Instant::now()),
        }
        holder.filter(|holder| holder.role.covers(Role::Player)).ok_or_else(|| {
            let text = "the token is unknown, expired or revoked; check that it is complete, or ask the \
                organiser for a new one";
            Refusal::new(StatusCode::UNAUTHORIZED, text)
        })
    }

    /// Starts a session. It replaces an unfinished one.
    async fn begin(
        &self,
        id: TokenId,
        tables: usize,
        bucket: &mut TokenBucket,
    ) -> Result<String, Refusal> {
        pay(bucket, tables)?;
        let seed = Seed(access::draw().map_err(Error::Io)?);
        let (stored, news) = self
            .compute_with_permit(move || {
                let mut session = Session::start(seed, tables);
                (StoredSession { seed, turn: 0, played: session.played() }, session.news())
            })
            .await?;
        let now = self.clock.now();
        retry(|| tricks_http::begin(&self.pool, id, &stored, now)).await?;
        // 1 of 256 requests deletes old sessions.
        if seed.0[0] == 0 {
            retry(|| tricks_http::delete_sessions(&self.pool, now - SESSION_LIFETIME)).await?;
        }
        Ok(news)
    }

    /// Plays cards.
    async fn play_cards(
        &self,
        holder: Holder,
        cards: &str,
        bucket: &mut TokenBucket,
    ) -> Result<String, Refusal> {
        let conflict = |text: &str| Refusal::new(StatusCode::CONFLICT, text);
        let Some(stored) = holder.session else {
            return Err(conflict("no session has begun; send token alone, or with _games"));
        };
        pay(bucket, stored.played.len())?;
        let seed = stored.seed;
        let turn = stored.turn;
        let text = cards.to_owned();
        let play = move || {
            let mut session = Session::rebuild(seed, &stored.played);
            if session.is_over() {
                return Err(conflict("the session is over; send token without move for another"));
            }
            session.play(&text).map_err(|WrongCount { expected, actual }| {
                let text = format!("move has {actual} cards, and there are {expected} tables");
                Refusal::new(StatusCode::BAD_REQUEST, text)
            })?;
            Ok((session.news(), session))
        };
        let (news, session) = self.compute_with_permit(play).await??;
        let stored = StoredSession { seed, turn, played: session.played() };
        let (is_stored, news) = if session.is_over() {
            self.end((holder.id, &holder.first_hash), &session, &stored, news).await?
        } else {
            // Not retried: if the first attempt was stored, a second one would be refused.
            (tricks_http::store_turn(&self.pool, holder.id, &stored).await?, news)
        };
        if is_stored {
            Ok(news)
        } else {
            Err(conflict(
                "another request with this token changed the session first; use its response",
            ))
        }
    }

    /// Ends a session. Returns whether it was stored, and the text of the response.
    async fn end(
        &self,
        (id, first): (TokenId, &[u8]),
        session: &Session,
        stored: &StoredSession,
        news: String,
    ) -> Result<(bool, String), Refusal> {
        let result = session.result();
        let now = self.clock.now();
        let victory = Victory::of(id, result, now).filter(|_| self.mode == Mode::Official);
        let news = match victory {
            Some(victory) => {
                let token = victory.token(&self.key().await?, first);
                format!("{news}\nend: {token}")
            }
            None => news,
        };
        let tables = i32::try_from(session.tables()).unwrap_or(i32::MAX);
        let ending = Ending { result, tables, victory: victory.is_some() };
        let is_stored = tricks_http::end(&self.pool, id, stored, ending, now).await?;
        Ok((is_stored, news))
    }

    /// Computes on a separate thread, once there is a permit.
    async fn compute_with_permit<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = Arc::clone(&self.bot_threads).acquire_owned().await;
        let task = tokio::task::spawn_blocking(move || {
            let output = compute();
            drop(permit);
            output
        });
        task.await.map_err(|error| Refusal::from(Error::Io(error.into())))
    }

    /// The key of victory tokens.
    async fn key(&self) -> Result<[u8; 32], Error> {
        let new_key = access::draw().map_err(Error::Io)?;
        let key = || retry(|| tricks_http::key(&self.pool, &new_key));
        self.key.get_or_try_init(key).await.copied()
    }

    /// The winner and the victory that a token proves, if it is genuine.
    async fn winner(&self, token: &str) -> Result<Option<(String, Victory)>, Error> {
        let Some(victory) = Victory::parse(token) else { return Ok(None) };
        let holder = retry(|| tricks_http::holder(&self.pool, victory.player)).await?;
        let Some((name, hash)) = holder else { return Ok(None) };
        let created_at: OffsetDateTime = victory.at;
        let is_genuine =
            victory.token(&self.key().await?, &hash) == token && created_at <= self.clock.now();
        Ok(is_genuine.then_some((name, victory)))
    }
}

/// Takes the price of a request from the rate limit.
fn pay(bucket: &mut TokenBucket, tables: usize) -> Result<(), Refusal> {
    let result = bucket.try_take(price(tables), Instant::now());
    result.map_err(|retry_after| Refusal::later("requests", retry_after))
}
