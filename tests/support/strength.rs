//! A game in which bots have a strength, and luck if it is wanted.

use std::fs;

use crate::support::Bots;

/// Rules for two or three bots: each hears a number from the seed, adds its strength, and gets two
/// points for each bot with a smaller sum, and one for each with an equal one.
const RULES: &str = "import json, sys
for line in sys.stdin:
    question = json.loads(line)
    if 'new' in question:
        new = question['new']
        luck = bytes.fromhex(new['seed']) if new['params']['luck'] else bytes(32)
        seats = range(1, len(new['bots']) + 1)
        do = [{'ask': seat, 'text': f'plus {luck[seat - 1]}'} for seat in seats]
    else:
        heard = question['heard']
        sums = [chance + int(reply.get('text', 0)) for chance, reply in zip(luck, heard)]
        over = [[sum(2 if own > other else own == other for other in sums) - 1] for own in sums]
        do = [{'over': over}]
    print(json.dumps({'do': do}), flush=True)
";

/// The package, and bots of several strengths.
pub(crate) struct StrengthGame {
    pub(crate) bots: Bots,
    /// The folder of the package.
    pub(crate) package: String,
}

impl StrengthGame {
    pub(crate) fn new() -> Self {
        let bots = Bots::new();
        let folder = bots.path().join("strength");
        fs::create_dir(&folder).unwrap();
        let descriptor = "name = \"strength\"\ntitle = \"Strength\"\nversion = \"1\"\n\
            seats = [2, 3]\nrules = { run = [\"python3\", \"rules.py\"] }\n\
            [params.luck]\ntype = \"boolean\"\ndefault = true\nhelp = \"whether the seed counts\"\n";
        fs::write(folder.join("game.toml"), descriptor).unwrap();
        fs::write(folder.join("rules.py"), RULES).unwrap();
        Self { package: folder.to_str().unwrap().to_owned(), bots }
    }

    /// The folder of a bot of this strength, which is called `bot` as all others are.
    pub(crate) fn bot(&self, strength: u32) -> String {
        let folder = self.bots.path().join(format!("of-{strength}"));
        fs::create_dir_all(&folder).unwrap();
        let manifest = "name = \"bot\"\nrun = [\"python3\", \"bot.py\"]\n";
        fs::write(folder.join("bot.toml"), manifest).unwrap();
        let program = format!("import sys\nfor line in sys.stdin: print({strength}, flush=True)\n");
        fs::write(folder.join("bot.py"), program).unwrap();
        folder.to_str().unwrap().to_owned()
    }
}
