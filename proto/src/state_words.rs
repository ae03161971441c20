//! The states of matches and versions in words for people. The messages hold the words of the
//! database, which never change.

/// The state of a match or lot in words. A state that this build does not know is its own word.
pub fn match_state(state: &str) -> &str {
    match state {
        "blocked" => "waiting",
        "pending" => "queued",
        "leased" => "playing",
        "reported" => "played",
        "aside" => "set aside",
        "cancelled" => "not needed",
        // `checking`, `counted`, `delayed`.
        other => other,
    }
}

/// The state of a version in words.
pub fn version_state(state: &str) -> &'static str {
    match state {
        "waiting" => "waiting for its trial",
        "trying" => "trial running",
        "failed" => "trial failed",
        "aside" => "trial set aside after faults",
        _ => "entered",
    }
}
