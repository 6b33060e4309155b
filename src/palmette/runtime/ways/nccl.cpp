#include "palmette/runtime/ways/nccl.hpp"

#include <memory>
#include <vector>

#include "palmette/base/text.hpp"
#include "palmette/device/loaded.hpp"
#include "palmette/runtime/data/call_arguments.hpp"
#include "palmette/runtime/data/datatype.hpp"
#include "palmette/runtime/data/on_device.hpp"
#include "palmette/runtime/data/operation.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/state/process.hpp"

namespace palmette::runtime {
namespace {

using device::Nccl;
using select::Function;

/// Bytes of a block, which all ranks know alike: of the whole vector where one is reduced or broadcast, or the mean.
/// 0: there is nothing to do, or the MPI must check the arguments.
std::int64_t block_bytes(const CallArguments& arguments, int ranks) {
    const Side& side = arguments.recv;
    TypeShape shape;
    if (!size_of(side.type, shape) || shape.size <= 0) return 0;
    if (side.form == Side::Form::alike) return side.count > 0 ? side.count * shape.size : 0;
    if (!side.counts) return 0;
    std::int64_t total = 0;
    for (int r = 0; r < ranks; ++r) {
        if (side.counts[r] < 0) return 0;
        total += side.counts[r];
    }
    return total * shape.size / ranks;
}

/// A call as NCCL gets it.
class DeviceCall {
  public:
    DeviceCall(const CallArguments& arguments, const Communicator& state, bool reproducible)
        : call_(arguments), rank_(state.rank()), ranks_(state.size()), reproducible_(reproducible) {}

    /// This rank's part; null: it can't take part.
    const NcclRanks::Part* part(const OnDevice* device) {
        if (!device || (needs_root() && (call_.root < 0 || call_.root >= ranks_)) || !describe(*device)) return nullptr;
        return &part_;
    }

  private:
    bool needs_root() const { return call_.function == Function::reduce || call_.function == Function::bcast; }

    bool describe(const OnDevice& device) {
        switch (call_.function) {
            case Function::bcast:
                return bcast(device);
            case Function::allgather:
            case Function::alltoall:
                return moves(device);
            default:
                return reduces(device);
        }
    }

    /// Where an argument lies on the device. False: it isn't there.
    bool find(const OnDevice& device, const void* host, const char*& found) {
        const bool in_send = device.send_staging().holds(static_cast<const char*>(host));
        if (!in_send && !device.recv_staging().holds(static_cast<const char*>(host))) return false;
        found = device.on_device(static_cast<char*>(const_cast<void*>(host)), in_send);
        const device::Place& place = (in_send ? device.send_staging() : device.recv_staging()).place();
        if (placed_ && !same_queue(part_.place, place)) return false;
        placed_ = true;
        part_.place = place;
        return true;
    }
    /// Bytes without holes; -1: there are some.
    static std::int64_t dense_bytes(const Side& side) {
        TypeShape shape;
        if (side.count < 0 || !size_of(side.type, shape) || complete(side.type, shape) != MPI_SUCCESS || !shape.dense)
            return -1;
        return side.count * shape.size;
    }
    static bool overlap(const char* a, std::int64_t a_bytes, const char* b, std::int64_t b_bytes) {
        return a < b + b_bytes && b < a + a_bytes;
    }
    void put_result(const char* to, std::int64_t bytes) {
        part_.scratch = bytes;
        part_.result = const_cast<char*>(to);
    }

    bool bcast(const OnDevice& device) {
        const char* buffer = nullptr;
        const std::int64_t bytes = dense_bytes(call_.recv);
        if (bytes <= 0 || !find(device, call_.recv.buffer, buffer)) return false;
        part_.bytes = bytes;
        part_.add = [=, root = call_.root](Nccl& nccl, void*) {
            nccl.broadcast(buffer, const_cast<char*>(buffer), bytes, root);
        };
        return true;
    }

    bool moves(const OnDevice& device) {
        const bool in_place = call_.send.in_place(), gathers = call_.function == Function::allgather;
        const std::int64_t bytes = dense_bytes(call_.recv), all = bytes * ranks_, sent = gathers ? bytes : all;
        const char *from = nullptr, *to = nullptr;
        if (bytes <= 0 || !find(device, call_.recv.buffer, to)) return false;
        if (!in_place && (dense_bytes(call_.send) != bytes || !find(device, call_.send.buffer, from) ||
                          overlap(from, sent, to, all)))
            return false;
        part_.bytes = all;
        if (gathers) {
            if (in_place) from = to + rank_ * bytes;
            part_.add = [=](Nccl& nccl, void*) { nccl.all_gather(from, const_cast<char*>(to), bytes); };
            return true;
        }
        if (in_place) {
            from = to;
            put_result(to, all);
        }
        part_.add = [=, ranks = ranks_](Nccl& nccl, void* scratch) {
            char* const target = scratch ? static_cast<char*>(scratch) : const_cast<char*>(to);
            for (int r = 0; r < ranks; ++r) {
                nccl.send(from + r * bytes, bytes, r);
                nccl.receive(target + r * bytes, bytes, r);
            }
        };
        return true;
    }

    bool reduces(const OnDevice& device) {
        const Operation operation(call_.op, call_.recv.type, call_.comm);
        if (!operation.valid() || !operation.known() || !operation.layout().dense() ||
            (reproducible_ && !operation.exact()))
            return false;
        const auto op = device::nccl_operator(operation.known()->op);
        const auto type = device::nccl_type(operation.known()->element);
        if (!op || !type) return false;
        const std::int64_t unit = operation.layout().extent;
        const bool in_place = call_.send.in_place();
        const bool scatters = call_.function != Function::allreduce && call_.function != Function::reduce;
        const bool receives = call_.function != Function::reduce || rank_ == call_.root;
        std::vector<std::int64_t> counts;
        std::int64_t total = call_.recv.count, own = call_.recv.count;
        bool alike = true;
        if (scatters) {
            total = 0;
            for (int r = 0; r < ranks_; ++r) {
                counts.push_back(call_.recv.form == Side::Form::alike ? call_.recv.count : call_.recv.counts[r]);
                alike = alike && counts.back() == counts.front();
                total += counts.back();
            }
            own = counts[static_cast<std::size_t>(rank_)];
        }
        const char *from = nullptr, *to = nullptr;
        if (in_place && !receives) return false;
        // An empty result's buffer isn't looked at.
        if (receives && own > 0 && !find(device, call_.recv.buffer, to)) return false;
        if (in_place && !to && !find(device, call_.recv.buffer, to)) return false;
        if (!in_place &&
            (!find(device, call_.send.buffer, from) || (to && overlap(from, total * unit, to, own * unit))))
            return false;
        if (in_place) {
            from = to;
            if (own > 0) put_result(to, own * unit);
        }
        part_.bytes = total * unit;
        part_.add = [=, function = call_.function, root = call_.root](Nccl& nccl, void* scratch) {
            char* const target = scratch ? static_cast<char*>(scratch) : const_cast<char*>(to);
            if (function == Function::allreduce) return nccl.all_reduce(from, target, total, *type, *op);
            if (function == Function::reduce) return nccl.reduce(from, target, total, *type, *op, root);
            if (alike) return nccl.reduce_scatter(from, target, own, *type, *op);
            std::int64_t at = 0;
            for (std::size_t r = 0; r < counts.size(); at += counts[r++])
                if (counts[r] > 0) nccl.reduce(from + at * unit, target, counts[r], *type, *op, static_cast<int>(r));
        };
        return true;
    }

    const CallArguments& call_;
    int rank_, ranks_;
    bool reproducible_, placed_ = false;
    NcclRanks::Part part_;
};

}  // namespace

bool ByNccl::has(Function function) {
    switch (function) {
        case Function::allreduce:
        case Function::reduce:
        case Function::bcast:
        case Function::allgather:
        case Function::reduce_scatter:
        case Function::reduce_scatter_block:
        case Function::alltoall:
            return true;
        default:
            return false;
    }
}

bool ByNccl::is_offered(Communicator& state, const Settings& settings) {
    return settings.device_path == Settings::DevicePath::nccl && !state.kept().find<ByNccl>() &&
           device::driver_loaded() && device::find_nccl(settings.nccl);
}

void ByNccl::begin(Communicator& state, const Settings& settings) {
    ByNccl& made = state.kept().add(std::make_unique<ByNccl>(state, std::chrono::seconds(settings.nccl_timeout_s)));
    state.set_early_way(&made);
    close_bypasses();
}

std::optional<int> ByNccl::serve(const CallArguments& arguments) {
    Process& process = Process::instance();
    const Settings& settings = state_.settings(process.settings());
    if (!looks_at(arguments.function) || settings.forced[static_cast<std::size_t>(arguments.function)])
        return std::nullopt;
    const std::int64_t bytes = block_bytes(arguments, state_.size());
    if (bytes < ranks_.least_bytes()) return std::nullopt;
    OnDevice* const device = OnDevice::current();
    DeviceCall on_device(arguments, state_, settings.reproducible);
    const double begin_s = PMPI_Wtime();
    const NcclRanks::Outcome outcome = ranks_.run(on_device.part(device));
    if (!ranks_.in_service() && !ranks_.why().empty())
        process.report().note(
            base::cat("NCCL isn't used any more by a communicator of ", state_.size(), " ranks: ", ranks_.why()));
    if (outcome == NcclRanks::Outcome::not_tried || outcome == NcclRanks::Outcome::failed) return std::nullopt;
    device->set_in_place();
    Report::ServedRow& row =
        process.report().served_row(arguments.function, bytes, "nccl", "all buffers are on devices", true);
    row.calls.add(state_.leads());
    if (process.observers().of_calls()) process.report().timed(row, PMPI_Wtime() - begin_s);
    if (outcome == NcclRanks::Outcome::done) return MPI_SUCCESS;
    PMPI_Comm_call_errhandler(arguments.comm, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

}  // namespace palmette::runtime
