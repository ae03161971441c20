//! Input for tests: the tournaments of `arbiter demo --quick` with shorter matches and with enough
//! time for the bots on slow machines, and deterministic bots.

use std::fs;
use std::path::Path;

/// The games, with parameters that give the bots enough time.
pub(crate) const TIME: [(&str, &str); 5] = [
    ("wojna", "deals = 1\nclock = \"36000000/1000/36000000/100\""),
    ("bitwa", "bank = \"10h\""),
    ("tricks", "move_limit = \"10h\""),
    ("blackjack", "hands = 2\nmove_limit = \"10h\""),
    ("gomoku", "move_limit = \"10h\""),
];

/// Writes the tournament files of the quick demonstration to `to`, with time for the bots.
pub(crate) fn give_time(to: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir_all(to.join("quick")).unwrap();
    for (game, time) in TIME {
        let file = format!("quick/{game}.toml");
        let text = fs::read_to_string(root.join("deploy/tournaments").join(&file)).unwrap();
        let text = text.replace("\"../../../bots", &format!("\"{}/bots", root.display()));
        let text = text.replace("[params]\ndeals = 4\n", "");
        assert!(!text.contains("[params]"), "{file} has parameters that are not known here");
        let more = format!("\n[params]\n{time}\n\n[clock]\nstartup = \"10h\"\n");
        fs::write(to.join(file), text + &more).unwrap();
    }
}

/// Four deterministic bots for tricks: their names, and the directories of their programs.
pub(crate) const TRICKS_BOTS: [(&str, &str); 4] = [
    ("counter", "bots/tricks/counter"),
    ("lowest", "bots/tricks/lowest"),
    ("counter-too", "bots/tricks/counter"),
    ("lowest-too", "bots/tricks/lowest"),
];
