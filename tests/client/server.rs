//! A scripted coordinator over real connections.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use arbiter_proto::v1::bot_service_server::{BotService, BotServiceServer};
use arbiter_proto::v1::ranking_service_server::{RankingService, RankingServiceServer};
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::token_service_server::{TokenService, TokenServiceServer};
use arbiter_proto::v1::tournament_service_server::{TournamentService, TournamentServiceServer};
use arbiter_proto::v1::*;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::Server as Grpc;
use tonic::{Code, Request, Response, Status, Streaming};

/// The script of a coordinator's responses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// The error of every call.
    pub(crate) refusal: Option<(Code, &'static str)>,
    pub(crate) tournament: Tournament,
    pub(crate) aside: Vec<SetAsideMatch>,
    pub(crate) bots: Vec<Bot>,
    pub(crate) log: Vec<LogEntry>,
    /// The names of the components of the log's scores.
    pub(crate) columns: Vec<String>,
    /// The states of a trial, one for each request.
    pub(crate) trials: Vec<TrialStatus>,
    /// The whole leaderboard, without places.
    pub(crate) board: GetRankingResponse,
    pub(crate) places: Vec<Standing>,
    /// How often matches are counted between two pages.
    pub(crate) restless: usize,
    pub(crate) meetings: Vec<HeadToHead>,
    pub(crate) history: Vec<GetStandingResponse>,
    pub(crate) matches: Vec<MatchStatus>,
    /// Uncompressed records by the names of matches.
    pub(crate) records: HashMap<String, Vec<u8>>,
    /// The states of a watched edition.
    pub(crate) watched: Vec<Edition>,
    pub(crate) check: CheckEditionResponse,
    pub(crate) source: Option<EditionSource>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) invited: Vec<InvitedPlayer>,
    pub(crate) void: VoidMatchesResponse,
    pub(crate) collusion: FindCollusionResponse,
    pub(crate) rounds: GetRoundsResponse,
    /// Why a bot is suspended.
    pub(crate) stood_down: String,
    pub(crate) estimate: EditionEstimate,
    pub(crate) certificate: Certificate,
}

/// The requests that a coordinator received.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// The names of all calls, in order.
    pub(crate) calls: Vec<String>,
    /// The credentials of the last call.
    pub(crate) authorization: Option<String>,
    /// The tournament file.
    pub(crate) file: String,
    /// Bundles by the bots' names, and whether they are house bots.
    pub(crate) bundles: BTreeMap<String, (Vec<u8>, bool)>,
    /// The editions that watchers requested.
    pub(crate) watched: Vec<Option<i32>>,
    /// The request to declare matches void.
    pub(crate) void: Option<VoidMatchesRequest>,
}

#[derive(Clone)]
struct Scripted {
    script: Arc<Mutex<Script>>,
    received: Arc<Mutex<Received>>,
}

/// A coordinator that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) received: Arc<Mutex<Received>>,
    /// Its end drops open calls, like a killed coordinator, and frees the address.
    _runtime: Runtime,
}

impl Server {
    pub(crate) fn start(script: Script) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), script)
    }

    /// Starts a coordinator at the address of another one.
    pub(crate) fn start_at(address: SocketAddr, script: Script) -> Self {
        let received = Arc::new(Mutex::new(Received::default()));
        let scripted =
            Scripted { script: Arc::new(Mutex::new(script)), received: received.clone() };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(
            Grpc::builder()
                .add_service(TournamentServiceServer::new(scripted.clone()))
                .add_service(BotServiceServer::new(scripted.clone()))
                .add_service(RankingServiceServer::new(scripted.clone()))
                .add_service(TokenServiceServer::new(scripted))
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        Self { address, received, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

type Answer<T> = Result<Response<T>, Status>;
type Several<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn stream<T: Send + 'static>(messages: Vec<T>) -> Response<Several<T>> {
    Response::new(Box::pin(tokio_stream::iter(messages.into_iter().map(Ok))))
}

impl Scripted {
    /// Logs a call, and returns the script unless every call is refused.
    fn called<T>(&self, name: &str, request: &Request<T>) -> Result<Script, Status> {
        let mut received = self.received.lock().unwrap();
        received.calls.push(name.to_owned());
        let authorization = request.metadata().get("authorization");
        received.authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
        let script = self.script.lock().unwrap().clone();
        match script.refusal {
            Some((code, message)) => Err(Status::new(code, message)),
            None => Ok(script),
        }
    }
}

#[tonic::async_trait]
impl TournamentService for Scripted {
    type WatchEditionStream = Several<Edition>;
    type ListMatchesStream = Several<MatchStatus>;
    type GetRecordStream = Several<RecordPiece>;
    type GetPackageStream = Several<BundlePiece>;

    async fn set_package(&self, _: Request<Streaming<SetPackageRequest>>) -> Answer<Tournament> {
        Err(Status::unimplemented("not scripted"))
    }

    async fn get_package(&self, _: Request<GetPackageRequest>) -> Answer<Self::GetPackageStream> {
        Err(Status::unimplemented("not scripted"))
    }

    async fn create_tournament(
        &self,
        request: Request<CreateTournamentRequest>,
    ) -> Answer<Tournament> {
        let script = self.called("create", &request)?;
        self.received.lock().unwrap().file = request.into_inner().file;
        Ok(Response::new(script.tournament))
    }

    async fn list_tournaments(
        &self,
        request: Request<ListTournamentsRequest>,
    ) -> Answer<ListTournamentsResponse> {
        let script = self.called("list", &request)?;
        Ok(Response::new(ListTournamentsResponse { tournaments: vec![script.tournament] }))
    }

    async fn get_tournament(&self, request: Request<GetTournamentRequest>) -> Answer<Tournament> {
        Ok(Response::new(self.called("get", &request)?.tournament))
    }

    async fn edit_tournament(
        &self,
        request: Request<EditTournamentRequest>,
    ) -> Answer<EditTournamentResponse> {
        let tournament = self.called("edit", &request)?.tournament;
        let changes = vec![SettingChange {
            key: "title".to_owned(),
            before: String::new(),
            after: "\"Spring\"".to_owned(),
            effect: "everyone sees it at once".to_owned(),
        }];
        Ok(Response::new(EditTournamentResponse { changes, tournament: Some(tournament) }))
    }

    async fn post_announcement(
        &self,
        request: Request<PostAnnouncementRequest>,
    ) -> Answer<Tournament> {
        Ok(Response::new(self.called("announce", &request)?.tournament))
    }

    async fn remove_announcement(
        &self,
        request: Request<RemoveAnnouncementRequest>,
    ) -> Answer<Tournament> {
        Ok(Response::new(self.called("unannounce", &request)?.tournament))
    }

    async fn start_edition(&self, request: Request<StartEditionRequest>) -> Answer<Edition> {
        let name = if request.get_ref().fresh { "start fresh" } else { "start" };
        let script = self.called(name, &request)?;
        Ok(Response::new(script.tournament.editions[0].clone()))
    }

    async fn start_rehearsal(&self, request: Request<StartRehearsalRequest>) -> Answer<Tournament> {
        Ok(Response::new(self.called("rehearse", &request)?.tournament))
    }

    async fn estimate_edition(
        &self,
        request: Request<EstimateEditionRequest>,
    ) -> Answer<EditionEstimate> {
        Ok(Response::new(self.called("estimate", &request)?.estimate))
    }

    async fn certify_edition(
        &self,
        request: Request<CertifyEditionRequest>,
    ) -> Answer<Certificate> {
        let script = self.called("certify", &request)?;
        let CertifyEditionRequest { edition, next, .. } = request.into_inner();
        let edition = if next { 0 } else { edition.unwrap_or(script.certificate.edition) };
        Ok(Response::new(Certificate { edition, ..script.certificate }))
    }

    async fn watch_edition(
        &self,
        request: Request<WatchEditionRequest>,
    ) -> Answer<Several<Edition>> {
        let script = self.called("watch", &request)?;
        self.received.lock().unwrap().watched.push(request.into_inner().edition);
        let changes = tokio_stream::iter(script.watched.into_iter().map(Ok));
        Ok(Response::new(Box::pin(changes.chain(tokio_stream::pending()))))
    }

    async fn cancel_tournament(
        &self,
        request: Request<CancelTournamentRequest>,
    ) -> Answer<Tournament> {
        let tournament = self.called("cancel", &request)?.tournament;
        Ok(Response::new(Tournament { state: "cancelled".to_owned(), ..tournament }))
    }

    async fn close_tournament(
        &self,
        request: Request<CloseTournamentRequest>,
    ) -> Answer<Tournament> {
        let tournament = self.called("close", &request)?.tournament;
        let state = "closed".to_owned();
        let seed = vec![0x5e; 32];
        Ok(Response::new(Tournament { state, seed, ..tournament }))
    }

    async fn set_beacon(&self, request: Request<SetBeaconRequest>) -> Answer<Tournament> {
        let script = self.called(&format!("beacon {}", request.get_ref().value), &request)?;
        Ok(Response::new(script.tournament))
    }

    async fn get_edition_source(
        &self,
        request: Request<GetEditionSourceRequest>,
    ) -> Answer<EditionSource> {
        let script = self.called("source", &request)?;
        script.source.map(Response::new).ok_or_else(|| Status::unimplemented("an older version"))
    }

    async fn delete_tournament(
        &self,
        request: Request<DeleteTournamentRequest>,
    ) -> Answer<DeleteTournamentResponse> {
        self.called("drop", &request)?;
        Ok(Response::new(DeleteTournamentResponse { editions: 2, matches: 12 }))
    }

    async fn check_edition(
        &self,
        request: Request<CheckEditionRequest>,
    ) -> Answer<CheckEditionResponse> {
        Ok(Response::new(self.called("check", &request)?.check))
    }

    async fn list_set_aside(
        &self,
        request: Request<ListSetAsideRequest>,
    ) -> Answer<ListSetAsideResponse> {
        let aside = self.called("aside", &request)?.aside;
        Ok(Response::new(ListSetAsideResponse { matches: aside }))
    }

    async fn retry_set_aside(
        &self,
        request: Request<RetrySetAsideRequest>,
    ) -> Answer<RetrySetAsideResponse> {
        self.called(&format!("retry {}", request.get_ref().r#match), &request)?;
        Ok(Response::new(RetrySetAsideResponse {}))
    }

    async fn void_matches(
        &self,
        request: Request<VoidMatchesRequest>,
    ) -> Answer<VoidMatchesResponse> {
        let script = self.called("void", &request)?;
        self.received.lock().unwrap().void = Some(request.into_inner());
        Ok(Response::new(script.void))
    }

    async fn find_collusion(
        &self,
        request: Request<FindCollusionRequest>,
    ) -> Answer<FindCollusionResponse> {
        let script = self.called("collusion", &request)?;
        Ok(Response::new(script.collusion))
    }

    async fn get_rounds(&self, request: Request<GetRoundsRequest>) -> Answer<GetRoundsResponse> {
        let script = self.called("rounds", &request)?;
        Ok(Response::new(script.rounds))
    }

    async fn get_match(&self, request: Request<GetMatchRequest>) -> Answer<MatchStatus> {
        let script = self.called("match", &request)?;
        let name = request.into_inner().r#match;
        let matched = script.matches.into_iter().find(|matched| matched.r#match == name);
        matched.map(Response::new).ok_or_else(|| Status::not_found(format!("no match {name}")))
    }

    async fn list_matches(
        &self,
        request: Request<ListMatchesRequest>,
    ) -> Answer<Several<MatchStatus>> {
        Ok(stream(self.called("matches", &request)?.matches))
    }

    async fn get_record(&self, request: Request<GetRecordRequest>) -> Answer<Several<RecordPiece>> {
        let script = self.called("record", &request)?;
        let name = request.into_inner().r#match;
        let record = script.records.get(&name);
        let record = record.ok_or_else(|| Status::not_found(format!("no record of {name}")))?;
        let packed = zstd::encode_all(&record[..], 3).unwrap();
        let pieces = packed.chunks(10).map(|bytes| RecordPiece { bytes: bytes.to_vec() });
        Ok(stream(pieces.collect()))
    }
}

#[tonic::async_trait]
impl BotService for Scripted {
    async fn submit_version(
        &self,
        request: Request<Streaming<SubmitVersionRequest>>,
    ) -> Answer<Version> {
        let tried = !self.called("submit", &request)?.trials.is_empty();
        let mut parts = request.into_inner();
        let first = parts.message().await?.unwrap().part.unwrap();
        let Part::Submission(submission) = first else { panic!("the submission comes first") };
        let mut bundle = Vec::new();
        while let Some(SubmitVersionRequest { part }) = parts.message().await? {
            let Some(Part::Bundle(piece)) = part else { panic!("then the bundle") };
            bundle.extend(piece);
        }
        let digest = blake3::hash(&bundle).as_bytes().to_vec();
        let Submission { bot, house, .. } = submission;
        self.received.lock().unwrap().bundles.insert(bot.clone(), (bundle, house));
        let state = if tried { "waiting" } else { "entered" }.to_owned();
        Ok(Response::new(Version { bot, number: 1, digest, state, ..Version::default() }))
    }

    async fn list_invited(
        &self,
        request: Request<ListInvitedRequest>,
    ) -> Answer<ListInvitedResponse> {
        Ok(Response::new(ListInvitedResponse {
            players: self.called("invited", &request)?.invited,
        }))
    }

    async fn get_bot(&self, request: Request<GetBotRequest>) -> Answer<GetBotResponse> {
        self.called("bot", &request)?;
        Ok(Response::new(GetBotResponse::default()))
    }

    async fn list_bots(&self, request: Request<ListBotsRequest>) -> Answer<ListBotsResponse> {
        let bots = self.called("bots", &request)?.bots;
        Ok(Response::new(ListBotsResponse { bots, ..ListBotsResponse::default() }))
    }

    async fn get_bot_log(&self, request: Request<GetBotLogRequest>) -> Answer<GetBotLogResponse> {
        let Script { log: entries, stood_down: suspended_reason, columns, .. } =
            self.called("log", &request)?;
        let freeze_notice = String::new();
        Ok(Response::new(GetBotLogResponse { entries, suspended_reason, columns, freeze_notice }))
    }

    async fn get_trial(&self, request: Request<GetTrialRequest>) -> Answer<TrialStatus> {
        let mut trials = self.called("trial", &request)?.trials;
        if trials.len() > 1 {
            self.script.lock().unwrap().trials.remove(0);
        }
        trials.truncate(1);
        Ok(Response::new(trials.pop().unwrap_or_default()))
    }

    async fn retry_trial(&self, request: Request<RetryTrialRequest>) -> Answer<TrialStatus> {
        self.called(&format!("retry {}", request.get_ref().bot), &request)?;
        Ok(Response::new(TrialStatus::default()))
    }

    async fn withdraw_bot(
        &self,
        request: Request<WithdrawBotRequest>,
    ) -> Answer<WithdrawBotResponse> {
        self.called(&format!("withdraw {}", request.get_ref().bot), &request)?;
        let bot = request.into_inner().bot;
        Ok(Response::new(WithdrawBotResponse { bot }))
    }

    async fn reinstate_bot(
        &self,
        request: Request<ReinstateBotRequest>,
    ) -> Answer<ReinstateBotResponse> {
        self.called(&format!("reinstate {}", request.get_ref().bot), &request)?;
        let bot = request.into_inner().bot;
        Ok(Response::new(ReinstateBotResponse { bot }))
    }
}

#[tonic::async_trait]
impl RankingService for Scripted {
    type WatchRankingStream = Several<GetRankingResponse>;

    async fn get_ranking(&self, request: Request<GetRankingRequest>) -> Answer<GetRankingResponse> {
        let mut script = self.called("ranking", &request)?;
        if script.restless > 0 {
            let mut changed = self.script.lock().unwrap();
            changed.restless -= 1;
            changed.board.counted += 1;
        }
        let GetRankingRequest { offset, limit, name_contains: name, .. } = request.into_inner();
        script.places.retain(|place| place.bot.to_lowercase().contains(&name.to_lowercase()));
        let bots = u32::try_from(script.places.len()).unwrap();
        let limit = if limit == 0 { 100 } else { limit.min(1000) };
        let page = script.places.into_iter().skip(offset as usize).take(limit as usize);
        Ok(Response::new(GetRankingResponse { bots, standings: page.collect(), ..script.board }))
    }

    async fn get_standing(
        &self,
        request: Request<GetStandingRequest>,
    ) -> Answer<GetStandingResponse> {
        let script = self.called("place", &request)?;
        let bot = request.into_inner().bot;
        let place = script.places.into_iter().find(|place| place.bot == bot);
        let place = place.ok_or_else(|| Status::not_found(format!("no bot {bot}")))?;
        Ok(Response::new(GetStandingResponse {
            edition: script.board.edition,
            standing: Some(place),
            columns: Vec::new(),
        }))
    }

    async fn get_head_to_head(
        &self,
        request: Request<GetHeadToHeadRequest>,
    ) -> Answer<GetHeadToHeadResponse> {
        let meetings = self.called("meetings", &request)?.meetings;
        Ok(Response::new(GetHeadToHeadResponse { results: meetings }))
    }

    async fn get_statistics(
        &self,
        request: Request<GetStatisticsRequest>,
    ) -> Answer<GetStatisticsResponse> {
        self.called("statistics", &request)?;
        Ok(Response::new(GetStatisticsResponse::default()))
    }

    async fn get_reply_times(
        &self,
        request: Request<GetReplyTimesRequest>,
    ) -> Answer<GetReplyTimesResponse> {
        self.called("reply times", &request)?;
        Ok(Response::new(GetReplyTimesResponse::default()))
    }

    async fn get_history(&self, request: Request<GetHistoryRequest>) -> Answer<GetHistoryResponse> {
        let places = self.called("history", &request)?.history;
        Ok(Response::new(GetHistoryResponse { standings: places }))
    }

    async fn watch_ranking(
        &self,
        request: Request<GetRankingRequest>,
    ) -> Answer<Several<GetRankingResponse>> {
        let script = self.called("watch ranking", &request)?;
        let page = GetRankingResponse { standings: script.places, ..script.board };
        let changes = tokio_stream::iter([Ok(page.clone()), Ok(page)]);
        Ok(Response::new(Box::pin(changes.chain(tokio_stream::pending()))))
    }
}

#[tonic::async_trait]
impl TokenService for Scripted {
    async fn create_token(
        &self,
        request: Request<CreateTokenRequest>,
    ) -> Answer<CreateTokenResponse> {
        let CreateTokenRequest { role, name, .. } = request.get_ref();
        self.called(&format!("token {role} {name}"), &request)?;
        let name = if name.is_empty() { role } else { name }.clone();
        Ok(Response::new(CreateTokenResponse { id: 7, token: "arb_secret".to_owned(), name }))
    }

    async fn create_tokens(
        &self,
        request: Request<CreateTokensRequest>,
    ) -> Answer<CreateTokensResponse> {
        let CreateTokensRequest { role, names, .. } = request.get_ref();
        self.called(&format!("tokens {role} {}", names.join(",")), &request)?;
        let created = (7..).zip(names).map(|(id, name)| CreateTokenResponse {
            id,
            token: format!("arb_{id}"),
            name: name.clone(),
        });
        Ok(Response::new(CreateTokensResponse { tokens: created.collect() }))
    }

    async fn revoke_token(
        &self,
        request: Request<RevokeTokenRequest>,
    ) -> Answer<RevokeTokenResponse> {
        self.called(&format!("revoke {}", request.get_ref().id), &request)?;
        Ok(Response::new(RevokeTokenResponse::default()))
    }

    async fn rotate_token(
        &self,
        request: Request<RotateTokenRequest>,
    ) -> Answer<RotateTokenResponse> {
        let RotateTokenRequest { token, overlap_us } = request.get_ref();
        self.called(&format!("rotate {token} {overlap_us}"), &request)?;
        Ok(Response::new(RotateTokenResponse {
            id: 2,
            role: "worker".to_owned(),
            name: token.clone(),
            token: "arb_other".to_owned(),
            previous_valid_until_us: 1_000_000_000_000_000,
        }))
    }

    async fn list_tokens(&self, request: Request<ListTokensRequest>) -> Answer<ListTokensResponse> {
        Ok(Response::new(ListTokensResponse { tokens: self.called("tokens", &request)?.tokens }))
    }
}
