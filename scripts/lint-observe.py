"""Checks of deploy/observe that promtool does not make. Run it at the top of the repository.

The dashboard's queries are given to promtool as rules; panels have different numbers and do not
overlap; every alert's runbook is a section of the manual.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

OBSERVE = pathlib.Path("deploy/observe")


def read(path):
    """A file."""
    return pathlib.Path(path).read_text(encoding="utf-8")


def sections(path):
    """The anchors of a page's sections, made from their titles."""
    titles = re.findall(r"^#+ (.*)$", read(path), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}


def check_queries(queries):
    """Whether promtool can read these."""
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
        file.flush()
        command = ["promtool", "check", "rules", "--lint=none", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [done.stdout + done.stderr] if done.returncode else []


def check_dashboard():
    """Mistakes in the dashboard."""
    panels = json.loads(read(OBSERVE / "grafana.json"))["panels"]
    wrong, taken = [], set()
    if len({panel["id"] for panel in panels}) != len(panels):
        wrong.append("two panels have the same number")
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        if cells & taken:
            wrong.append(f"{panel['title']} lies on another panel")
        taken |= cells
    queries = [target["expr"].replace("$__rate_interval", "1m")
               for panel in panels for target in panel.get("targets", [])]
    return wrong + check_queries(queries)


def check_alerts():
    """Mistakes in the alerts."""
    wrong = []
    for group in yaml.safe_load(read(OBSERVE / "alerts.yaml"))["groups"]:
        for rule in group["rules"]:
            page, _, section = rule["annotations"]["runbook_url"].partition("#")
            if section not in sections(page):
                wrong.append(f"{rule['alert']}: {page} has no section {section}")
            if rule["labels"]["severity"] not in ("critical", "warning"):
                wrong.append(f"{rule['alert']}: how severe is it?")
    return wrong


def main():
    """Prints all mistakes."""
    wrong = check_dashboard() + check_alerts()
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
