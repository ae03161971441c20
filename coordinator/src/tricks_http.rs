//! Tricks over HTTP: players send cards with whatever speaks HTTP, and play against the house.
//!
//! # Theory of operation
//!
//! `POST /tricks.php` is the game as its source has it: a request with a token begins a session of
//! some tables, requests with a token and cards go on with it, and each answer tells what has
//! happened since. [`arbiter_proto::tricks_http`] reads the requests, `session` plays, and between two
//! requests a session is a row of the database: any coordinator can answer the next one, and a
//! restart is not noticed. A request is answered after what it did is stored. What it did is stored
//! if nothing else happened to the session meanwhile, so two requests at once cannot both play.
//!
//! Wrong tokens are counted as everywhere ([`crate::access::token_throttle`]). The requests of one token are
//! answered one by one (see `rate_limit`); thinking is done on threads for it, no more at a time than
//! there are processors, so that a request waits only for the thoughts of those before it.
//!
//! A request that says nothing sensible is answered with a line `error: …` and has changed nothing.
//! A session that ends well enough earns a victory token (see `victory_token`), unless the server is in
//! [test mode](Mode::Test); `GET /tricks` shows everybody's records.

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
use arbiter_proto::tricks_http::{Format, LONGEST_BODY, PATH, Request as Wish};
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
use crate::db::tricks_http::{self, Ending, Holder, Stored};
use crate::queue::retry;
use crate::rate_limit::TokenBucket;
use rate_limit::{Buckets, price};
use session::{Session, WrongCount};
use victory_token::Victory;

/// How many tables a session has if the request does not say, and at most.
const TABLES: usize = 3;
const MOST_TABLES: usize = 200;

/// How long a session is kept, from its beginning.
const LIFE: time::Duration = time::Duration::days(1);

/// How long the body of a request may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(20);

string_enum! {
    /// Whether victories count.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Mode {
        /// They do.
        #[default]
        Official = "official",
        /// The game is being tried: no session earns a victory token.
        Test = "test",
    }
    FromStr, Err = ModeError
}

/// A text that is no [`Mode`].
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("`{0}` is no mode of tricks: write official, or test for no victory tokens")]
pub struct ModeError(String);

/// The pages of the game on a database, in a mode; `token_throttle` counts wrong tokens.
pub fn router(pool: PgPool, clock: Clock, token_throttle: TokenThrottle, mode: Mode) -> Router {
    let minds = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let house = TricksServer {
        pool,
        clock,
        token_throttle,
        mode,
        buckets: Buckets::default(),
        minds: Arc::new(Semaphore::new(minds)),
        key: Arc::default(),
    };
    Router::new()
        .route(PATH, post(play).fallback(wrong_method))
        .route("/tricks", get(pages::records))
        .route("/tricks/victory/{token}", get(pages::victory))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(house)
}

/// What all requests share.
#[derive(Clone, Debug)]
struct TricksServer {
    pool: PgPool,
    clock: Clock,
    token_throttle: TokenThrottle,
    mode: Mode,
    buckets: Buckets,
    /// One for each thread that may think.
    minds: Arc<Semaphore>,
    /// What victory tokens are made with, once it was needed.
    key: Arc<OnceCell<[u8; 32]>>,
}

/// Why a request is not done, in the words of its answer.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    words: String,
    /// After how long it may be tried again.
    rest: Option<Duration>,
}

impl Refusal {
    fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self { status, words: words.into(), rest: None }
    }

    /// Too much came, and more may come after a rest.
    fn later(what: &str, rest: Duration) -> Self {
        let words = format!("too many {what}; wait {} s", rest.as_secs() + 1);
        Self { status: StatusCode::TOO_MANY_REQUESTS, words, rest: Some(rest) }
    }

    fn into_response(self, format: Format) -> Response {
        let mut response = answer(self.status, format, &format!("error: {}", self.words));
        if let Some(rest) = self.rest {
            let seconds = HeaderValue::from(rest.as_secs() + 1);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        tracing::warn!(%error, "a request of tricks failed");
        let words = "the database does not answer; nothing has changed, try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, words)
    }
}

impl From<BytesRejection> for Refusal {
    fn from(rejection: BytesRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                let words = format!("a request has at most {LONGEST_BODY} bytes");
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, words)
            }
            _ => Self::new(StatusCode::BAD_REQUEST, "the request's body is broken off"),
        }
    }
}

fn answer(status: StatusCode, format: Format, lines: &str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, format.media_type()), (header::CACHE_CONTROL, "no-store")];
    (status, headers, format.response(lines)).into_response()
}

/// Everything but `POST`.
async fn wrong_method() -> Response {
    let words = "tricks is played with POST requests; send token=… as a form";
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, words);
    let mut response = refusal.into_response(Format::Lines);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

/// Answers a request.
async fn play(State(house): State<TricksServer>, from: Origin, request: Request) -> Response {
    let body = match receive(request).await {
        Ok(body) => body,
        Err(refusal) => return refusal.into_response(Format::Lines),
    };
    let format = Format::of(&body);
    match house.answer(&body, &from).await {
        Ok(lines) => answer(StatusCode::OK, format, &lines),
        Err(refusal) => refusal.into_response(format),
    }
}

/// Waits for the body of a request.
async fn receive(request: Request) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(ARRIVAL, Bytes::from_request(request, &())).await {
        Ok(received) => Ok(received?),
        Err(_) => {
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time"))
        }
    }
}

/// How many tables a request asks for.
fn tables(games: Option<&str>) -> Result<usize, Refusal> {
    let Some(games) = games else { return Ok(TABLES) };
    let number = games.parse().ok().filter(|number| (1..=MOST_TABLES).contains(number));
    number.ok_or_else(|| {
        let words = format!("_games is a number from 1 to {MOST_TABLES}");
        Refusal::new(StatusCode::BAD_REQUEST, words)
    })
}

impl TricksServer {
    /// Does what a request says, and gives the lines of its answer.
    async fn answer(&self, body: &[u8], from: &Origin) -> Result<String, Refusal> {
        let Wish { token, games, cards } = Wish::read(body)
            .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        let secret = token.as_deref().map(access::secret_without_prefix).ok_or_else(|| {
            Refusal::new(StatusCode::UNAUTHORIZED, "token is missing; send token=…")
        })?;
        let mut bucket = self.buckets.turn_of(secret.hash(), Instant::now()).await;
        // Not before its turn: it is known then what came of the same token a moment ago.
        self.token_throttle
            .check(&secret, from, Instant::now())
            .map_err(|rest| Refusal::later("tokens from there are not known here", rest))?;
        let holder = self.find(&secret, from).await?;
        match cards {
            Some(cards) => self.go_on(holder, &cards, &mut bucket).await,
            None => self.begin(holder.id, tables(games.as_deref())?, &mut bucket).await,
        }
    }

    /// Whose token this is, and its session.
    async fn find(&self, secret: &Secret, from: &Origin) -> Result<Holder, Refusal> {
        let (hash, now) = (secret.hash(), self.clock.now());
        let found = retry(|| tricks_http::find(&self.pool, &hash, now - LIFE, now)).await?;
        match found {
            Some(_) => self.token_throttle.record_valid(secret, Instant::now()),
            None => self.token_throttle.record_invalid(secret, from, Instant::now()),
        }
        found.filter(|holder| holder.role.covers(Role::Player)).ok_or_else(|| {
            Refusal::new(StatusCode::UNAUTHORIZED, "this token is unknown; ask the organiser")
        })
    }

    /// Begins a session; one that was not finished is forgotten.
    async fn begin(
        &self,
        id: TokenId,
        tables: usize,
        bucket: &mut TokenBucket,
    ) -> Result<String, Refusal> {
        pay(bucket, tables)?;
        let seed = Seed(access::draw().map_err(Error::Io)?);
        let (stored, news) = self
            .think(move || {
                let mut session = Session::start(seed, tables);
                (Stored { seed, turn: 0, played: session.played() }, session.news())
            })
            .await?;
        let now = self.clock.now();
        retry(|| tricks_http::begin(&self.pool, id, &stored, now)).await?;
        // Now and then, and never in anybody's way.
        if seed.0[0] == 0 {
            retry(|| tricks_http::forget(&self.pool, now - LIFE)).await?;
        }
        Ok(news)
    }

    /// Plays cards.
    async fn go_on(
        &self,
        holder: Holder,
        cards: &str,
        bucket: &mut TokenBucket,
    ) -> Result<String, Refusal> {
        let conflict = |words: &str| Refusal::new(StatusCode::CONFLICT, words);
        let Some(stored) = holder.session else {
            return Err(conflict("no session has begun; send token alone, or with _games"));
        };
        pay(bucket, stored.played.len())?;
        let (seed, turn, words) = (stored.seed, stored.turn, cards.to_owned());
        let played = move || {
            let mut session = Session::rebuild(seed, &stored.played);
            if session.is_over() {
                return Err(conflict("the session is over; send token without move for another"));
            }
            session.play(&words).map_err(|WrongCount { due, found }| {
                let words = format!("move has {found} cards, and there are {due} tables");
                Refusal::new(StatusCode::BAD_REQUEST, words)
            })?;
            Ok((session.news(), session))
        };
        let (news, session) = self.think(played).await??;
        let stored = Stored { seed, turn, played: session.played() };
        let (kept, news) = if session.is_over() {
            self.end((holder.id, &holder.first), &session, &stored, news).await?
        } else {
            // Said twice it would be refused: whether it was done the first time is not known.
            (tricks_http::go_on(&self.pool, holder.id, &stored).await?, news)
        };
        if kept { Ok(news) } else { Err(conflict("another request played meanwhile")) }
    }

    /// Ends a session: whether that was kept, and what is said.
    async fn end(
        &self,
        (id, first): (TokenId, &[u8]),
        session: &Session,
        stored: &Stored,
        news: String,
    ) -> Result<(bool, String), Refusal> {
        let (result, now) = (session.result(), self.clock.now());
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
        let kept = tricks_http::end(&self.pool, id, stored, ending, now).await?;
        Ok((kept, news))
    }

    /// Thinks apart from what answers requests, when it is this one's turn.
    async fn think<T: Send + 'static>(
        &self,
        thought: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let mind = Arc::clone(&self.minds).acquire_owned().await;
        let thinking = tokio::task::spawn_blocking(move || {
            let thought = thought();
            drop(mind);
            thought
        });
        thinking.await.map_err(|error| Refusal::from(Error::Io(error.into())))
    }

    /// What victory tokens are made with.
    async fn key(&self) -> Result<[u8; 32], Error> {
        let drawn = access::draw().map_err(Error::Io)?;
        let key = || retry(|| tricks_http::key(&self.pool, &drawn));
        self.key.get_or_try_init(key).await.copied()
    }

    /// Whose victory a token shows, if it shows one.
    async fn winner(&self, token: &str) -> Result<Option<(String, Victory)>, Error> {
        let Some(victory) = Victory::claimed(token) else { return Ok(None) };
        let holder = retry(|| tricks_http::holder(&self.pool, victory.player)).await?;
        let Some((name, hash)) = holder else { return Ok(None) };
        let made: OffsetDateTime = victory.at;
        let genuine = victory.token(&self.key().await?, &hash) == token && made <= self.clock.now();
        Ok(genuine.then_some((name, victory)))
    }
}

/// Takes the price of a request.
fn pay(bucket: &mut TokenBucket, tables: usize) -> Result<(), Refusal> {
    let taken = bucket.try_take(price(tables), Instant::now());
    taken.map_err(|rest| Refusal::later("requests", rest))
}
