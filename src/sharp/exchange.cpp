#include "sharp/exchange.hpp"

#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "palmette/aggregate/frame_stream.hpp"
#include "palmette/base/error.hpp"

namespace palmette::sharp_twin {

using namespace aggregate;
using namespace aggregate::sharp;

namespace {

/// The daemon's limits, which it says to whoever connects.
bool greet(const Address& address, Hello& hello) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::seconds(5);
    Detail detail;
    const Fd fd = begin_connect(address, detail);
    FrameReader reader;
    while (fd && Clock::now() < end) {
        const int status = connect_status(fd.get());
        pollfd waiting{fd.get(), static_cast<short>(status == EINPROGRESS ? POLLOUT : POLLIN), 0};
        if (status != 0 && status != EINPROGRESS) return false;
        if (status == 0) {
            const FrameReader::Progress now = reader.advance(fd.get());
            if (now == FrameReader::Progress::header) {
                reader.accept(reader.control());
                continue;
            }
            if (now == FrameReader::Progress::frame)
                return reader.header().type == FrameType::hello && hello.read(reader.payload());
            if (now != FrameReader::Progress::waiting) return false;
        }
        poll(&waiting, 1, 100);
    }
    return false;
}

}  // namespace

Opening open_daemon() {
    Opening out;
    const char* const daemon = std::getenv("SHARP_TWIN_DAEMON");
    const char* const path = std::getenv("SHARP_TWIN_TOKEN");
    if (!daemon || !path) {
        out.error = error_session;
        return out;
    }
    try {
        const Token token = read_token(path);
        out.key = token.key;
        out.token_bytes = static_cast<std::uint32_t>(std::min(token.text.size(), out.token.size()));
        std::memcpy(out.token.data(), token.text.data(), out.token_bytes);
    } catch (const std::exception&) {
        out.error = error_job_create;
        return out;
    }
    try {
        const Address address = numeric(Address::read(daemon));
        const std::string text =
            base::cat(address.host.find(':') == std::string::npos ? address.host : base::cat("[", address.host, "]"),
                      ":", address.port);
        if (text.size() < out.daemon.size()) std::memcpy(out.daemon.data(), text.data(), text.size());
        Hello hello;
        if (!greet(address, hello)) {
            out.error = error_no_tree;
            return out;
        }
        out.most_slots = hello.most_slots;
        out.most_datagram_bytes = hello.most_datagram_bytes;
        out.most_stream_bytes = hello.most_stream_bytes;
        out.sharp_types = hello.sharp_types;
    } catch (const std::exception&) {
        out.error = error_device;
    }
    return out;
}

int OutOfBand::bcast(void* data, std::size_t bytes) const {
    if (const int code = faults_.at("oob", rank_)) return code;
    return calls_.bcast(context_, data, static_cast<int>(bytes), 0) == 0 ? success : error_out_of_band;
}

int OutOfBand::barrier() const {
    if (const int code = faults_.at("oob", rank_)) return code;
    return calls_.barrier(context_) == 0 ? success : error_out_of_band;
}

int OutOfBand::gather_ranks(int rank, int size, bool& good) const {
    if (const int code = faults_.at("oob", rank_)) return code;
    std::vector<int> all(rank == 0 ? static_cast<std::size_t>(size) : 0);
    if (calls_.gather(context_, 0, &rank, all.data(), sizeof rank) != 0) return error_out_of_band;
    good = true;
    for (std::size_t i = 0; i < all.size(); ++i) good = good && all[i] == static_cast<int>(i);
    return success;
}

}  // namespace palmette::sharp_twin
