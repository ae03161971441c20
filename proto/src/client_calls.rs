//! The calls of clients with one request and one response.

/// Passes the calls of a service to the macro `$implement`, and then the other tokens.
///
/// The coordinator implements the calls of this list, and the command line sends them.
///
/// ```text
/// client_calls! { serve TokenService; streams {} }
/// // becomes
/// serve! {
///     TokenService { create_token(CreateTokenRequest) -> CreateTokenResponse; … }
///     streams {}
/// }
/// ```
#[macro_export]
macro_rules! client_calls {
    ($implement:ident TournamentService; $($rest:tt)*) => {
        $implement! {
            TournamentService {
                create_tournament(CreateTournamentRequest) -> Tournament;
                list_tournaments(ListTournamentsRequest) -> ListTournamentsResponse;
                get_tournament(GetTournamentRequest) -> Tournament;
                edit_tournament(EditTournamentRequest) -> EditTournamentResponse;
                post_announcement(PostAnnouncementRequest) -> Tournament;
                remove_announcement(RemoveAnnouncementRequest) -> Tournament;
                start_edition(StartEditionRequest) -> Edition;
                start_rehearsal(StartRehearsalRequest) -> Tournament;
                estimate_edition(EstimateEditionRequest) -> EditionEstimate;
                certify_edition(CertifyEditionRequest) -> Certificate;
                cancel_tournament(CancelTournamentRequest) -> Tournament;
                close_tournament(CloseTournamentRequest) -> Tournament;
                set_beacon(SetBeaconRequest) -> Tournament;
                delete_tournament(DeleteTournamentRequest) -> DeleteTournamentResponse;
                check_edition(CheckEditionRequest) -> CheckEditionResponse;
                get_edition_source(GetEditionSourceRequest) -> EditionSource;
                list_set_aside(ListSetAsideRequest) -> ListSetAsideResponse;
                retry_set_aside(RetrySetAsideRequest) -> RetrySetAsideResponse;
                void_matches(VoidMatchesRequest) -> VoidMatchesResponse;
                find_collusion(FindCollusionRequest) -> FindCollusionResponse;
                get_rounds(GetRoundsRequest) -> GetRoundsResponse;
                get_match(GetMatchRequest) -> MatchStatus;
            }
            $($rest)*
        }
    };
    ($implement:ident RankingService; $($rest:tt)*) => {
        $implement! {
            RankingService {
                get_ranking(GetRankingRequest) -> GetRankingResponse;
                get_standing(GetStandingRequest) -> GetStandingResponse;
                get_head_to_head(GetHeadToHeadRequest) -> GetHeadToHeadResponse;
                get_history(GetHistoryRequest) -> GetHistoryResponse;
                get_statistics(GetStatisticsRequest) -> GetStatisticsResponse;
                get_reply_times(GetReplyTimesRequest) -> GetReplyTimesResponse;
            }
            $($rest)*
        }
    };
    ($implement:ident BotService; $($rest:tt)*) => {
        $implement! {
            BotService {
                list_bots(ListBotsRequest) -> ListBotsResponse;
                list_invited(ListInvitedRequest) -> ListInvitedResponse;
                get_bot(GetBotRequest) -> GetBotResponse;
                get_trial(GetTrialRequest) -> TrialStatus;
                retry_trial(RetryTrialRequest) -> TrialStatus;
                get_bot_log(GetBotLogRequest) -> GetBotLogResponse;
                withdraw_bot(WithdrawBotRequest) -> WithdrawBotResponse;
                reinstate_bot(ReinstateBotRequest) -> ReinstateBotResponse;
            }
            $($rest)*
        }
    };
    ($implement:ident TokenService; $($rest:tt)*) => {
        $implement! {
            TokenService {
                create_token(CreateTokenRequest) -> CreateTokenResponse;
                create_tokens(CreateTokensRequest) -> CreateTokensResponse;
                rotate_token(RotateTokenRequest) -> RotateTokenResponse;
                revoke_token(RevokeTokenRequest) -> RevokeTokenResponse;
                list_tokens(ListTokensRequest) -> ListTokensResponse;
            }
            $($rest)*
        }
    };
    ($implement:ident AuditService; $($rest:tt)*) => {
        $implement! {
            AuditService {
                list_audit_entries(ListAuditEntriesRequest) -> ListAuditEntriesResponse;
                list_workers(ListWorkersRequest) -> ListWorkersResponse;
                suspend_worker(SuspendWorkerRequest) -> SuspendWorkerResponse;
                reinstate_worker(ReinstateWorkerRequest) -> ReinstateWorkerResponse;
            }
            $($rest)*
        }
    };
}
