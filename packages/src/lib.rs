//! Game packages: games that an organiser brings, in any language.
//!
//! A package is a folder with a descriptor (`game.toml`), its rules, and a text for authors of
//! bots. The rules are a program. It speaks one protocol: Arbiter asks in JSON, one object a line,
//! and the rules answer what to send to which seat, which seats to ask, and at last the scores. The
//! rules are a pure function of what they were asked. Clocks, seats and processes are Arbiter's.
//!
//! This crate turns a package into a [`GameInfo`](arbiter_games::GameInfo), so that the rest of
//! Arbiter sees no difference to a built-in game. Who runs the rules is the caller's choice
//! ([`RulesHost`]).

mod answer_check;
mod answer_error;
pub mod archive_writer;
mod clock;
mod descriptor;
mod episodes;
mod files_digest;
mod game_toml;
mod match_state;
mod package_files;
mod params;
mod protocol;
mod rules;
mod rules_host;
mod served_game;
mod session;
mod source_file;
mod starter;
mod view;
mod wasi;
mod wasm;

pub use clock::PackageClock;
pub use descriptor::{Carrier, Descriptor, PackageSchedule};
pub use episodes::PackageEpisodes;
pub use files_digest::FilesDigest;
pub use game_toml::{DescriptorError, GAME_TOML};
pub use package_files::{
    BOT_MD, BOTS, BUILD_NAMES, BotFile, IGNORED_NAMES, MAX_BOT_MD, MAX_DESCRIPTOR, PackageFiles,
    PackageFilesError, is_beside_rules, packed_file, stays_within,
};
pub use protocol::{
    Action, Answer, Heard, LegalReplies, MAX_ALLOWANCE, MAX_ARGUMENTS, MAX_BAD_ANSWERS, MAX_FRAME,
    MAX_LEGAL, MAX_SCORE, MAX_TEXT, MAX_TOLD, NewMatch, PROTOCOL_VERSION, Question,
};
pub use rules_host::{RulesHost, RulesSession};
pub use served_game::ServedGame;
pub use source_file::{MAX_SOURCE_FILE, SourceFile, SourceFileError};
pub use starter::Starter;
pub use wasm::WasmRules;
