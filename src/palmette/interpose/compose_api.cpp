// C API of compositions: the functions of palmette.h.
#include "palmette/interpose/palmette.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/compose/named.hpp"
#include "palmette/interpose/api.hpp"
#include "palmette/interpose/settings.hpp"
#include "palmette/runtime/composed/composed.hpp"
#include "palmette/runtime/composed/sparse_sum.hpp"
#include "palmette/runtime/composed/unexpected.hpp"
#include "palmette/runtime/data/datatype.hpp"

using palmette::base::fail;
using palmette::base::Rank;
using palmette::compose::Composition;
using palmette::compose::Lengths;
using palmette::compose::RankSet;
using palmette::interpose::failed;
using palmette::interpose::guarded;
using palmette::interpose::last_error;
using palmette::interpose::non_null;
using palmette::runtime::ComposedPlan;
using palmette::runtime::ComposedRun;

struct palmette_composition {
    Composition made;
    MPI_Datatype type;
    std::vector<MPI_Op> ops;
};
struct palmette_plan {
    std::shared_ptr<const ComposedPlan> made;
};
struct palmette_sparse {
    std::unique_ptr<palmette::runtime::SparseSum> made;
};
struct palmette_arrivals {
    palmette::runtime::Arrivals made;
};
struct palmette_run {
    ComposedRun made;
    palmette_run(std::shared_ptr<const ComposedPlan> plan, const std::vector<void*>& buffers)
        : made(std::move(plan), buffers) {}
};

namespace {

/// From one element to the next.
std::int64_t extent_of(MPI_Datatype type) {
    MPI_Aint lower = 0, extent = 0;
    const auto combiner = palmette::runtime::combiner_of(type);
    if (!combiner || PMPI_Type_get_extent(type, &lower, &extent)) fail("the datatype is invalid");
    if (*combiner != MPI_COMBINER_NAMED)
        fail("the datatype isn't predefined; compose with MPI_BYTE, or with the type of its elements");
    if (extent < 1) fail("the datatype's extent isn't positive");
    return extent;
}

std::vector<std::int64_t> bytes_of(const std::int64_t* counts, std::int64_t length, std::int64_t extent) {
    if (length < 1) fail("length ", length, ": expected 1 or more counts");
    non_null(counts, "counts");
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < length; ++i) {
        if (counts[i] < 0 || counts[i] > INT64_MAX / extent) fail("counts[", i, "] is ", counts[i]);
        out.push_back(counts[i] * extent);
    }
    return out;
}

bool commutes(MPI_Op op) {
    int commutative = 0;
    if (op == MPI_OP_NULL || PMPI_Op_commutative(op, &commutative) != MPI_SUCCESS) fail("the operation is invalid");
    return commutative != 0;
}

RankSet set_of(const Composition& composition, const int* ranks, int count) {
    if (!ranks) return RankSet::all(composition.ranks());
    if (count < 1) fail("a set of ", count, " ranks; name at least one");
    return RankSet::of(std::vector<std::int32_t>(ranks, ranks + count));
}

palmette::plan::Buffer buffer_of(const Composition& composition, int number) {
    if (number < 0 || static_cast<std::size_t>(number) >= composition.buffers().size())
        fail("buffer ", number, " of ", composition.buffers().size(), "; make it with palmette_composition_buffer");
    return palmette::plan::caller_buffer(static_cast<std::size_t>(number));
}

std::string complaint_of(const ComposedRun& run) {
    if (!run.nccl_error().empty())
        return palmette::base::cat("NCCL isn't used any more by the communicator's plans: ", run.nccl_error());
    if (!run.device_error()) return "the MPI reports a communication error";
    return palmette::base::cat("a command of a device fails (", run.device_error(), ")");
}

}  // namespace

PALMETTE_API const char* palmette_error(void) { return last_error().c_str(); }

PALMETTE_API int palmette_composition_create(int ranks, int64_t blocks, const int64_t* counts, int64_t length,
                                             MPI_Datatype type, palmette_composition** out) {
    return guarded([&] {
        non_null(out, "out");
        const std::int64_t extent = extent_of(type);
        std::vector<std::int64_t> bytes = bytes_of(counts, length, extent);
        if (blocks < 1 || (length != 1 && length != blocks)) fail(length, " counts for ", blocks, " blocks");
        Lengths lengths = length == 1 ? Lengths::uniform(blocks, bytes.front()) : Lengths::list(std::move(bytes));
        *out = new palmette_composition{Composition(ranks, std::move(lengths), extent), type, {}};
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_composition_named(const char* name, int ranks, int root, const int64_t* counts,
                                            int64_t length, MPI_Datatype type, MPI_Op op, palmette_composition** out) {
    return guarded([&] {
        non_null(name, "name");
        non_null(out, "out");
        const auto& rows = palmette::compose::named();
        const auto row =
            std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.name == std::string(name); });
        const bool reduces = row != rows.end() && row->reduces;
        palmette::compose::NamedRequest request;
        request.ranks = ranks;
        request.root = Rank{root};
        request.element_bytes = extent_of(type);
        request.bytes = bytes_of(counts, length, request.element_bytes);
        request.operation = {name, reduces ? commutes(op) : true};
        auto made = std::make_unique<palmette_composition>(
            palmette_composition{palmette::compose::compose(name, request), type, {}});
        // A scatter's reductions have one source each: any operation would do.
        made->ops.assign(made->made.operations().size(), reduces ? op : MPI_OP_NULL);
        *out = made.release();
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_composition_buffer(palmette_composition* composition, const char* name, int* number) {
    return guarded([&] {
        const auto buffer = non_null(composition, "composition").made.buffer(&non_null(name, "name"));
        non_null(number, "number") = static_cast<int>(palmette::plan::caller_index(buffer));
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_composition_multicast(palmette_composition* composition, int root, const int* to,
                                                int to_count, int source, int64_t first, int64_t count, int target) {
    return guarded([&] {
        Composition& made = non_null(composition, "composition").made;
        made.multicast(Rank{root}, set_of(made, to, to_count), buffer_of(made, source), {first, count},
                       buffer_of(made, target));
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_composition_reduce(palmette_composition* composition, const int* from, int from_count,
                                             int root, int source, int64_t first, int64_t count, int target,
                                             MPI_Op op) {
    return guarded([&] {
        auto& [made, type, ops] = non_null(composition, "composition");
        const auto known = std::find(ops.begin(), ops.end(), op);
        auto number = static_cast<std::uint8_t>(known - ops.begin());
        if (known == ops.end()) {
            number = made.operation({palmette::base::cat("operation ", ops.size()), commutes(op)});
            ops.push_back(op);
        }
        made.reduce(set_of(made, from, from_count), Rank{root}, buffer_of(made, source), {first, count},
                    buffer_of(made, target), number);
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_composition_hold(palmette_composition* composition, int rank, int buffer, int64_t first,
                                           int64_t count) {
    return guarded([&] {
        Composition& made = non_null(composition, "composition").made;
        made.hold(Rank{rank}, buffer_of(made, buffer), {first, count});
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_composition_fence(palmette_composition* composition) {
    return guarded([&] {
        non_null(composition, "composition").made.fence();
        return MPI_SUCCESS;
    });
}

PALMETTE_API void palmette_composition_free(palmette_composition* composition) { delete composition; }

PALMETTE_API int palmette_plan_make(const palmette_composition* composition, MPI_Comm comm, const char* factoring,
                                    palmette_plan** out) {
    return guarded([&] {
        // Also without a composition: the other ranks wait for this one in the agreement.
        auto plan = ComposedPlan::make(
            comm, composition && out ? &composition->made : nullptr, factoring ? factoring : "",
            composition ? composition->ops : std::vector<MPI_Op>(), composition ? composition->type : MPI_DATATYPE_NULL,
            palmette::interpose::settings_from_environment());
        *out = new palmette_plan{std::move(plan)};
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_sparse_make(const int64_t* touched, int64_t count, int64_t first, int64_t end, int width,
                                      MPI_Datatype type, MPI_Op op, int64_t coarsen, MPI_Comm comm,
                                      const char* factoring, palmette_sparse** out) {
    return guarded([&] {
        palmette::runtime::SparseRequest request;
        request.owned = {first, end - first};
        request.width = width, request.coarsen = coarsen;
        // The other ranks wait for this one in the agreement.
        try {
            non_null(out, "out");
            if (count < 0 || (count > 0 && !touched)) fail(count, " touched indices");
            request.touched.assign(touched, touched + count);
            request.element_bytes = extent_of(type);
        } catch (const std::exception& error) {
            request.complaint = error.what();
        }
        *out = new palmette_sparse{palmette::runtime::SparseSum::make(
            comm, request, factoring ? factoring : "", op, type, palmette::interpose::settings_from_environment())};
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_sparse_size(const palmette_sparse* sparse, int64_t* partial, int64_t* mine, int64_t* blocks,
                                      int64_t* known, int64_t* coarsen) {
    return guarded([&] {
        const auto& made = *non_null(sparse, "sparse").made;
        non_null(partial, "partial") = static_cast<std::int64_t>(made.partial_rows().size());
        non_null(mine, "mine") = static_cast<std::int64_t>(made.own_rows().size());
        non_null(blocks, "blocks") = made.blocks();
        non_null(known, "known") = made.known_blocks();
        non_null(coarsen, "coarsen") = made.coarsen();
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_sparse_rows(const palmette_sparse* sparse, int64_t* partial, int64_t* mine) {
    return guarded([&] {
        const auto& made = *non_null(sparse, "sparse").made;
        const auto copy = [](const std::vector<std::int64_t>& rows, std::int64_t* to, const char* what) {
            if (!rows.empty()) std::copy(rows.begin(), rows.end(), &non_null(to, what));
        };
        copy(made.partial_rows(), partial, "partial");
        copy(made.own_rows(), mine, "mine");
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_sparse_plan(const palmette_sparse* sparse, int back, palmette_plan** out) {
    return guarded([&] {
        non_null(out, "out") = new palmette_plan{non_null(sparse, "sparse").made->plan(back != 0)};
        return MPI_SUCCESS;
    });
}

PALMETTE_API void palmette_sparse_free(palmette_sparse* sparse) { delete sparse; }

PALMETTE_API int palmette_exchange(const int* to, const int64_t* counts, int count, const void* data, MPI_Datatype type,
                                   MPI_Comm comm, palmette_arrivals** out) {
    return guarded([&] {
        palmette::runtime::Outgoing outgoing;
        // The other ranks wait for this one.
        try {
            non_null(out, "out");
            outgoing.element_bytes = extent_of(type);
            outgoing.type = type, outgoing.data = data;
            if (count < 0 || (count > 0 && (!to || !counts))) fail("count is ", count, ", or to or counts is null");
            outgoing.to.assign(to, to + count);
            outgoing.counts.assign(counts, counts + count);
        } catch (const std::exception& error) {
            outgoing.complaint = error.what();
        }
        const char* const fewer = std::getenv("PALMETTE_FAKE_COUNTED_RANKS");  // for tests
        auto arrivals =
            palmette::runtime::exchange_unexpected(comm, outgoing, palmette::interpose::settings_from_environment(),
                                                   fewer ? std::atoi(fewer) : palmette::runtime::most_counted_ranks);
        *out = new palmette_arrivals{std::move(arrivals)};
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_arrivals_size(const palmette_arrivals* arrivals, int* senders, int64_t* elements) {
    return guarded([&] {
        const auto& made = non_null(arrivals, "arrivals").made;
        non_null(senders, "senders") = static_cast<int>(made.from.size());
        non_null(elements, "elements") = std::accumulate(made.counts.begin(), made.counts.end(), std::int64_t{0});
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_arrivals_take(const palmette_arrivals* arrivals, int* from, int64_t* counts, void* data) {
    return guarded([&] {
        const auto& made = non_null(arrivals, "arrivals").made;
        auto* at = static_cast<char*>(data);
        for (std::size_t i = 0; i < made.from.size(); ++i) {
            *(&non_null(from, "from") + i) = made.from[i];
            *(&non_null(counts, "counts") + i) = made.counts[i];
            if (!made.blocks[i].empty())
                at = std::copy(made.blocks[i].begin(), made.blocks[i].end(), &non_null(at, "data"));
        }
        return MPI_SUCCESS;
    });
}

PALMETTE_API void palmette_arrivals_free(palmette_arrivals* arrivals) { delete arrivals; }

PALMETTE_API int palmette_plan_buffer_bytes(const palmette_plan* plan, int buffer, int64_t* bytes) {
    return guarded([&] {
        const ComposedPlan& made = *non_null(plan, "plan").made;
        if (buffer < 0 || static_cast<std::size_t>(buffer) >= made.buffers())
            fail("buffer ", buffer, " of ", made.buffers());
        non_null(bytes, "bytes") = made.buffer_bytes(static_cast<std::size_t>(buffer));
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_plan_scratch_bytes(const palmette_plan* plan, int64_t* bytes) {
    return guarded([&] {
        non_null(bytes, "bytes") = non_null(plan, "plan").made->scratch_bytes();
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_plan_single_copies(const palmette_plan* plan, int64_t* messages) {
    return guarded([&] {
        non_null(messages, "messages") = non_null(plan, "plan").made->single_copies();
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_plan_device_messages(const palmette_plan* plan, int64_t* messages) {
    return guarded([&] {
        non_null(messages, "messages") = non_null(plan, "plan").made->device_messages();
        return MPI_SUCCESS;
    });
}

PALMETTE_API void palmette_plan_free(palmette_plan* plan) { delete plan; }

PALMETTE_API int palmette_bind(const palmette_plan* plan, void* const* buffers, int count, palmette_run** out) {
    return guarded([&] {
        non_null(out, "out");
        if (count < 0 || (count > 0 && !buffers)) fail("buffers is null");
        *out = new palmette_run(non_null(plan, "plan").made, std::vector<void*>(buffers, buffers + count));
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_start(palmette_run* run) {
    return guarded([&] {
        ComposedRun& made = non_null(run, "run").made;
        const int code = made.start();
        if (code == MPI_ERR_PENDING) return failed(code, "the run is in flight; wait for it first");
        return code == MPI_SUCCESS ? code : failed(code, complaint_of(made));
    });
}

PALMETTE_API int palmette_test(palmette_run* run, int* done) {
    return guarded([&] {
        bool over = false;
        ComposedRun& made = non_null(run, "run").made;
        const int code = made.test(over);
        non_null(done, "done") = over ? 1 : 0;
        return code == MPI_SUCCESS ? code : failed(code, complaint_of(made));
    });
}

PALMETTE_API int palmette_wait(palmette_run* run) {
    return guarded([&] {
        ComposedRun& made = non_null(run, "run").made;
        const int code = made.wait();
        return code == MPI_SUCCESS ? code : failed(code, complaint_of(made));
    });
}

PALMETTE_API void palmette_run_free(palmette_run* run) {
    guarded([&] {
        delete run;
        return MPI_SUCCESS;
    });
}
