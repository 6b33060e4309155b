"""The claims of slides on collectives (docs/results), one by one: each is a command.

    .venv/bin/python studies/claims.py list
    .venv/bin/python studies/claims.py small-nodes
    .venv/bin/python studies/claims.py all --write docs/results/2026-11-29-seed-claims.md

Prints tables in Markdown and a verdict that is computed from them; with --write puts them between the markers of a
page, and raw samples in the folder of the page's name; `all` is then all that the page has markers for. Some want
SimGrid (`make simulate`), some root for a lab, all `make build`. A claim that can't be run here says why, and leaves
its part of the page as it was; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
import traceback
from datetime import date
from pathlib import Path

from claim import cache, composing, leaders, network, node, order, small, topology
from claim.form import CannotRunError, Claim, ClaimOutcome, Options

CLAIMS = (
    *small.CLAIMS, *network.CLAIMS, *node.CLAIMS, *cache.CLAIMS, *topology.CLAIMS, *leaders.CLAIMS, *composing.CLAIMS,
    *order.CLAIMS,
)  # fmt: skip
"""In the order of the pages."""
BY_NAME = {claim.name: claim for claim in CLAIMS}


def marked(text: str, name: str, new: str) -> str:
    """Return the page with the text between a name's markers replaced."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    form = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(form.findall(text)) != 1:
        raise SystemExit(f"claims.py: the page must have the markers {begin} and {end} once")
    return form.sub(lambda _: f"{begin}\n\n{new}\n\n{end}", text)


def row(claim: Claim, found: ClaimOutcome) -> str:
    """Return the claim's row of the summary."""
    cells = [f"[{claim.says}](#{claim.name})", claim.theirs, found.ours, f"**{found.verdict}**", found.why, claim.by]
    return f"| {' | '.join(cells)} |"


def with_row(text: str, claim: Claim, found: ClaimOutcome) -> str:
    """Return the page with the summary's row of the claim replaced, in the order of CLAIMS."""
    begin, end = "<!-- summary -->", "<!-- /summary -->"
    inside = text[text.index(begin) + len(begin) : text.index(end)]
    rows = {}
    for line in inside.strip().splitlines()[2:]:
        rows[line.split("](#", 1)[1].split(")", 1)[0]] = line
    rows[claim.name] = row(claim, found)
    head = ["| the slides say | their figure | here | verdict | cause | by |", "|---|---|---|---|---|---|"]
    return marked(text, "summary", "\n".join([*head, *(rows[name] for name in BY_NAME if name in rows)]))


def machine() -> str:
    """Return what this ran on, in a sentence."""
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    processors = f"{os.cpu_count()} processors ({models[0] if models else platform.machine()})"
    return f"Last run: {date.today()}, {processors}, Linux {platform.release()}, palmette at commit {commit}."


def write(page: Path, claim: Claim, found: ClaimOutcome) -> None:
    """Put what was found on the page, and the samples beside it."""
    text = with_row(page.read_text(encoding="utf-8"), claim, found)
    text = marked(text, "machine", machine())
    text = marked(text, claim.name, "\n\n".join(table.markdown for table in found.tables))
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    samples = json.dumps(found.samples, indent=None, sort_keys=True)
    (folder / f"{claim.name}.json").write_text(samples + "\n", encoding="utf-8")
    new = page.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(page)


def main() -> int:
    """Run the claims that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claims", nargs="+", metavar="CLAIM", help="names, `all` or `list`")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="a page with markers for each claim")
    parser.add_argument(
        "--small", action="store_true", help="few sizes and repetitions, for a test; nothing to publish"
    )
    asked = parser.parse_args()
    if asked.claims == ["list"]:
        for claim in CLAIMS:
            print(f"{claim.name:16} {claim.says} ({claim.by})")
        return 0
    names = list(BY_NAME) if asked.claims == ["all"] else asked.claims
    if asked.claims == ["all"] and asked.write and asked.write.is_file():
        text = asked.write.read_text(encoding="utf-8")
        names = [name for name in names if f"<!-- {name} -->" in text]
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        parser.error(f"{unknown[0]} is no claim; there are {', '.join(BY_NAME)}")
    if asked.write and not asked.write.is_file():
        parser.error(f"{asked.write}: no such page")
    left_out = 0
    for name in names:
        claim, begun = BY_NAME[name], time.monotonic()
        print(f"\n## {name}\n\n{claim.says}. The slides: {claim.theirs}.\n", flush=True)
        try:
            found = claim.run(Options(small=asked.small))
        except CannotRunError as error:
            print(f"not run: {error}", flush=True)
            left_out += 1
            continue
        except Exception:
            print(f"not run, a fault of its command:\n{traceback.format_exc()}", flush=True)
            left_out += 1
            continue
        print("\n\n".join(table.markdown for table in found.tables))
        print(f"\n**{found.verdict}**: {found.ours}. Cause: {found.why}.", flush=True)
        print(f"{name}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        if asked.write:
            write(asked.write, claim, found)
    return 1 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
