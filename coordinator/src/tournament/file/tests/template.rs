use super::*;
use crate::tournament::file::parse_keys::known_keys;

fn template(game: &Game) -> String {
    TournamentFile::template(&Games::built_in(), &game.name, &game.name, None).unwrap()
}

#[test]
fn a_template_means_the_same_as_a_name_and_a_game() {
    for game in Games::built_in().iter() {
        let text = template(game);
        let parsed = TournamentFile::parse(&Games::built_in(), &text);
        let parsed = parsed.unwrap_or_else(|error| panic!("{game}: {error}\n{text}"));
        assert_eq!(parsed, TournamentFile::official(&format!("{game}-cup"), game), "{text}");
    }
}

#[test]
fn a_template_has_every_key_that_a_file_may_have() {
    for game in Games::built_in().iter() {
        let text = template(game);
        let lines: Vec<_> = text.lines().map(|line| line.trim_start_matches("# ")).collect();
        for key in known_keys(game) {
            let name = key.rsplit('.').next().unwrap();
            let is_assigned = lines.iter().any(|line| line.starts_with(&format!("{name} = ")));
            let is_listed = key.starts_with("schedule.")
                && lines.iter().any(|line| {
                    line.starts_with("kind = \"") && line.split([' ', ',']).any(|word| word == name)
                });
            assert!(is_assigned || is_listed, "{key}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

/// A file stays readable without the # of a key, up to what its value must fit.
#[test]
fn commented_keys_of_a_template_are_toml() {
    for game in Games::built_in().iter() {
        for line in template(game).lines().filter_map(|line| line.strip_prefix("# ")) {
            let is_key = line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
            if is_key && !line.starts_with("kind = ") {
                assert!(line.parse::<toml::Table>().is_ok(), "{line}");
            }
        }
    }
}

#[test]
fn a_template_of_a_package_has_its_path() {
    let digest = "0".repeat(64);
    let descriptor = "name = 'own'\ntitle = 'Own'\nversion = '1'\nseats = [2, 6]\n\
                      schedule = 'tables'\nrules = { run = ['./rules'] }\n";
    let keys = format!("bundle = \"{digest}\"\ndigest = \"{digest}\"\ndescriptor = {descriptor:?}");
    let package: GamePackage = toml::from_str(&keys).unwrap();
    let games = Games::built_in();
    let text = TournamentFile::template(&games, "own", "games/own", Some(&package)).unwrap();
    assert!(text.contains("name = \"own-cup\"") && text.contains("game = \"games/own\""), "{text}");
    let load = |path: &str| (path == "games/own").then(|| ("own".to_owned(), package.clone()));
    let parse = |text: &str| {
        let inlined = TournamentFile::inline_package(text, load).unwrap();
        TournamentFile::parse(&games, &inlined).unwrap()
    };
    let short = "name = \"own-cup\"\ngame = \"games/own\"\n";
    assert_eq!(parse(&text), parse(short), "{text}");
    let error = TournamentFile::template(&games, "chess", "chess", None).unwrap_err();
    assert!(error.to_string().contains("or name the folder of a game package"), "{error}");
}
