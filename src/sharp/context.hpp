// A process's part of a job of the twin's, and of its groups: memberships of an aggregation daemon.
//
//   SHARP_TWIN_DAEMON=HOST:PORT   the daemon
//   SHARP_TWIN_TOKEN=FILE         a token of its site, read by rank 0 of the job
//   SHARP_TWIN_STRICT=1           fields that must be zero are checked
//   SHARP_TWIN_STATISTICS=1       what was registered is told on standard error at the end
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "palmette/aggregate/client/client.hpp"
#include "palmette/aggregate/sharp/api.hpp"
#include "sharp/exchange.hpp"
#include "sharp/faults.hpp"

namespace palmette::sharp_twin {

/// A nonblocking operation: one or several of the daemon's.
struct Request {
    aggregate::sharp::Comm* comm = nullptr;
    std::vector<aggregate::Operation> operations;
    std::size_t posted = 0;
    std::uint32_t last = 0;  ///< number of the last one that was posted
    int code = 0;
    bool spoilt = false;  ///< the result is to be wrong
    bool complete = false;
};

}  // namespace palmette::sharp_twin

namespace palmette::aggregate::sharp {

struct Context {
    std::mutex mutex;
    int rank = 0, size = 1;
    OutOfBandCalls calls{};
    sharp_twin::Opening opening;
    sharp_twin::Faults faults;
    bool strict = false;
    std::vector<Comm*> comms;
    std::map<std::uintptr_t, std::pair<const char*, std::size_t>> registered;  ///< by handle: memory and its bytes
    std::uintptr_t registrations = 0;                                          ///< so far
};

struct Comm {
    Context* context = nullptr;
    int rank = 0, size = 1;
    std::unique_ptr<Client> client;
    std::deque<sharp_twin::Request*> waiting;  ///< not posted, or not complete
};

}  // namespace palmette::aggregate::sharp

namespace palmette::sharp_twin {

using aggregate::sharp::Comm;
using aggregate::sharp::Context;

/// They return an Error.
int make_context(const aggregate::sharp::InitSpec& spec, Context** out);
int make_comm(Context& context, const aggregate::sharp::CommSpec& spec, Comm** out);
void describe(const Context& context, aggregate::sharp::Capabilities& out);

/// Moves the operations of a group.
void progress(Comm& comm);

/// The Error for what a daemon or its client says.
int error_of(aggregate::Reason reason);

}  // namespace palmette::sharp_twin
