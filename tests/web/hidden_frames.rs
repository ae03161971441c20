//! Pictures for one seat of a game with hidden information are shown by no page, no call and no
//! export before the match is over.

use std::fs::{self, OpenOptions};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::browser::Browser;
use crate::support::up::Up;

/// What only a picture for one seat has in a record.
const PRIVATE: &str = "\"for\":";

/// A bot of liars-dice that waits at its first move until this FIFO is closed.
fn bot(folder: &Path, name: &str, fifo: &Path) -> String {
    let directory = folder.join(name);
    fs::create_dir(&directory).unwrap();
    let manifest = format!("name = \"{name}\"\nrun = [\"python3\", \"bot.py\"]\n");
    fs::write(directory.join("bot.toml"), manifest).unwrap();
    let fifo = fifo.to_str().unwrap();
    let code = format!(
        "import os, sys
for line in sys.stdin:
    word, *numbers = line.split()
    if word == 'move':
        if os.path.exists({fifo:?}):
            open({fifo:?}).read()
        print('liar' if numbers[0] != '0' else '1 6', flush=True)
"
    );
    fs::write(directory.join("bot.py"), code).unwrap();
    directory.to_str().unwrap().to_owned()
}

#[test]
fn pictures_for_one_seat_are_hidden_until_the_match_is_over() {
    let up = Up::start(1);
    let folder = up.directory.path();
    let fifo = folder.join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let house = ["ann", "ben", "cat", "dan"].map(|name| bot(folder, name, &fifo));
    let game = concat!(env!("CARGO_MANIFEST_DIR"), "/games/packages/liars-dice");
    up.create(&format!(
        "name = \"dice\"\ngame = \"{game}\"\n[schedule]\nkind = \"foursomes\"\ngames = 1\n[clock]\nmargin = \"10min\"\n\
         [params]\ndice = 1\n[house]\nbots = {house:?}\n"
    ));
    up.succeed("tournament start dice");
    // This waits for the first move: the dice are rolled and drawn.
    let writer = OpenOptions::new().write(true).open(&fifo).unwrap();

    let mut organiser = Browser::new(up.http);
    organiser.log_in(&up.admin());
    let pages = ["/t/dice/matches/0", "/t/dice/matches/0/steps", "/t/dice/matches/0/record"];
    let calls = [
        "/api/v1/tournaments/dice/matches/0/steps?limit=50",
        "/api/v1/tournaments/dice/matches/0/record",
    ];
    let page = organiser.page(pages[0]);
    assert!(page.contains("match dice/0 has no record yet") && !page.contains("<img"), "{page}");
    for path in pages[1..].iter().chain(&calls) {
        let response = organiser.get(path);
        assert!([404, 409].contains(&response.status), "{path}: {}", response.body);
    }
    let export = folder.join("export");
    let words = format!("tournament export dice --records --out {}", export.display());
    up.succeed(&words);
    let records = fs::read_dir(export.join("records"));
    assert!(records.map_or(true, |mut records| records.next().is_none()), "no record is exported");

    fs::remove_file(&fifo).unwrap();
    drop(writer);
    up.wait_for("dice", 1);
    let record = up.succeed("match dice/0 --record -");
    assert!(record.contains(PRIVATE), "the rules have drawn pictures for one seat: {record}");
    assert!(organiser.page(pages[0]).contains("<img"));
    assert_eq!(Browser::new(up.http).get(pages[2]).status, 200, "the replay is public now");
    up.close();
}
