//! `arbiter tournament export --site`: a site without a server, for everybody.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

use crate::data_archive::all_files;
use crate::support::service::done;
use crate::test_server::TestServer;

/// Exports a site of the tournament `cup` as an organiser.
fn export(server: &TestServer, to: &Path, more: &str) -> std::process::Output {
    let mut command = server.up.command("tournament export cup --site");
    command.arg(to).args(more.split_whitespace()).output().unwrap()
}

/// The files of a site by their paths.
fn files(site: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: PathBuf| {
        let name = path.strip_prefix(site).unwrap().to_owned();
        (name, fs::read(path).unwrap())
    };
    all_files(site).into_iter().map(read).collect()
}

/// The links of a page, without fragments.
fn links(page: &str) -> Vec<String> {
    let values = ["href=\"", "src=\""].into_iter().flat_map(|attribute| {
        page.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap())
    });
    let links = values.map(|link| link.split('#').next().unwrap().to_owned());
    links.filter(|link| !link.is_empty() && !link.starts_with("data:")).collect()
}

/// The path of a link on the page `from`.
fn resolve(from: &Path, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in from.parent().unwrap().join(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{link} leaves the site"),
            Component::Normal(name) => path.push(name),
            other => panic!("{link}: {other:?}"),
        }
    }
    path
}

#[test]
fn every_link_of_a_site_leads_to_a_file_of_the_site() {
    let server = TestServer::played();
    let description = "description=[one](/t/cup/matches/0) [two](/t/cup/bots/eve) \
        [three](/t/cup/matrix) [four](/t/cup/ranking?edition=1) [five](/login)";
    let mut edit = server.up.command("tournament edit cup --set");
    done(&edit.arg(description).output().unwrap());
    let folder = TempDir::new().unwrap();
    let site = folder.path().join("site");
    let stdout = done(&export(&server, &site, ""));
    let site_name = site.display();
    assert_eq!(
        stdout,
        format!(
            "exported a site of edition 1 of cup with 20 matches and 20 replays to {site_name}\n"
        )
    );
    let found = files(&site);
    let text = "<a href=\"replays/0.html\">one</a> two <a href=\"head-to-head.html\">three</a> \
        <a href=\"index.html\">four</a> five";
    let index = String::from_utf8_lossy(&found[Path::new("index.html")]);
    assert!(index.contains(text), "{index}");
    let text_of = |name: &str| String::from_utf8_lossy(&found[Path::new(name)]).into_owned();
    assert!(!text_of("matches/page-1.html").contains("This site contains"), "no replay is missing");
    let guide = text_of("how-to-play.html");
    for part in ["Conditions in this tournament", "the page Seed and settings</a>"] {
        assert!(guide.contains(part), "{part}: {guide}");
    }
    let mut reached = BTreeSet::from([PathBuf::from("index.html")]);
    let mut waiting: Vec<_> = reached.iter().cloned().collect();
    while let Some(page) = waiting.pop() {
        let bytes = found.get(&page).unwrap_or_else(|| panic!("{} is missing", page.display()));
        if page.extension().is_none_or(|extension| extension != "html") {
            continue;
        }
        for link in links(&String::from_utf8_lossy(bytes)) {
            assert!(!link.starts_with('/') && !link.contains(':'), "{}: {link}", page.display());
            let target = resolve(&page, &link);
            if reached.insert(target.clone()) {
                waiting.push(target);
            }
        }
    }
    let unreached: Vec<_> = found.keys().filter(|path| !reached.contains(*path)).collect();
    assert_eq!(unreached, [Path::new(".arbiter-site")]);
    let replays = found.keys().filter(|path| path.starts_with("replays"));
    assert_eq!(replays.count(), 20);

    // The same data as that of the server.
    for name in ["ranking.csv", "matches.csv", "statistics.csv"] {
        let served = server.get(&format!("/t/cup/{name}"), &[]).text();
        let exported = &found[&Path::new("data").join(name)];
        assert_eq!(String::from_utf8_lossy(exported), served, "{name}");
    }
    done(&server.up.command("verify").arg(site.join("data")).output().unwrap());
    let again = folder.path().join("again");
    done(&export(&server, &again, ""));
    assert!(files(&again) == found, "two exports have the same bytes");
    server.up.close();
}

#[test]
fn a_site_of_an_organiser_has_nothing_private() {
    let server = TestServer::played();
    let folder = TempDir::new().unwrap();
    let site = folder.path().join("site");
    done(&export(&server, &site, ""));
    let log = server.up.json("log cup eve --forfeits");
    let details = log.iter().filter_map(|entry| entry["evidence"]["detail"].as_str());
    let mut secrets: Vec<_> = details.map(str::to_owned).collect();
    assert!(!secrets.is_empty(), "{log:?}");
    secrets.extend([server.up.admin(), server.player.clone(), "arb_".to_owned()]);
    for (path, bytes) in files(&site) {
        let text = String::from_utf8_lossy(&bytes);
        for secret in &secrets {
            assert!(!text.contains(&**secret), "{}: {secret}", path.display());
        }
    }
    server.up.close();
}

#[test]
fn a_site_replaces_only_a_former_site() {
    let server = TestServer::played();
    let folder = TempDir::new().unwrap();
    let site = folder.path().join("site");
    done(&export(&server, &site, "--matches 3"));
    let replays = |site: &Path| all_files(&site.join("replays")).len();
    assert_eq!(replays(&site), 3);
    let list = || fs::read_to_string(site.join("matches/page-1.html")).unwrap();
    assert!(list().contains("This site contains the replays of 3 of 20 matches."), "{}", list());
    done(&export(&server, &site, "--matches 0"));
    assert_eq!(replays(&site), 0, "the former site is gone");
    assert!(list().contains("This site contains no replays."), "{}", list());
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("mine"), "").unwrap();
    let refused = export(&server, &other, "");
    assert_eq!(refused.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("not a site that was exported before"), "{stderr}");
    assert_eq!(all_files(&other).len(), 1);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing else is left: {left:?}");
    server.up.close();
}

/// What an export prints that is refused.
fn refusal(server: &TestServer, site: &Path, more: &str) -> String {
    let before = files(site);
    let refused = export(server, site, more);
    assert_eq!(refused.status.code(), Some(2));
    assert!(files(site) == before, "a refused export changes nothing");
    String::from_utf8_lossy(&refused.stderr).into_owned()
}

#[test]
fn a_new_export_keeps_the_files_that_no_export_wrote() {
    let server = TestServer::played();
    let folder = TempDir::new().unwrap();
    let site = folder.path().join("site");
    done(&export(&server, &site, "--matches 3"));
    let own = ["own.txt", "CNAME", ".htaccess", ".git/HEAD", "replays/notes/mine.txt"];
    for name in own {
        let path = site.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    // Git needs this folder, also if it is empty.
    fs::create_dir(site.join(".git/refs")).unwrap();
    symlink("nowhere", site.join("link")).unwrap();
    fs::set_permissions(&site, Permissions::from_mode(0o750)).unwrap();
    let age = |name: &str| fs::metadata(site.join(name)).unwrap().modified().unwrap();
    let ages = own.map(age);

    done(&export(&server, &site, "--matches 0"));
    for name in own {
        assert_eq!(fs::read_to_string(site.join(name)).unwrap(), name);
    }
    assert_eq!(own.map(age), ages);
    assert!(site.join(".git/refs").is_dir());
    assert_eq!(fs::read_link(site.join("link")).unwrap(), Path::new("nowhere"));
    assert_eq!(fs::metadata(&site).unwrap().permissions().mode() & 0o777, 0o750);
    let replays = all_files(&site.join("replays"));
    assert_eq!(replays, [site.join("replays/notes/mine.txt")], "former replays are gone");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
    server.up.close();
}

#[test]
fn an_export_that_would_replace_a_file_of_the_user_is_refused() {
    let server = TestServer::played();
    let folder = TempDir::new().unwrap();
    let site = folder.path().join("site");
    done(&export(&server, &site, "--matches 0"));
    let index = fs::read(site.join("index.html")).unwrap();
    fs::write(site.join("index.html"), "my words").unwrap();
    let stderr = refusal(&server, &site, "");
    assert!(stderr.contains("index.html was changed after its export"), "{stderr}");

    fs::write(site.join("index.html"), index).unwrap();
    fs::write(site.join("replays/0.html"), "my replay").unwrap();
    let stderr_of_new_file = refusal(&server, &site, "");
    let cause = "no export wrote replays/0.html, and the new site has a file of this name";
    assert!(stderr_of_new_file.contains(cause), "{stderr_of_new_file}");
    done(&export(&server, &site, "--matches 0"));

    let mut command = server.up.command("tournament export cup --site .");
    let inside = command.current_dir(&site).output().unwrap();
    let stderr_inside = String::from_utf8_lossy(&inside.stderr);
    assert!(stderr_inside.contains("cannot replace the current directory"), "{stderr_inside}");
    assert_eq!(inside.status.code(), Some(2));

    // Former releases wrote no list.
    let text = "A site of arbiter tournament export. It may be replaced.\n";
    fs::write(site.join(".arbiter-site"), text).unwrap();
    let stderr_of_old = refusal(&server, &site, "");
    assert!(stderr_of_old.contains("as a former release wrote it"), "{stderr_of_old}");
    server.up.close();
}
