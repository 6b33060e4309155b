"""Looks addresses up in modules, in a process of its own: what crashes or hangs on a damaged file is this process.

    python -m palmette.record.structure.worker < REQUEST

A request is a line of JSON for each module: `path`, `addresses` and whether `loops` are wanted. Answers are lines of
JSON as well: `{"begins": i}` for each module, then `{"at": address, "around": [[function, file, line, [[name, file,
line], ...]], ...]}`, the innermost function first, once more with its loops where it has some, and `{"note": text}`.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError

from palmette.record.structure.module import Module


def _tell(**told: Any) -> None:
    print(json.dumps(told, separators=(",", ":")), flush="at" not in told)


def main() -> None:
    """Answer all requests of the standard input."""
    requests = [json.loads(line) for line in sys.stdin]
    for number, request in enumerate(requests):
        _tell(begins=number)
        try:
            with closing(Module(Path(request["path"]))) as module:
                for address, around in module.places(request["addresses"]):
                    _tell(at=address, around=around)
                sys.stdout.flush()
                for address, around in module.loops(request["addresses"]) if request["loops"] else ():
                    _tell(at=address, around=around)
        except (OSError, ELFError, ValueError, KeyError, AttributeError, IndexError) as error:
            # What damaged files make pyelftools raise.
            _tell(note=f"{request['path']}: {error}: calls are shown by their functions, without lines")
            continue
        for note in dict.fromkeys(module.notes):
            _tell(note=note)
    _tell(begins=len(requests))


if __name__ == "__main__":
    main()
