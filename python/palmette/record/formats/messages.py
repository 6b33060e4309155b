"""Which receive got which send: messages from one rank to another on a communicator with a tag come in order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby
from typing import NamedTuple

from palmette.record.formats.functions import is_receive, is_send, starts_send
from palmette.record.formats.selection import Call, Selection
from palmette.record.functions import PARTITIONED, operation


class Message(NamedTuple):
    """A send and the receive that got it."""

    number: int
    """Number of the message, counted from 1."""
    bytes: int
    """Bytes as sent: a receive only says how much it has room for."""
    sender: int
    """Index into Selection.everyone."""
    send: int
    """Call.number."""
    receiver: int
    receive: int


@dataclass
class Messages:
    """The messages whose both ends are in a selection."""

    all: list[Message] = field(default_factory=list)
    sent: dict[int, dict[int, Message]] = field(default_factory=lambda: defaultdict(dict))
    """Sent messages by process and Call.number."""
    received: dict[int, dict[int, Message]] = field(default_factory=lambda: defaultdict(dict))


class _End(NamedTuple):
    position: int
    """Place of the message on its channel."""
    call: int
    bytes: int


class _Channel:
    """One direction between two ranks on one communicator with one tag."""

    def __init__(self) -> None:
        self.counts = [0, 0]
        self.ends: tuple[list[_End], list[_End]] = ([], [])

    def add(self, is_receive: bool, call: Call, is_shown: bool) -> None:
        if is_shown:
            self.ends[is_receive].append(_End(self.counts[is_receive], call.number, call.bytes))
        self.counts[is_receive] += 1

    def pairs(self, from_end: bool) -> list[tuple[_End, _End]]:
        """Return sends with their receives. Where a ring lost the first of them, the last belong together."""
        shift = self.counts[1] - self.counts[0] if from_end else 0
        receives = {end.position: end for end in self.ends[1]}
        return [(send, receives[send.position + shift]) for send in self.ends[0] if send.position + shift in receives]


def match(selection: Selection) -> Messages:
    """Return the messages of a selection.

    A request is in the window when it is so as a whole: the calls that start and complete it then are, too. Cost:
    O(calls of the chosen ranks), in the window or not, for order counts from the first message on.
    """
    channels: dict[tuple[int, tuple[int, int], int], _Channel] = defaultdict(_Channel)
    for index in selection.chosen:
        has_begun = False
        for call in _ends(merge(selection.all_calls(index), selection.outstanding(index), key=_begin)):
            has_begun = has_begun or not call.is_request
            receives = is_receive(call)
            if not (receives or is_send(call) or starts_send(call)):
                continue
            communicator = selection.communicators[call.communicator]
            peer = communicator.members.get(call.peer)
            if peer is None or communicator.is_between_groups or communicator.is_shared:
                continue
            ends = (peer, index) if receives else (index, peer)
            # The call that started a request may be one that a ring has lost.
            is_shown = has_begun and selection.holds(call) if call.is_request else selection.overlaps(call)
            is_shown = is_shown and call.number >= 0
            tag = ~call.tag if operation(call.function) in PARTITIONED else call.tag
            channels[call.communicator, ends, tag].add(receives, call, is_shown)
    messages = Messages()
    for (_, (sender, receiver), _), channel in channels.items():
        lost = [selection.everyone[index].recorded.dropped > 0 for index in (sender, receiver)]
        for send, receive in channel.pairs(any(lost)):
            message = Message(len(messages.all) + 1, send.bytes, sender, send.call, receiver, receive.call)
            messages.all.append(message)
            messages.sent[sender][send.call] = message
            messages.received[receiver][receive.call] = message
    return messages


def _ends(calls: Iterator[Call]) -> Iterator[Call]:
    """Return all calls but those that start a send whose request is among them: it begins in the same moment."""
    for _, group in groupby(calls, key=_begin):
        together = list(group)
        requests = Counter(_what(call) for call in together if call.is_request) if len(together) > 1 else Counter()
        for call in together:
            if requests[_what(call)] and starts_send(call):
                requests[_what(call)] -= 1
                # It counts as one that has begun.
                call = call._replace(peer=-1)
            yield call


def _begin(call: Call) -> int:
    return call.begin_ns


def _what(call: Call) -> tuple[str, int, int, int]:
    return call.function, call.communicator, call.peer, call.tag
