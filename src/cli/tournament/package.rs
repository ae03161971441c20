//! `arbiter tournament package T`: sends a game package to a tournament, or downloads one.

use std::path::{Path, PathBuf};

use arbiter_coordinator::game_package;
use arbiter_packages::{Descriptor, DescriptorError};
use arbiter_proto::settings::{GamePackage, HexDigest};
use arbiter_proto::v1::set_package_request::Part;
use arbiter_proto::v1::{GetTournamentRequest, PackageUpload, SetPackageRequest, Tournament};
use arbiter_worker::bundle::Bundle;
use arbiter_worker::package::Package;
use clap::Args;
use serde_json::json;

use super::list::{settings, tournament_json};
use crate::cli::bundle_upload;
use crate::cli::client::{Server, TournamentArgs, malformed_response, unless_interrupted};
use crate::cli::package_file::PackageFile;
use crate::failure::Failure;
use crate::output::eprint_line;
use crate::play::game::load;

/// Replace the game package of a tournament by another version of the same game, or download it.
///
/// The next edition is played by the new rules, with all its matches. Earlier editions keep their
/// leaderboards, their records and their rules.
#[derive(Debug, Args)]
#[command(
    after_help = "A downloaded package is used wherever a game is named: to play, to write a bot, \
    and to verify records. Everybody may download it.

Examples:
  arbiter tournament package finals games/connect4
  arbiter tournament package finals --out .
  arbiter tournament package finals --out connect4.tar.zst
  arbiter play connect4.tar.zst mybot otherbot"
)]
pub(super) struct TournamentPackage {
    #[command(flatten)]
    target: TournamentArgs,
    /// The folder or packed file of the package that replaces the present one.
    #[arg(value_name = "DIR", required_unless_present = "out")]
    package: Option<PathBuf>,
    /// Download the package to this file, or into this folder as NAME-DIGEST.tar.zst.
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "package")]
    out: Option<PathBuf>,
    /// Download the package that records name by this digest; by default the present one.
    #[arg(long, value_name = "DIGEST", requires = "out", value_parser = parse_digest)]
    digest: Option<HexDigest>,
}

fn parse_digest(text: &str) -> Result<HexDigest, String> {
    let expected = |_| "expected 64 hexadecimal digits, as in records".to_owned();
    HexDigest::try_from(text.to_owned()).map_err(expected)
}

impl TournamentPackage {
    pub(super) fn run(self) -> Result<(), Failure> {
        match &self.out {
            Some(out) => self.download(out),
            None => self.send(self.package.as_ref().expect("clap asks for one of the two")),
        }
    }

    fn download(&self, out: &Path) -> Result<(), Failure> {
        let TournamentArgs { tournament, response } = &self.target;
        let file = response.client.run(async |server| {
            unless_interrupted(PackageFile::download(&server, tournament, self.digest)).await
        })?;
        let out = if out.is_dir() { out.join(file.name()) } else { out.to_owned() };
        file.save(&out)?;
        let Package { descriptor, digest, .. } = &file.package;
        let name = &descriptor.name;
        let version = &descriptor.version;
        let out = out.display().to_string();
        response.print(
            || json!({"file": out, "name": name, "version": version, "digest": digest}),
            |output| output.line(&format!("{out}: {name} version {version} of digest {digest}")),
        )
    }

    fn send(&self, package: &Path) -> Result<(), Failure> {
        let packed = PackedPackage::load(package)?;
        let TournamentArgs { tournament, response } = &self.target;
        let request = GetTournamentRequest { tournament: tournament.clone(), edition: None };
        let (before, after) = response.client.run(async |server| {
            Ok((server.send(request).await?, packed.send(&server, tournament).await?))
        })?;
        let before = game_package::of_settings(&settings(&before).into())
            .map_err(malformed_response)?
            .ok_or_else(|| malformed_response("the tournament had no package"))?;
        let change = Change::of(&before, &packed.source, !after.editions.is_empty())
            .map_err(malformed_response)?;
        if let Some(warning) = change.warning {
            eprint_line(warning);
        }
        response.print(
            || tournament_json(&after),
            |out| out.line(&format!("{}: {}", after.name, change.summary)),
        )
    }
}

/// What another package changes in a tournament.
struct Change {
    summary: String,
    warning: Option<&'static str>,
}

impl Change {
    /// Compares two packages. `is_started` says whether the tournament has editions.
    fn of(
        before: &GamePackage,
        after: &GamePackage,
        is_started: bool,
    ) -> Result<Self, DescriptorError> {
        let summary = game_package::summary(after)?;
        if before.digest == after.digest {
            let summary =
                format!("{summary}; the rules are the same, and no match is played again");
            return Ok(Self { summary, warning: None });
        }
        let former = game_package::summary(before)?;
        let version = |package: &GamePackage| {
            Descriptor::parse(&package.descriptor).map(|descriptor| descriptor.version)
        };
        let is_same_version = version(before)? == version(after)?;
        let effect = if is_started { "; the next edition plays all matches again" } else { "" };
        Ok(Self {
            summary: format!("{summary} (before: {former}){effect}"),
            warning: is_same_version.then_some(
                "warning: the rules have changed but their version has not; raise version in \
                 game.toml",
            ),
        })
    }
}

/// A game package with its packed files.
#[derive(Debug)]
pub(super) struct PackedPackage {
    /// The name of the game.
    pub(super) name: String,
    /// The package as in a tournament file.
    pub(super) source: GamePackage,
    /// The folders of its house bots, by name.
    pub(super) bots: Vec<PathBuf>,
    bundle: Bundle,
    /// Keeps the files of a packed package.
    _package: Package,
}

impl PackedPackage {
    /// Loads and packs the package at `path`.
    ///
    /// # Errors
    /// If there is none, or it is not valid.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let package = load(path)?;
        let bundle = package.pack().map_err(Failure::usage)?;
        let digest = HexDigest::try_from(package.digest.clone()).map_err(Failure::usage)?;
        let descriptor = package.descriptor_text().map_err(Failure::usage)?;
        Ok(Self {
            name: package.descriptor.name.clone(),
            source: GamePackage { bundle: HexDigest(bundle.digest()), digest, descriptor },
            bots: package.house_bots(),
            bundle,
            _package: package,
        })
    }

    /// Sends it to the tournament of this name.
    pub(super) async fn send(
        &self,
        server: &Server,
        tournament: &str,
    ) -> Result<Tournament, Failure> {
        let package = serde_json::to_string(&self.source).expect("texts can be written as JSON");
        let request = |part| SetPackageRequest { part: Some(part) };
        let first = Part::Upload(PackageUpload { tournament: tournament.to_owned(), package });
        let (requests, bar) = bundle_upload::requests(&self.bundle, request(first), |bytes| {
            request(Part::Bundle(bytes))
        });
        let tournament = server.tournaments().set_package(requests).await;
        bar.finish_and_clear();
        Ok(tournament?.into_inner())
    }
}
