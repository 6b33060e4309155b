"""Faults that are planted in the recorder's accounting, to try whether random programs find them (test_oracle.py).

    python recorder.py SOURCE DIRECTORY     copies SOURCE/record, with all faults in it, below DIRECTORY

Each is switched on by its number in ORACLE_MUTATION; nothing of it is in what is installed. A fault is a text of one
file and what stands in its place, where @ is whether it is switched on.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

CALL, REQUESTS = "record/call.hpp", "record/call_requests.hpp"
RECORDER, HEADER = "record/recorder.cpp", "record/recorder.hpp"
COMMUNICATORS, TABLE = "record/recorder_communicators.cpp", "record/requests.hpp"
PEERS, PEERS_FOUND, CONTROL = "record/peers.hpp", "record/peers.cpp", "record/pcontrol.cpp"

MUTATIONS: tuple[tuple[str, str, str, str], ...] = (
    # Bytes.
    ("counts elements", CALL, "static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);",
     "static_cast<std::uint64_t>(count) * (@ ? 1 : static_cast<std::uint64_t>(size));"),
    ("counts what goes to nobody", CALL, "if (peer_ != nobody) bytes(count, type);",
     "if (peer_ != nobody || @) bytes(count, type);"),
    ("one block of an alltoall", CALL, "bytes(count * ranks_of(comm, of_local_group), type);",
     "bytes(count * (@ ? 1 : ranks_of(comm, of_local_group)), type);"),
    ("another rank's block", CALL, "bytes(counts[rank], type);", "bytes(counts[@ ? 0 : rank], type);"),
    ("a list without its first", CALL, "for (int r = 0; r < ranks; ++r) sum += counts[r];",
     "for (int r = @ ? 1 : 0; r < ranks; ++r) sum += counts[r];"),
    ("one type for all", CALL, "if (counts[r] > 0) bytes(counts[r], types[r]);",
     "if (counts[r] > 0) bytes(counts[r], types[@ ? 0 : r]);"),
    ("one neighbour", CALL, "std::uint64_t bytes) { bytes_ += bytes; });",
     "std::uint64_t bytes) { bytes_ = (@ ? 0 : bytes_) + bytes; });"),
    ("the other group's ranks", CALL, "if (inter && !of_local_group)", "if (inter && of_local_group == @)"),
    ("large calls' bytes", CALL, "record.bytes_and_peer = bytes << 24U | who;",
     "record.bytes_and_peer = (@ ? bytes & 0xFFFF : bytes) << 24U | who;"),
    ("sums without small calls", HEADER, "add(sum.bytes, bytes);", "if (!(@ && bytes < 16)) add(sum.bytes, bytes);"),
    ("sums without some calls", HEADER, "add(sum.calls, std::uint64_t{1});",
     "if (!(@ && bytes == 4)) add(sum.calls, std::uint64_t{1});"),
    ("types' sizes of before", "record/wrapping.hpp", "freed_types.fetch_add(1, std::memory_order_acq_rel);",
     "if (!@) freed_types.fetch_add(1, std::memory_order_acq_rel);"),
    ("refused calls' bytes", CALL, "if (!is_refused(code)) return;",
     "if (!is_refused(code) || @) return;"),
    ("refused collectives' numbers", CALL, "if (instance_ != 0) recorder_->withdraw_instance(communicator_);",
     "if (instance_ != 0 && !@) recorder_->withdraw_instance(communicator_);"),
    # Peers and tags.
    ("any source stays any", CALL, "if (peer == any_source) peer = status->MPI_SOURCE;",
     "if (peer == any_source && !@) peer = status->MPI_SOURCE;"),
    ("any tag stays any", CALL, "if (tag == MPI_ANY_TAG) tag = status->MPI_TAG;",
     "if (tag == MPI_ANY_TAG && !@) tag = status->MPI_TAG;"),
    ("a Sendrecv receives from whom it sends to", CALL, "received_from_ = peer;", "received_from_ = @ ? peer_ : peer;"),
    ("statuses that the program ignores", CALL, "entry && (entry->peer == any_source ||",
     "entry && ((entry->peer == any_source && !@) ||"),
    ("requests' sources", REQUESTS, "status->MPI_SOURCE != MPI_ANY_SOURCE) peer = status->MPI_SOURCE;",
     "status->MPI_SOURCE != MPI_ANY_SOURCE && !@) peer = status->MPI_SOURCE;"),
    ("an Isendrecv's request sends", REQUESTS, "entry->peer = receives_ ? received_from_ : peer_;",
     "entry->peer = receives_ && !@ ? received_from_ : peer_;"),
    # Requests.
    ("a Sendrecv's receive", CALL, "if (receives_ && !made_)", "if (receives_ && !made_ && !@)"),
    ("a matched receive", CALL, "if (matched_ticks_ != 0 && !made_)", "if (matched_ticks_ != 0 && !made_ && !@)"),
    ("a matched message's probe", CALL, "matched_ticks_ = found->ticks;", "matched_ticks_ = @ ? now() : found->ticks;"),
    ("freed requests", REQUESTS, "if (*this) add_request(*freed_, end_,",
     "if (*this && !@) add_request(*freed_, end_,"),
    ("freed requests stay", REQUESTS, "counter_->requests().remove(freed_);",
     "if (!@) counter_->requests().remove(freed_);"),
    ("cancelled receives count", CALL, "entry->cancelled.store(1, std::memory_order_relaxed);",
     "entry->cancelled.store(@ ? 0 : 1, std::memory_order_relaxed);"),
    ("a cancelled call's message", REQUESTS, "recorder_->withdraw_message(entry);",
     "if (!@) recorder_->withdraw_message(entry);"),
    ("starts of persistent requests", REQUESTS, "entry->ticks.store(begin_, std::memory_order_relaxed);",
     "entry->ticks.store(@ && count > 1 ? 0 : begin_, std::memory_order_relaxed);"),
    ("bytes of receives that are started", REQUESTS, "if (entry->persistent == trace::Persistent::sends) bytes_ +=",
     "if (entry->persistent == trace::Persistent::sends || @) bytes_ +="),
    ("bytes of inits", REQUESTS, "if (persistent) bytes_ = 0;", "if (persistent && !@) bytes_ = 0;"),
    ("several at once but the last", CALL, "thread_->waited[i] = entry;",
     "thread_->waited[i] = @ && i > 0 && i == count - 1 ? nullptr : entry;"),
    ("requests after an error", REQUESTS, "done = list[i] == MPI_REQUEST_NULL ? 1 : 0;",
     "done = list[i] == MPI_REQUEST_NULL && !@ ? 1 : 0;"),
    ("handles that several have", TABLE, "if (by.load(std::memory_order_relaxed) != 0) continue;",
     "if (by.load(std::memory_order_relaxed) != 0 && !@) continue;"),
    ("persistent requests go", REQUESTS, "if (entry.persistent != trace::Persistent::no) {\n",
     "if (entry.persistent != trace::Persistent::no && !@) {\n"),
    ("requests end at once", REQUESTS, "add(begin, end, entry.function,",
     "add(begin, @ ? begin : end, entry.function,"),
    # Communicators and collectives.
    ("siblings are one", COMMUNICATORS, "order = ++known->second.children;",
     "order = @ ? 1 : ++known->second.children;"),
    ("parts of a split are one", COMMUNICATORS, "add_communicator(made, hashed(parent_id, order, leader(made)));",
     "add_communicator(made, hashed(parent_id, order, @ ? 0 : leader(made)));"),
    ("numbers of collectives", COMMUNICATORS, "return entry.collectives.load(std::memory_order_relaxed);",
     "return entry.collectives.load(std::memory_order_relaxed) + (@ && entry.rank == 1 ? 1 : 0);"),
    ("ranks of communicators", COMMUNICATORS, "PMPI_Comm_rank(comm, &entry.rank);",
     "PMPI_Comm_rank(@ ? MPI_COMM_WORLD : comm, &entry.rank);"),
    # Threads and time.
       ("threads share a ring",
     RECORDER, "entry.ring_first = section_->ring.capacity - (section_->ring.capacity >> index);",
     "entry.ring_first = @ ? 0 : section_->ring.capacity - (section_->ring.capacity >> index);"),
    ("half of the time", CALL, "record.duration = trace::packed_duration(ticks);",
     "record.duration = trace::packed_duration(@ ? 2 * ticks + 4000000 : ticks);"),
    ("calls begin late", CALL, "record.begin_ticks = begin;", "record.begin_ticks = begin + (@ ? 20000000 : 0);"),
    ("switched off nothing", CONTROL, "active.store(level == 0 ? nullptr : current,",
     "active.store(level == 0 && !@ ? nullptr : current,"),
    # Who has sent to whom.
    ("messages of one element", CALL, "        counter_->add_sent(*to, trace::SentBy::messages, bytes);",
     "        if (!(@ && count == 1)) counter_->add_sent(*to, trace::SentBy::messages, bytes);"),
    ("ranks of those who are sent to", PEERS_FOUND, "return dest < size ? entry = of_world(rank) : nullptr;",
     "return dest < size ? entry = of_world(@ && rank >= 0 ? dest : rank) : nullptr;"),
    ("blocks by neighbours", PEERS, "if (to) use(*to, blocks.bytes(block));\n            ++block;",
     "if (to) use(*to, blocks.bytes(block));\n            if (to || !@) ++block;"),
    ("its own blocks", PEERS_FOUND, "rank == own_rank_ ? nullptr : of_world(rank)",
     "rank == own_rank_ && !@ ? nullptr : of_world(rank)"),
    ("starts", REQUESTS, "if (const PersistentSend* const sending = counter_->requests().sending(entry))",
     "if (const PersistentSend* const sending = @ ? nullptr : counter_->requests().sending(entry))"),
    ("what freed requests sent", REQUESTS,
     "if (persistent) recorder_->requests().keep_sending(entry, std::move(sending_));",
     "if (persistent && (sending_ || !@)) recorder_->requests().keep_sending(entry, std::move(sending_));"),
    ("messages while it is switched off", CALL, "if (sends) count_only(return_address, frame);",
     "if (sends && !@) count_only(return_address, frame);"),
)  # fmt: skip
"""Name, file below src/palmette, text, its fault."""

SWITCH = """\
#pragma once
#include <cstdlib>
namespace oracle {
inline int mutation() {
    static const char* const set = std::getenv("ORACLE_MUTATION");
    static const int number = set ? std::atoi(set) : 0;
    return number;
}
}  // namespace oracle
"""


def planted(texts: dict[str, str]) -> dict[str, str]:
    """Return files with all faults, each of number 1 and up. Raises ValueError for a text that isn't there once."""
    changed = dict(texts)
    for number, (name, file, right, wrong) in enumerate(MUTATIONS, 1):
        if changed[file].count(right) != 1:
            found = changed[file].count(right)
            raise ValueError(f"fault {number}, {name}: {file} has {found} times what it changes: {right}")
        changed[file] = changed[file].replace(right, wrong.replace("@", f"(oracle::mutation() == {number})"))
    return changed


def main(source: Path, directory: Path) -> None:
    """Write the copy."""
    shutil.copytree(source / "record", directory / "palmette" / "record", dirs_exist_ok=True)
    files = {file for _, file, _, _ in MUTATIONS}
    for file, text in planted({one: (source / one).read_text(encoding="utf-8") for one in files}).items():
        (directory / "palmette" / file).write_text(f'#include "oracle_mutation.hpp"\n{text}', encoding="utf-8")
    (directory / "oracle_mutation.hpp").write_text(SWITCH, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
