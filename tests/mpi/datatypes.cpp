// Datatypes from every constructor that the MPI has, those with large counts among them: what palmette asks about them
// raises no error, moved data is the same as by PMPI_, and types that are freed while a collective is under way live to
// its end.
//
//     datatypes

#include <mpi.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "support/outcome.hpp"

using namespace test;

namespace {

int raised = 0;
void count_error(MPI_Comm*, int*, ...) { ++raised; }

struct Made {
    std::string name;
    std::function<void(MPI_Datatype*)> make;
    bool predefined = false;  ///< must not be freed
};

/// Datatypes of about six doubles each, most with holes.
std::vector<Made> constructors() {
    static const int lengths[] = {1, 2}, starts[] = {0, 2}, sizes[] = {4, 3}, parts[] = {2, 3}, from[] = {1, 0};
    static const MPI_Aint bytes[] = {0, 16};
    static const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT};
    static const int everywhere[] = {1, 1}, block[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
                     usual[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    std::vector<Made> out{
        {"MPI_Type_contiguous", [](auto t) { MPI_Type_contiguous(3, MPI_DOUBLE, t); }},
        {"MPI_Type_vector", [](auto t) { MPI_Type_vector(3, 1, 2, MPI_DOUBLE, t); }},
        {"MPI_Type_create_hvector", [](auto t) { MPI_Type_create_hvector(3, 1, 24, MPI_DOUBLE, t); }},
        {"MPI_Type_indexed", [](auto t) { MPI_Type_indexed(2, lengths, starts, MPI_DOUBLE, t); }},
        {"MPI_Type_create_hindexed", [](auto t) { MPI_Type_create_hindexed(2, lengths, bytes, MPI_DOUBLE, t); }},
        {"MPI_Type_create_indexed_block", [](auto t) { MPI_Type_create_indexed_block(2, 1, starts, MPI_DOUBLE, t); }},
        {"MPI_Type_create_hindexed_block", [](auto t) { MPI_Type_create_hindexed_block(2, 1, bytes, MPI_DOUBLE, t); }},
        {"MPI_Type_create_struct", [](auto t) { MPI_Type_create_struct(2, lengths, bytes, types, t); }},
        {"MPI_Type_create_subarray",
         [](auto t) { MPI_Type_create_subarray(2, sizes, parts, from, MPI_ORDER_C, MPI_DOUBLE, t); }},
        {"MPI_Type_create_darray",
         [](auto t) { MPI_Type_create_darray(1, 0, 2, sizes, block, usual, everywhere, MPI_ORDER_C, MPI_DOUBLE, t); }},
        {"MPI_Type_create_resized", [](auto t) { MPI_Type_create_resized(MPI_DOUBLE, 0, 24, t); }},
        {"MPI_Type_create_resized, but dense",
         [](auto t) { MPI_Type_create_resized(MPI_DOUBLE, 0, sizeof(double), t); }},
        {"MPI_Type_contiguous of interleaving ones, which looks dense",
         [](auto t) {
             MPI_Datatype apart = MPI_DATATYPE_NULL, interleaved = MPI_DATATYPE_NULL;
             MPI_Type_vector(2, 1, 2, MPI_INT, &apart);
             MPI_Type_create_resized(apart, 0, sizeof(int), &interleaved);
             MPI_Type_contiguous(2, interleaved, &apart);
             MPI_Type_create_resized(apart, 0, 4 * sizeof(int), t);
         }},
        {"MPI_Type_dup",
         [](auto t) {
             MPI_Datatype inner = MPI_DATATYPE_NULL;
             MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &inner);
             MPI_Type_dup(inner, t);
             MPI_Type_free(&inner);
         }},
        {"MPI_Type_create_f90_real", [](auto t) { MPI_Type_create_f90_real(15, MPI_UNDEFINED, t); }, true},
        {"MPI_Type_create_f90_integer", [](auto t) { MPI_Type_create_f90_integer(9, t); }, true},
        {"MPI_DOUBLE_INT", [](auto t) { *t = MPI_DOUBLE_INT; }, true},
    };
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    out.push_back({"MPI_Type_get_value_index", [](auto t) { MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, t); }, true});
#endif
#if MPI_VERSION >= 4
    static const MPI_Count lengths_c[] = {1, 2}, starts_c[] = {0, 2}, bytes_c[] = {0, 16}, sizes_c[] = {4, 3},
                           parts_c[] = {2, 3}, from_c[] = {1, 0};
    const std::vector<Made> large{
        {"MPI_Type_contiguous_c", [](auto t) { MPI_Type_contiguous_c(3, MPI_DOUBLE, t); }},
        {"MPI_Type_vector_c", [](auto t) { MPI_Type_vector_c(3, 1, 2, MPI_DOUBLE, t); }},
        {"MPI_Type_create_hvector_c", [](auto t) { MPI_Type_create_hvector_c(3, 1, 24, MPI_DOUBLE, t); }},
        {"MPI_Type_indexed_c", [](auto t) { MPI_Type_indexed_c(2, lengths_c, starts_c, MPI_DOUBLE, t); }},
        {"MPI_Type_create_hindexed_c",
         [](auto t) { MPI_Type_create_hindexed_c(2, lengths_c, bytes_c, MPI_DOUBLE, t); }},
        {"MPI_Type_create_indexed_block_c",
         [](auto t) { MPI_Type_create_indexed_block_c(2, 1, starts_c, MPI_DOUBLE, t); }},
        {"MPI_Type_create_hindexed_block_c",
         [](auto t) { MPI_Type_create_hindexed_block_c(2, 1, bytes_c, MPI_DOUBLE, t); }},
        {"MPI_Type_create_struct_c", [](auto t) { MPI_Type_create_struct_c(2, lengths_c, bytes_c, types, t); }},
        {"MPI_Type_create_subarray_c",
         [](auto t) { MPI_Type_create_subarray_c(2, sizes_c, parts_c, from_c, MPI_ORDER_C, MPI_DOUBLE, t); }},
        {"MPI_Type_create_darray_c",
         [](auto t) {
             MPI_Type_create_darray_c(1, 0, 2, sizes_c, block, usual, everywhere, MPI_ORDER_C, MPI_DOUBLE, t);
         }},
        {"MPI_Type_create_resized_c", [](auto t) { MPI_Type_create_resized_c(MPI_DOUBLE, 0, 24, t); }},
        {"MPI_Type_dup of MPI_Type_contiguous_c",
         [](auto t) {
             MPI_Datatype inner = MPI_DATATYPE_NULL;
             MPI_Type_contiguous_c(3, MPI_DOUBLE, &inner);
             MPI_Type_dup(inner, t);
             MPI_Type_free(&inner);
         }},
        {"MPI_Type_vector of MPI_Type_contiguous_c",
         [](auto t) {
             MPI_Datatype inner = MPI_DATATYPE_NULL;
             MPI_Type_contiguous_c(2, MPI_DOUBLE, &inner);
             MPI_Type_vector(2, 1, 2, inner, t);
             MPI_Type_free(&inner);
         }},
    };
    out.insert(out.end(), large.begin(), large.end());
#endif
    return out;
}

constexpr int count = 700;
constexpr std::size_t room = 16 * count;  ///< doubles: no type here is longer

std::vector<double> numbers(int salt) {
    std::vector<double> out(room);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(i) + 1e6 * (world_rank + 1) + salt;
    return out;
}

void add_up(void* in, void* inout, int* length, MPI_Datatype* type) {
    MPI_Aint lower = 0, extent = 0;
    PMPI_Type_get_extent(*type, &lower, &extent);
    for (int i = 0; i < *length; ++i)
        *reinterpret_cast<double*>(static_cast<char*>(inout) + i * extent) +=
            *reinterpret_cast<double*>(static_cast<char*>(in) + i * extent);
}

void one(Outcome& outcome, const Made& made, MPI_Op op) {
    std::snprintf(doing, sizeof doing, "%s", made.name.c_str());
    const MPI_Comm world = MPI_COMM_WORLD;
    int size = 1;
    MPI_Comm_size(world, &size);
    const int root = size - 1;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    made.make(&type);
    if (!made.predefined) MPI_Type_commit(&type);

    std::vector<double> data = numbers(1), expected = data;
    int code = MPI_Bcast(data.data(), count, type, root, world);
    PMPI_Bcast(expected.data(), count, type, root, world);
    outcome.check(code == MPI_SUCCESS && data == expected, "MPI_Bcast of %s", made.name.c_str());

    std::vector<double> from = numbers(2), all(room * static_cast<std::size_t>(size), -1), right = all;
    code = MPI_Allgather(from.data(), count, type, all.data(), count, type, world);
    PMPI_Allgather(from.data(), count, type, right.data(), count, type, world);
    outcome.check(code == MPI_SUCCESS && all == right, "MPI_Allgather of %s", made.name.c_str());

    // Only a part of each element is added up; nothing else may change.
    data = numbers(3), expected = data;
    if (made.name != "MPI_Type_create_f90_integer" && made.name != "MPI_Type_create_subarray" &&
        made.name != "MPI_Type_create_subarray_c" && made.name.find("looks dense") == std::string::npos) {
        code = MPI_Allreduce(from.data(), data.data(), count / 2, type, op, world);
        PMPI_Allreduce(from.data(), expected.data(), count / 2, type, op, world);
        bool same = true;
        MPI_Aint lower = 0, extent = 0;
        PMPI_Type_get_extent(type, &lower, &extent);
        for (MPI_Aint i = 0; i < count / 2; ++i) {
            const auto at = static_cast<std::size_t>(i * extent) / sizeof(double);
            same = same && data[at] == expected[at];
        }
        outcome.check(code == MPI_SUCCESS && same, "MPI_Allreduce of %s", made.name.c_str());
    }

    // Freed while it is under way, and another one in its place.
    data = numbers(4), expected = data;
    PMPI_Bcast(expected.data(), count, type, 0, world);
    MPI_Request request = MPI_REQUEST_NULL;
    code = MPI_Ibcast(data.data(), count, type, 0, world, &request);
    if (!made.predefined) MPI_Type_free(&type);
    MPI_Datatype other = MPI_DATATYPE_NULL;
    MPI_Type_vector(5, 3, 11, MPI_CHAR, &other);
    MPI_Type_commit(&other);
    const int waited = MPI_Wait(&request, MPI_STATUS_IGNORE);
    outcome.check(code == MPI_SUCCESS && waited == MPI_SUCCESS && data == expected, "MPI_Ibcast of a freed %s",
                  made.name.c_str());
    MPI_Type_free(&other);
    outcome.check(raised == 0, "%s: %d errors were raised", made.name.c_str(), raised);
    raised = 0;
}

/// What is no datatype is the MPI's to judge, on the communicator of the call.
void no_types(Outcome& outcome) {
    std::snprintf(doing, sizeof doing, "what is no datatype");
    MPI_Comm apart = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    int value = 0;
    MPI_Bcast(&value, 1, MPI_INT, 0, apart);
    MPI_Comm_set_errhandler(apart, MPI_ERRORS_RETURN);
    const int code = MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, apart);
    outcome.check(code != MPI_SUCCESS && raised == 0, "MPI_DATATYPE_NULL: code %d, %d raised elsewhere", code, raised);
#if defined(PALMETTE_ABI_MPICH)
    const int none = MPI_Bcast(&value, 1, static_cast<MPI_Datatype>(12345), 0, apart);
    outcome.check(none != MPI_SUCCESS && raised == 0, "12345: code %d, %d raised elsewhere", none, raised);
#endif
    raised = 0;
    MPI_Comm_free(&apart);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(60);
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_create_errhandler(count_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(add_up, 1, &op);
    Outcome outcome;
    for (const Made& made : constructors()) one(outcome, made, op);
    no_types(outcome);
    MPI_Op_free(&op);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
