#include "sharp/context.hpp"

#include <cstdlib>
#include <cstring>

#include "palmette/base/error.hpp"

namespace palmette::sharp_twin {

using namespace aggregate;
using namespace aggregate::sharp;

namespace {

/// What rank 0 of a group tells its other members.
struct Meeting {
    int error = 0;
    Invitation invitation;
};

constexpr Shape usual_shape{Mode::datagram, 0, 8, 16384};

}  // namespace

int error_of(Reason reason) {
    switch (reason) {
        case Reason::none:
            return success;
        case Reason::connect:
        case Reason::closed:
        case Reason::silent:
            return error_tree_connect;
        case Reason::authentication:
        case Reason::version:
        case Reason::machine:
            return error_job_create;
        case Reason::quota:
            return error_quota;
        case Reason::no_resource:
            return error_no_resource;
        case Reason::stream_lock:
            return error_lock_failed;
        case Reason::unsupported:
            return error_unsupported;
        case Reason::unknown_group:
        case Reason::member_taken:
        case Reason::old_epoch:
        case Reason::late_join:
            return error_group_join;
        default:
            return error_general;
    }
}

int make_context(const InitSpec& spec, Context** out) {
    auto context = std::make_unique<Context>();
    context->rank = spec.world_rank;
    context->size = spec.world_size;
    context->calls = spec.out_of_band;
    context->faults = Faults::from_environment();
    const char* const strict = std::getenv("SHARP_TWIN_STRICT");
    context->strict = strict && *strict == '1';
    if (context->strict)
        for (const int field : spec.reserved)
            if (field != 0) return error_invalid;
    if (spec.world_local_rank != 0 || spec.world_size < 2) return error_invalid;
    if (const int code = context->faults.at("init", context->rank)) return code;
    const OutOfBand others(context->calls, spec.out_of_band_context, context->faults, context->rank);
    bool good = false;
    if (const int code = others.gather_ranks(context->rank, context->size, good)) return code;
    if (context->rank == 0) {
        context->opening = open_daemon();
        if (!good) context->opening.error = error_invalid;
    }
    if (const int code = others.bcast(&context->opening, sizeof context->opening)) return code;
    if (context->opening.error != 0) return context->opening.error;
    if (const int code = others.barrier()) return code;
    if (const int code = context->faults.at("init_end", context->rank)) return code;
    *out = context.release();
    return success;
}

int make_comm(Context& context, const CommSpec& spec, Comm** out) {
    if (context.strict && (spec.reserved[0] != 0 || spec.reserved[1] != 0)) return error_invalid;
    if (const int code = context.faults.at("comm_init", context.rank)) return code;
    const OutOfBand others(context.calls, spec.out_of_band_context, context.faults, context.rank);
    const Opening& opening = context.opening;
    Token token;
    token.text.assign(opening.token.data(), opening.token_bytes);
    token.key = opening.key;
    Meeting meeting;
    if (spec.rank == 0) {
        std::uint64_t group = 0;
        const auto made = fill_random(&group, sizeof group) ? invite(token, group, 1) : std::optional<Invitation>();
        if (made)
            meeting.invitation = *made;
        else
            meeting.error = error_general;
    }
    if (const int code = others.bcast(&meeting, sizeof meeting)) return code;
    if (meeting.error != 0) return meeting.error;
    if (const int code = others.barrier()) return code;  // nobody waits at the daemon for one that doesn't come
    auto comm = std::make_unique<Comm>();
    comm->context = &context;
    comm->rank = spec.rank;
    comm->size = spec.size;
    Membership membership;
    membership.daemon = Address::read(opening.daemon.data());
    membership.invitation = meeting.invitation;
    membership.levels.count = 1;
    membership.levels.at[0] = {static_cast<std::uint16_t>(spec.size), static_cast<std::uint16_t>(spec.rank)};
    membership.shape = usual_shape;
    membership.fits_limits = true;
    membership.token = token;
    comm->client = std::make_unique<Client>(membership, Timeouts{5000, 1000, 5000, 10000});
    comm->client->start();
    while (!comm->client->ready() && !comm->client->failed()) comm->client->wait(100);
    if (comm->client->failed()) return error_of(comm->client->reason());
    if (const int code = others.barrier()) return code;
    if (const int code = context.faults.at("comm_init_end", context.rank)) return code;
    context.comms.push_back(comm.get());
    *out = comm.release();
    return success;
}

void describe(const Context& context, Capabilities& out) {
    const auto bit = [](int number) { return std::uint64_t{1} << number; };
    out = {};
    out.packet_version = 1;
    for (int type = type_uint32; type <= type_float16; ++type) out.mask.types |= bit(type);
    if (context.opening.sharp_types == 0)
        for (const int type : {type_bfloat16, type_uint8, type_int8}) out.mask.types |= bit(type);
    for (const int op : {op_max, op_min, op_sum, op_land, op_band, op_lor, op_bor, op_lxor, op_bxor})
        out.mask.ops |= bit(op);
    out.mask.features = feature_datagram | feature_reproducible;
    if (context.opening.most_stream_bytes > 0) out.mask.features |= feature_streaming;
    out.resources.most_osts = static_cast<int>(context.opening.most_slots);
    out.resources.bytes_per_ost = static_cast<int>(context.opening.most_datagram_bytes);
    out.resources.most_groups = 256;
    out.resources.most_group_channels = 1;
    out.resources.osts_per_group = usual_shape.slots;
}

void progress(Comm& comm) {
    Client& client = *comm.client;
    client.progress();
    for (Request* request : comm.waiting) {
        while (request->code == 0 && request->posted < request->operations.size()) {
            const Reason reason = client.post(request->operations[request->posted], request->last);
            if (reason == Reason::no_resource) return;
            if (reason == Reason::none)
                ++request->posted;
            else
                request->code = error_of(reason);
        }
    }
    while (!comm.waiting.empty()) {
        Request& oldest = *comm.waiting.front();
        // Results that have come count, also where a member has left since.
        const bool done = oldest.posted == oldest.operations.size() && client.done(oldest.last);
        if (oldest.code == 0 && !done) {
            if (!client.failed()) return;
            oldest.code = error_of(client.reason());
        }
        oldest.complete = true;
        comm.waiting.pop_front();
    }
}

}  // namespace palmette::sharp_twin
