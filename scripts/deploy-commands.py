"""Checks that the program knows the command lines and variables in deploy/ and the manual.

python3 scripts/deploy-commands.py PROGRAM MANIFEST…, from the top of the repository. A command is
run with a last word `--help`: it does nothing, but only after it has read what stands before.
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys

import yaml

program, manifests = sys.argv[1], sys.argv[2:]


def of_dockerfile(text):
    """The commands of images, and their health checks."""
    for kind, words in re.findall(r"(HEALTHCHECK|^CMD|^ *CMD)[^\[]*(\[.*\])", text, re.MULTILINE):
        words = json.loads(words)
        yield words[1:] if words[0] == "arbiter" else words


def of_units(text):
    """The commands of units, without options from their environment files."""
    for line in re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE):
        yield [word for word in line.split()[1:] if not word.startswith("$")]


def of_manifest(thing):
    """The commands of containers, and probes that run a program."""
    if isinstance(thing, list):
        for part in thing:
            yield from of_manifest(part)
    if isinstance(thing, dict):
        if "arbiter-" in str(thing.get("image")) and "args" in thing:
            yield thing["args"]
        command = thing.get("command")
        if isinstance(command, list) and command[0] == "arbiter":
            yield command[1:]
        for part in thing.values():
            yield from of_manifest(part)


def of_manual(text):
    """Commands in the manual, without ellipses."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            # Text in brackets is a separate command.
            line = re.sub(r"\$\(cat [^)]*\)", "TEXT", line)
            begin, end = r"(?:^|&& |\| |-- )arbiter ", r"(?=&&|\||\)|>|$)"
            for part in re.findall(begin + "(.*?)" + end, line):
                yield [word for word in shlex.split(part, comments=True) if word != "&"]


def commands():
    """Each command's location, and its words after `arbiter`."""
    def read(name):
        return pathlib.Path(name).read_text(encoding="utf-8")

    for words in of_dockerfile(read("deploy/Dockerfile")):
        yield "deploy/Dockerfile", words
    for unit in pathlib.Path("deploy/systemd").glob("*.service"):
        for words in of_units(unit.read_text(encoding="utf-8")):
            yield str(unit), words
    for name in ["deploy/compose.yaml", *manifests]:
        for document in yaml.safe_load_all(read(name)):
            for words in of_manifest(document):
                yield name, words
    for words in of_manual(read("docs/operating.md")):
        yield "docs/operating.md", words


def run(words):
    """The program's output for a command."""
    return subprocess.run(
        [program, *words, "--help"], capture_output=True, text=True, check=False, timeout=60
    )


def variables():
    """The variables that the program or the start of its images reads."""
    known = {"ARBITER_TOKEN_FILE", "ARBITER_DATABASE_URL_FILE"}
    for words in (["coordinator"], ["worker"], ["token", "create"]):
        known.update(re.findall(r"env:\s+(ARBITER_[A-Z_]+)", run(words).stdout))
    return known


def main():
    """Prints the commands and variables that the program does not know."""
    seen, wrong = 0, 0
    for where, words in commands():
        seen += 1
        done = run(words)
        if done.returncode != 0:
            wrong += 1
            print(f"{where}: arbiter {shlex.join(words)}\n{done.stderr}", file=sys.stderr)
    known = variables()
    for path in sorted(pathlib.Path("deploy").rglob("*")):
        if path.is_file():
            used = set(re.findall(r"\bARBITER_[A-Z_]+\b", path.read_text(encoding="utf-8")))
            for name in sorted(used - known):
                wrong += 1
                print(f"{path}: no program reads the variable {name}", file=sys.stderr)
    print(f"{seen} commands, {wrong} mistakes")
    return 1 if wrong or not seen else 0


sys.exit(main())
