"""Print the requirements that pyproject.toml declares, one a word.

Usage: requirements.py [LIST...]      default: the package's own and those of all its extras

LIST is `dependencies` or an extra. Reads the lists itself, for Python 3.10 has no TOML reader and this runs before
anything is installed.
"""

import re
import sys
from pathlib import Path

LIST = r"^{name} = \[\n(?P<body>.*?)^\]"


def requirements(text: str, name: str) -> list[str]:
    """Return the strings of the array `name` of a pyproject.toml that spreads it one string a line."""
    found = re.search(LIST.format(name=re.escape(name)), text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"pyproject.toml: no list called {name}")
    return re.findall(r'^\s*"([^"]+)"', found["body"], re.MULTILINE)


def main() -> int:
    """Print the lists on one line."""
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    names = sys.argv[1:] or ("dependencies", "map", "calibrate", "otf2", "build", "dev")
    lists = [requirements(text, name) for name in names]
    print(" ".join(word for words in lists for word in words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
