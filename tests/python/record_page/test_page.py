"""The page of a recording: from a document to one HTML file."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palmette.record.page import write
from palmette.record.reading import RecordError

from . import synthetic

VOID = {"meta", "input", "br", "link", "img", "path"}
EVIL = "</script><img src=x onerror=alert(1)>\u2028&\"'"


class PageParser(HTMLParser):
    """A page's elements, its text and what it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.fetched += [
            value or "" for name, value in attrs if name in ("src", "href", "action") and not str(value).startswith("#")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text += data


def sent(page: str) -> dict[str, Any]:
    """What the page's script reads."""
    found: dict[str, Any] = json.loads(page.split('id="document">')[1].split("</script>")[0])
    return found


@pytest.fixture
def document() -> dict[str, Any]:
    return synthetic.document(steps=12)


def test_one_file_that_fetches_nothing(document: dict[str, Any]) -> None:
    page = write.render(document)
    parsed = PageParser(page)
    assert parsed.open == [] and parsed.fetched == []
    assert "@import" not in page and "url(" not in page
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page) == []
    assert "default-src 'none'" in page
    assert parsed.tags.count("script") == 2


def test_the_text_tells_findings_and_efficiencies_without_a_script(document: dict[str, Any]) -> None:
    text = " ".join(PageParser(write.render(document)).text.split())
    for finding in document["findings"]:
        assert f"{finding['function']} at {finding['place']}" in text
        assert finding["next"] in text
    for words in (
        "heat3d --grid 512",
        "of all ranks' time",
        "parallel efficiency",
        "load balance",
        "54 ns, of which reading",
    ):
        assert words in text
    assert "Rank 5 comes last 23 times" in text


def test_the_text_tells_causes_and_what_would_help(document: dict[str, Any]) -> None:
    causes = {
        "serialisation": 0.9, "transfer": 0.8, "network": 0.95, "software": 0.842,
        "plans": 0.934, "execution": 0.97, "others": 0.929,
        "roots": [{"sentence": "rank 5, computing before MPI_Wait at a.c:7: others wait 3 s for it", "share": 0.4}],
        "shorter": [
            {"what": "communication that takes no time", "gain": 0.123},
            {"what": "another algorithm: `palmette what-if demo --force bcast=k_nomial`", "gain": 0.071},
        ],
    }  # fmt: skip
    text = " ".join(PageParser(write.render(document | {"causes": causes})).text.split())
    for words in ("serialisation", "95%", "software", "84%", "Rank 5, computing before MPI_Wait", "12%"):
        assert words in text
    for words in ("93%", "execution", "other calls", "7.1%", "palmette what-if demo --force"):
        assert words in text
    without = causes | {"network": None, "software": None, "plans": None}
    assert "transfer" in PageParser(write.render(document | {"causes": without})).text


def test_where_nothing_is_found_that_is_said(document: dict[str, Any]) -> None:
    assert "Nothing here is worth your time" in PageParser(write.render(document | {"findings": []})).text


def test_a_profile_says_what_would_tell_more() -> None:
    page = write.render(synthetic.document(kind="profile"))
    parsed = PageParser(page)
    assert "palmette run --trace" in parsed.text and "parallel efficiency" not in parsed.text
    assert "Nothing here is worth your time" not in parsed.text
    assert {"timeline", "matrix", "links"}.isdisjoint(parsed.ids)
    assert {"paths", "flame", "sizes", "recorded"} <= set(parsed.ids)


@pytest.mark.parametrize("missing", ["timeline", "matrix", "links", "efficiencies"])
def test_the_page_can_do_without(document: dict[str, Any], missing: str) -> None:
    parsed = PageParser(write.render(document | {missing: None}))
    if missing == "efficiencies":
        assert "parallel efficiency" not in parsed.text
        return
    assert missing not in parsed.ids
    assert ("Show in timeline" in parsed.text) is (missing != "timeline")


def test_names_are_text_wherever_they_stand(document: dict[str, Any]) -> None:
    evil = document | {
        "program": EVIL, "folder": EVIL, "notes": [EVIL], "functions": [EVIL] * 6, "places": [EVIL] * 6,
        "recorded": [[EVIL, EVIL]], "flame": {**document["flame"], "names": [EVIL] * 12},
        "findings": [{**one, "sentence": EVIL, "next": EVIL, "place": EVIL} for one in document["findings"]],
    }  # fmt: skip
    page = write.render(evil)
    parsed = PageParser(page)
    assert parsed.tags.count("script") == 2 and "img" not in parsed.tags
    assert sent(page)["places"] == [EVIL] * 6
    assert parsed.text.count(EVIL) >= 10


def test_commands_in_sentences_are_marked(document: dict[str, Any]) -> None:
    assert "ask <code>a &amp; b</code>" in write.render(document | {"notes": ["ask `a & b`"]})


def test_what_is_empty_is_left_out(document: dict[str, Any]) -> None:
    alone = {**document["links"], "nodes": document["links"]["nodes"][:1]}
    split = document["split"] | {"bound_s": 0.0, "waiting_s": 0.0}
    page = write.render(document | {"sizes": [], "durations": [], "links": alone, "split": split, "began": ""})
    parsed = PageParser(page)
    assert {"sizes", "links"}.isdisjoint(parsed.ids)
    assert "what physics needs" not in parsed.text and "until the others have come" in parsed.text
    assert "traced" not in parsed.text


def test_numbers_that_are_none_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write.render(document | {"paths": [{**document["paths"][0], "seconds": float("nan")}]})


def test_the_largest_run_takes_less_than_3_mb_and_keeps_its_details() -> None:
    document = synthetic.many()
    page = write.render(document)
    assert 2_000_000 < len(page.encode()) <= 3_000_000
    assert sent(page)["timeline"] == document["timeline"] and sent(page)["links"] == document["links"]


def test_what_is_too_large_loses_details_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    document = synthetic.document(ranks=64, nodes=16, steps=60, fabric=(4, 4))
    whole = len(write.render(document).encode())
    gone = []
    for limit in range(whole - 1, whole // 3, -whole // 12):
        monkeypatch.setattr(write, "MOST_BYTES", limit)
        page = write.render(document)
        assert len(page.encode()) <= limit
        note = re.search(r"it is without ([^<]*)", page)
        assert note
        gone.append(note[1].count(","))
        assert sent(page)["timeline"]["messages"]["count"] == 0
    assert gone == sorted(gone) and gone[-1] >= 2


def test_random_columns_fit_however_many_calls_there_are(document: dict[str, Any]) -> None:
    noise = np.random.default_rng(1).bytes(4_000_000)
    calls = {**document["timeline"]["calls"], "begin": base64.b64encode(noise).decode()}
    page = write.render(document | {"timeline": {**document["timeline"], "calls": calls}})
    assert len(page.encode()) <= write.MOST_BYTES
    assert sent(page)["timeline"]["calls"]["count"] == 0
    assert "without messages in the timeline" in page


def test_names_that_no_page_holds_are_refused_in_one_line(document: dict[str, Any]) -> None:
    with pytest.raises(RecordError, match="names in it are too long") as raised:
        write.render(document | {"functions": ["x" * 600_000] * 6})
    assert "\n" not in str(raised.value)


def test_many_paths_leave_their_time_in_the_flame_graph(
    document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves = [[1 + number, 1.0 if number else 1e6, 1, []] for number in range(5000)]
    names = ["program", *(f"function{number}" for number in range(5000))]
    paths = [{**document["paths"][0], "seconds": float(number)} for number in range(3000)]
    monkeypatch.setattr(write, "MOST_BYTES", len(write.render(document)) + 250_000)
    found = sent(write.render(document | {"paths": paths, "flame": {"names": names, "tree": [0, 0.5, 0, leaves]}}))
    assert len(found["paths"]) == 1000 and found["paths"][0]["seconds"] == 2999
    assert found["flame"] == {"names": ["program", "function0"], "tree": [0, 0.5 + 4999, 4999, [[1, 1e6, 1, []]]]}


def test_every_script_of_the_folder_is_in_the_page() -> None:
    folder = Path(write.__file__).parent
    assert {file.stem for file in folder.glob("*.js")} == set(write._SCRIPTS)
