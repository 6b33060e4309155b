// What a call does to requests: those that it makes, starts, completes, frees. The part of call.hpp that follows them.
#pragma once

#include "palmette/record/call.hpp"

namespace palmette::record {

inline void Call::follow(std::uint32_t plan) {
    if (request_ == MPI_REQUEST_NULL) return;
    trace::RequestEntry* const entry = recorder_->requests().claim(request_);
    if (!entry) [[unlikely]] {
        recorder_->count_unfollowed();
        if (sending_) recorder_->count_uncounted();
        return;
    }
    // After it readers see that this is no other request's any more.
    std::atomic_thread_fence(std::memory_order_release);
    const bool persistent = made_persistent_ != trace::Persistent::no;
    entry->ticks.store(persistent ? 0 : matched_ticks_ != 0 ? matched_ticks_ : begin_, std::memory_order_relaxed);
    // Of MPI_Isendrecv the call sends and its request receives, as of MPI_Sendrecv.
    entry->bytes = receives_ ? received_bytes_ : bytes_;
    entry->instance = instance_;
    entry->path = path_;
    entry->function = function_;
    entry->communicator = communicator_;
    entry->peer = receives_ ? received_from_ : peer_;
    entry->tag = receives_ ? received_tag_ : tag_;
    entry->persistent = made_persistent_;
    entry->plan = plan;
    entry->waited_by.store(0, std::memory_order_relaxed);
    entry->cancelled.store(0, std::memory_order_relaxed);
    entry->maker = thread_->number;
    entry->made_record = static_cast<std::uint32_t>(thread_->recorded);  // that comes next
    if (persistent) recorder_->requests().keep_sending(entry, std::move(sending_));
    recorder_->requests().publish(entry, request_);
    if (persistent) bytes_ = 0;  // the starts move them
}

inline void Call::keep(MPI_Request request, std::unique_ptr<PersistentSend> sending) {
    if (request == MPI_REQUEST_NULL) return;
    if (*this) {  // it will be followed
        sending_ = std::move(sending);
        return;
    }
    trace::RequestEntry* const entry = counter_->requests().claim(request);
    if (!entry) {
        counter_->count_uncounted();
        return;
    }
    std::atomic_thread_fence(std::memory_order_release);
    entry->ticks.store(0, std::memory_order_relaxed);
    entry->bytes = entry->instance = 0;
    entry->path = entry->plan = 0;
    entry->communicator = 0;
    entry->peer = nobody;
    entry->tag = 0;
    entry->persistent = trace::Persistent::unrecorded;
    entry->waited_by.store(0, std::memory_order_relaxed);
    entry->cancelled.store(0, std::memory_order_relaxed);
    entry->maker = 0;
    counter_->requests().keep_sending(entry, std::move(sending));
    counter_->requests().publish(entry, request);
}

inline void Call::keeps(MPI_Request request, MPI_Comm comm, int dest, std::int64_t count, MPI_Datatype type) {
    trace::PeerEntry* const to = dest < 0 ? nullptr : counter_->peer(comm, dest, *thread_);
    if (to)
        keep(request,
             std::make_unique<PersistentSend>(PersistentSend{trace::SentBy::messages, {{to, bytes_of(count, type)}}}));
}

inline void Call::keeps_for_neighbours(MPI_Request request, MPI_Comm comm, const Blocks& blocks) {
    auto sending = std::make_unique<PersistentSend>(PersistentSend{trace::SentBy::neighbours, {}});
    counter_->peers().for_neighbours(
        comm, blocks, [&](trace::PeerEntry& to, std::uint64_t bytes) { sending->parts.emplace_back(&to, bytes); });
    keep(request, std::move(sending));
}

inline void Call::keeps_exchange(MPI_Request request, MPI_Comm comm, const Blocks& blocks) {
    auto sending = std::make_unique<PersistentSend>(PersistentSend{trace::SentBy::exchanges, {}});
    counter_->peers().for_members(
        comm, blocks, [&](trace::PeerEntry& to, std::uint64_t bytes) { sending->parts.emplace_back(&to, bytes); });
    keep(request, std::move(sending));
}

inline void Call::add_request(const trace::RequestEntry& entry, std::uint64_t end, std::int32_t peer,
                              std::int32_t tag) {
    const std::uint64_t begin = entry.ticks.load(std::memory_order_relaxed);
    if (begin != 0)
        add(begin, end, entry.function, entry.communicator, entry.path, entry.plan, entry.bytes, peer, tag,
            entry.instance, true);
}

inline void Call::complete(trace::RequestEntry& entry, const MPI_Status* status) {
    int cancelled = 0;
    if (entry.cancelled.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        // Where nobody says so, it was: who cancels a request knows mostly that nothing comes.
        if (!status || PMPI_Test_cancelled(status, &cancelled) != MPI_SUCCESS) cancelled = 1;
        entry.cancelled.store(0, std::memory_order_relaxed);
    }
    if (cancelled != 0) {
        if (entry.persistent == trace::Persistent::no) recorder_->withdraw_message(entry);
        add_request(entry, end_, nobody, entry.tag);
    } else {
        std::int32_t peer = entry.peer, tag = entry.tag;
        if (peer == any_source && status && status->MPI_SOURCE != MPI_ANY_SOURCE) peer = status->MPI_SOURCE;
        if (tag == MPI_ANY_TAG && status) tag = status->MPI_TAG;
        if (entry.persistent != trace::Persistent::no && (peer == any_source || tag == MPI_ANY_TAG)) [[unlikely]]
            if (const auto source = recorder_->take_source(entry)) {
                if (peer == any_source) peer = source->peer;
                if (tag == MPI_ANY_TAG) tag = source->tag;
            }
        add_request(entry, end_, peer, tag);
    }
    // Another thread may have been given the handle already: what is removed is waited for until then, so that it isn't
    // taken for the other one.
    if (entry.persistent != trace::Persistent::no) {
        entry.ticks.store(0, std::memory_order_relaxed);
        entry.waited_by.store(0, std::memory_order_relaxed);
    } else {
        recorder_->requests().remove(&entry);
    }
}

inline void Call::completed(int index, const MPI_Status* status) {
    if (index < 0 || static_cast<std::size_t>(index) >= thread_->waited_count) return;
    trace::RequestEntry*& entry = thread_->waited[index];
    if (!entry) return;
    complete(*entry, status);
    entry = nullptr;
}

template <class List, class StatusOf>
void Call::stops_waiting(List list, bool succeeded, StatusOf status_of) {
    for (std::size_t at = 0; at < thread_->waited_count; ++at) {
        trace::RequestEntry* const entry = thread_->waited[at];
        if (!entry) continue;
        const int i = static_cast<int>(at);
        int done = 0;
        if (entry->persistent == trace::Persistent::no)
            done = list[i] == MPI_REQUEST_NULL ? 1 : 0;
        else if (!succeeded && entry->instance == 0)
            PMPI_Request_get_status(list[i], &done, MPI_STATUS_IGNORE);
        if (done != 0)
            complete(*entry, status_of(i));
        else
            entry->waited_by.store(0, std::memory_order_relaxed);
    }
    thread_->waited_count = 0;
}

template <class List>
void Call::noticed(List list, int index, const MPI_Status* status) {
    if (!status || !list || status->MPI_SOURCE == MPI_ANY_SOURCE) return;  // empty: it isn't started
    trace::RequestEntry* const entry = recorder_->requests().find(list[index], 0);
    if (!entry || entry->persistent == trace::Persistent::no) return;
    if (entry->peer == any_source || entry->tag == MPI_ANY_TAG)
        recorder_->keep_source(*entry, {status->MPI_SOURCE, status->MPI_TAG});
}

template <class List>
void Call::starts(int count, List list) {
    if (count <= 0 || !list || !place_) return;  // inside of another one that may wait for some
    thread_->wait_for(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) thread_->waited[i] = counter_->requests().find(list[i], 0);
}

template <class List>
void Call::started(int count, List list) {
    if (!place_) return;
    const std::size_t known = std::exchange(thread_->waited_count, 0);
    if (!list) return;
    for (int i = 0; i < count && static_cast<std::size_t>(i) < known; ++i)
        if (trace::RequestEntry* entry = thread_->waited[i]) {
            if (!counter_->requests().is_under(entry, list[i])) [[unlikely]]
                entry = counter_->requests().move(entry, list[i]);
            if (!entry) {
                counter_->count_unfollowed();
                continue;
            }
            if (const PersistentSend* const sending = counter_->requests().sending(entry))
                for (const auto& [to, bytes] : sending->parts) counter_->add_sent(*to, sending->by, bytes);
            if (!*this || entry->persistent == trace::Persistent::unrecorded) continue;
            entry->plan = count == 1 ? thread_->plan : 0;
            entry->cancelled.store(0, std::memory_order_relaxed);
            entry->ticks.store(begin_, std::memory_order_relaxed);
            if (entry->peer == any_source || entry->tag == MPI_ANY_TAG) [[unlikely]]
                recorder_->take_source(*entry);
            if (entry->persistent == trace::Persistent::sends) bytes_ += entry->bytes;
        }
    thread_->plan = 0;
}

inline void Call::freed(bool succeeded) {
    if (!freed_) return;
    if (!succeeded) {
        freed_->waited_by.store(0, std::memory_order_relaxed);
        return;
    }
    // What is sent arrives, and what is received takes its place among the others.
    const bool cancelled = freed_->cancelled.load(std::memory_order_relaxed) != 0;
    if (*this) add_request(*freed_, end_, cancelled ? nobody : freed_->peer, freed_->tag);
    counter_->requests().remove(freed_);
}

inline void Call::ends_all() {
    recorder_->requests().for_each_started([&](trace::RequestEntry& entry) {
        const bool cancelled = entry.cancelled.load(std::memory_order_relaxed) != 0;
        add_request(entry, end_, cancelled ? nobody : entry.peer, entry.tag);
        entry.ticks.store(0, std::memory_order_relaxed);
    });
}

}  // namespace palmette::record
