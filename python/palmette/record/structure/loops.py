"""Loops of a function, from its branches, with the line and the inlined function that each stands in.

Blocks are nested into loops by the depth first search of Wei, Mao, Zou and Chen ("A New Algorithm for Identifying
Loops in Decompilation", SAS 2007), which gives the natural loops of dominators, nested by their headers, and takes a
loop with several entries for one whose header is the first entry that is met.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from palmette.record.structure.branches import Instruction
from palmette.record.structure.scopes import NOWHERE, Line, Scope

BEGINNING = re.compile(r"\.(f|for|ftn|f\d\d|rs)$", re.IGNORECASE)
"""Sources in which loops begin with their condition: no language with `do ... while`."""
INLINED_SHARE = 0.9
"""The share of a loop's instructions that lie in the inlined function which the loop is one of: compilers mix others'
in."""


@dataclass(frozen=True)
class Loop:
    """A loop."""

    header: int
    """Address of the block that is entered first."""
    line: Line
    depth: int
    """How many inlined functions, the outermost first, have all of it: 0 is the function itself."""


class Nest:
    """Which loops have which blocks. `roots` are where the search begins: the entry, then what nothing leads to."""

    def __init__(self, successors: Sequence[Sequence[int]], roots: Sequence[int]) -> None:
        count = len(successors)
        self._head = [-1] * count
        self._place = [0] * count
        self._seen = [False] * count
        self.is_header = [False] * count
        for root in roots:
            if not self._seen[root]:
                self._search(successors, root)
        self.innermost = [at if self.is_header[at] else self._head[at] for at in range(count)]
        """Header of the innermost loop of each block; -1: none."""

    def outer(self, header: int) -> int:
        """Return the header of the loop that a loop is in; -1: none."""
        return self._head[header]

    def _search(self, successors: Sequence[Sequence[int]], root: int) -> None:
        self._seen[root], self._place[root] = True, 1
        path = [(root, 0)]
        while path:
            block, at = path.pop()
            if at < len(successors[block]):
                path.append((block, at + 1))
                following = successors[block][at]
                if not self._seen[following]:
                    self._seen[following], self._place[following] = True, len(path) + 1
                    path.append((following, 0))
                elif self._place[following] > 0:
                    self.is_header[following] = True
                    self._within(block, following)
                else:
                    header = self._head[following]
                    while header >= 0 and self._place[header] == 0:
                        header = self._head[header]
                    self._within(block, header)
                continue
            self._place[block] = 0
            if path:
                self._within(path[-1][0], self._head[block])

    def _within(self, block: int, header: int) -> None:
        """Learn that a block is in a loop, and weave that into those that are known."""
        if block == header or header < 0:
            return
        while (known := self._head[block]) >= 0:
            if known == header:
                return
            if self._place[known] < self._place[header]:
                self._head[block] = header
                block, header = header, known
            else:
                block = known
        if block != header:
            self._head[block] = header


class Blocks:
    """The blocks of a function, by address: what leads to which. Cost: O(instructions)."""

    def __init__(self, instructions: Sequence[Instruction], entry: int) -> None:
        starts = {entry} | {one.following for one in instructions if one.kind}
        known = {one.address for one in instructions}
        targets = {one.target for one in instructions if one.target in known}
        self.starts = sorted((starts | targets) & known)
        number = {start: at for at, start in enumerate(self.starts)}
        self.members: list[list[Instruction]] = [[] for _ in self.starts]
        at = -1
        for one in instructions:
            at = number.get(one.address, at)
            if at >= 0:
                self.members[at].append(one)
        self.successors: list[list[int]] = []
        reached = {number[entry]} if entry in number else set()
        indirect = []
        for block, members in enumerate(self.members):
            last = members[-1]
            leads = [last.target] if last.kind in ("conditional", "jump") else []
            if last.kind in ("", "conditional"):
                leads.insert(0, last.following)
            self.successors.append([number[one] for one in leads if one in number])
            reached.update(self.successors[-1])
            if last.kind == "indirect":
                indirect.append(block)
        # Tables of a switch aren't read: where nothing else leads to, they lead to.
        self.entries = [number[entry]] if entry in number else []
        lost = [block for block in range(len(self.starts)) if block not in reached]
        for block in indirect:
            self.successors[block] = lost
        self.entries += lost

    def at(self, address: int) -> int:
        """Return the block with an address; -1: none."""
        at = bisect_right(self.starts, address) - 1
        return at if at >= 0 and address < self.members[at][-1].following else -1


class Loops:
    """The loops of a function."""

    def __init__(
        self, instructions: Sequence[Instruction], function: Scope | None, entry: int, line: Callable[[int], Line]
    ) -> None:
        """`function`: where its debug information is known. `line` returns that of an address."""
        self._function, self._line = function, line
        self._blocks = Blocks(instructions, entry)
        self._nest = Nest(self._blocks.successors, self._blocks.entries)
        self._known: dict[int, Loop] = {}
        self._inside: dict[int, list[int]] = defaultdict(list)
        for block, header in enumerate(self._nest.innermost):
            while header >= 0:
                self._inside[header].append(block)
                header = self._nest.outer(header)

    def at(self, address: int) -> list[Loop]:
        """Return the loops with an address, the outermost first."""
        block = self._blocks.at(address)
        header = self._nest.innermost[block] if block >= 0 else -1
        found = []
        while header >= 0:
            if header not in self._known:
                self._known[header] = self._loop(header)
            found.append(self._known[header])
            header = self._nest.outer(header)
        return found[::-1]

    def _loop(self, header: int) -> Loop:
        inside = self._inside[header]
        start = self._blocks.starts[header]
        if self._function is None:
            return Loop(start, NOWHERE, 0)
        members = set(inside)
        decides, returns = [], []
        for block in inside:
            last, leads = self._blocks.members[block][-1], self._blocks.successors[block]
            leaves = any(one not in members for one in leads) or len(leads) < 2
            if last.kind == "conditional" and (leaves or header in leads):
                decides.append(last.address)
            elif header in leads:
                returns.append(last.address)
        chain = self._scope(inside, decides or returns)
        lines = self._lines(decides, chain)
        if not lines or BEGINNING.search(lines[0].file):
            # Of a vector loop the branch may bear the body's line, and a first instruction the loop's.
            lines = self._lines([*decides, *returns, start], chain)
        return Loop(start, lines[0] if lines else NOWHERE, len(chain) - 1)

    def _scope(self, inside: Sequence[int], control: Sequence[int]) -> list[Scope]:
        """Return the function that blocks are of, and one of the branches that make them a loop, with those that it is
        inlined in, the outermost first.
        """
        assert self._function is not None
        deciding = {id(scope) for address in control for scope in self._function.chain(address)} or {id(self._function)}
        counts: Counter[int] = Counter()
        chains: dict[int, list[Scope]] = {}
        every = 0
        for block in inside:
            for one in self._blocks.members[block]:
                every += 1
                chain = self._function.chain(one.address)
                for depth, scope in enumerate(chain):
                    counts[id(scope)] += 1
                    chains.setdefault(id(scope), chain[: depth + 1])
        mostly = (key for key, count in counts.items() if count >= INLINED_SHARE * every and key in deciding)
        return max((chains[key] for key in mostly), key=len)

    def _lines(self, addresses: Sequence[int], chain: Sequence[Scope]) -> list[Line]:
        """Return lines of instructions, or of the calls in which they are inlined, in the function of a loop; the
        first one first.
        """
        assert self._function is not None
        found = []
        for address in addresses:
            own = self._function.chain(address)
            if len(own) >= len(chain) and own[len(chain) - 1] is chain[-1]:
                line = own[len(chain)].called if len(own) > len(chain) else self._line(address)
                if line.number:
                    found.append(line)
        if not found:
            return []
        file = Counter(one.file for one in found).most_common(1)[0][0]
        return sorted(one for one in found if one.file == file)
