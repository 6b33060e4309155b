// What palmette makes of operations and datatypes, against the MPI's own MPI_Reduce_local, byte for byte: every
// predefined operation on every predefined type, user-defined operations on derived types, and what must be refused.
//
//     operations [--seed N] [--rounds N] [--measure 1] [--timeout SECONDS]
// Each rank does the same on other data. With --measure rank 0 prints what a lookup costs and what the kernels reach.

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "palmette/runtime/data/operation.hpp"
#include "support/elements.hpp"
#include "support/outcome.hpp"
#include "support/predefined.hpp"
#include "support/rng.hpp"

using namespace test;
using palmette::runtime::Obstacle;
using palmette::runtime::Operation;

namespace {

enum class Target { elsewhere, left, right, both };
constexpr std::array targets{Target::elsewhere, Target::left, Target::right, Target::both};

/// Bytes to compare with the MPI's, and bytes that must stay as they were.
struct Masks {
    explicit Masks(const Elements& elements, std::size_t padded_from = 0, std::size_t padded_every = 0)
        : data(elements.data()), holes(data) {
        for (char& byte : holes) byte = byte == 0 ? 1 : 0;
        // x87's long double takes 16 bytes and has 10: nobody says what is in the others.
        if (padded_every == 0) return;
        for (std::size_t at = elements.offset(0); at + padded_every <= data.size(); at += padded_every)
            std::fill_n(data.begin() + static_cast<std::ptrdiff_t>(at + padded_from), 6, '\0');
    }
    std::vector<char> data;
    std::vector<char> holes;
};

/// What differs when the operation is applied to copies of the operands; empty when nothing does.
std::string difference(MPI_Op op, Elements left, Elements right, Target where, const Masks& masks) {
    const MPI_Datatype type = left.type();
    const int count = left.count();
    Elements other(type, count, '\x5a');
    if (where == Target::both) right = left;
    Elements expected = right;
    if (PMPI_Reduce_local(left.at(), expected.at(), count, type, op) != MPI_SUCCESS) return "the MPI's error";

    Elements& target = where == Target::elsewhere ? other : where == Target::right ? right : left;
    const std::vector<char> before = target.bytes();
    const Operation operation(op, type);
    char* second = where == Target::both ? left.at() : right.at();
    if (operation.apply(left.at(), second, target.at(), count) != MPI_SUCCESS) return "an error";
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (masks.data[i] != 0 && target.bytes()[i] != expected.bytes()[i]) return "data at byte " + std::to_string(i);
        if (masks.holes[i] != 0 && target.bytes()[i] != before[i]) return "a hole at byte " + std::to_string(i);
    }
    return {};
}

bool accepts(MPI_Op op, const PredefinedType& type, Rng& rng) {
    Elements left(type.type, 1, 0), right(type.type, 1, 0);
    MPI_Aint lower = 0, extent = 0;
    PMPI_Type_get_extent(type.type, &lower, &extent);
    fill(left.bytes(), type, static_cast<std::size_t>(extent), true, rng);
    fill(right.bytes(), type, static_cast<std::size_t>(extent), true, rng);
    return PMPI_Reduce_local(left.at(), right.at(), 1, type.type, op) == MPI_SUCCESS;
}

/// Which bytes of which stretch are padding of a long double; {0, 0} in a type without.
std::array<std::size_t, 2> padding_of(const PredefinedType& type, std::size_t extent) {
    if (type.name == "MPI_LONG_DOUBLE_INT") return {10, extent};
    if (type.fill == Fill::long_double) return {10, sizeof(long double)};
    return {0, 0};
}

void check_predefined(const PredefinedOp& op, const PredefinedType& type, Rng& rng, Outcome& outcome) {
    MPI_Aint lower = 0, extent = 0;
    PMPI_Type_get_extent(type.type, &lower, &extent);
    const auto [padded_from, padded_every] = padding_of(type, static_cast<std::size_t>(extent));
    for (const int count : {1, 2, 7, 61, 5000}) {
        Elements left(type.type, count, 0), right(type.type, count, 0);
        for (Elements* one : {&left, &right}) {
            std::vector<char> data(static_cast<std::size_t>(count * extent));
            fill(data, type, static_cast<std::size_t>(extent), only_modest(op, type), rng);
            std::memcpy(one->at(), data.data(), data.size());
        }
        const Masks masks(left, padded_from, padded_every);
        for (const Target where : targets) {
            const std::string wrong = difference(op.op, left, right, where, masks);
            outcome.check(wrong.empty(), "%s of %d %s, target %d: %s differs", op.name.c_str(), count,
                          type.name.c_str(), static_cast<int>(where), wrong.c_str());
        }
    }
}

/// Returns how many pairs of operation and type were compared; prints those that the MPI lacks.
long check_all_predefined(long rounds, Rng& rng, Outcome& outcome) {
    long pairs = 0;
    std::string lacking;
    for (const PredefinedType& type : predefined_types()) {
        std::string row;
        for (const PredefinedOp& op : predefined_ops()) {
            const bool defined = op.groups.find(type.group) != std::string::npos;
            const Operation operation(op.op, type.type);
            outcome.check(operation.valid() == defined, "%s of %s is valid", op.name.c_str(), type.name.c_str());
            outcome.check(operation.commutative(), "%s commutes", op.name.c_str());
            if (!defined) continue;
            if (aborts(op, type) || !accepts(op.op, type, rng)) {
                row += " " + op.name;
                continue;
            }
            ++pairs;
            std::snprintf(doing, sizeof doing, "%s of %s", op.name.c_str(), type.name.c_str());
            for (long round = 0; round < rounds; ++round) check_predefined(op, type, rng, outcome);
        }
        if (!row.empty()) lacking += type.name + ":" + row + "\n";
    }
    if (world_rank == 0 && !lacking.empty()) std::printf("not in this MPI:\n%s", lacking.c_str());
    return pairs;
}

/// x op y = 3 x + 5 y, byte by byte: neither commutative nor associative, so that any other order shows.
void by_bytes(void* in, void* inout, int* count, MPI_Datatype* type) {
    const Elements shape(*type, *count, 0);
    const std::vector<char> data = shape.data();
    const auto first = static_cast<std::ptrdiff_t>(shape.offset(0));
    const auto* a = static_cast<const unsigned char*>(in);
    auto* b = static_cast<unsigned char*>(inout);
    for (std::size_t i = 0; i < data.size(); ++i) {
        if (data[i] == 0) continue;
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) - first;
        b[at] = static_cast<unsigned char>(3U * a[at] + 5U * b[at]);
    }
}

struct Derived {
    std::string name;
    MPI_Datatype type;
    bool fits;  ///< else its elements interleave
};

std::vector<Derived> derived_types() {
    std::vector<Derived> types;
    const auto add = [&](const char* name, MPI_Datatype type, bool fits = true) {
        PMPI_Type_commit(&type);
        types.push_back({name, type, fits});
    };
    const auto resized = [](MPI_Datatype type, MPI_Aint lower, MPI_Aint extent) {
        MPI_Datatype result = MPI_DATATYPE_NULL;
        PMPI_Type_create_resized(type, lower, extent, &result);
        PMPI_Type_free(&type);
        return result;
    };
    const auto made = [](auto make) {
        MPI_Datatype result = MPI_DATATYPE_NULL;
        make(&result);
        return result;
    };
    const auto contiguous = [&] { return made([](MPI_Datatype* t) { PMPI_Type_contiguous(3, MPI_INT, t); }); };
    const auto vector = [&](int stride) {
        return made([&](MPI_Datatype* t) { PMPI_Type_vector(3, 2, stride, MPI_SHORT, t); });
    };
    add("contiguous", contiguous());
    add("contiguous with a gap behind", resized(contiguous(), 0, 20));
    add("contiguous with a gap before", resized(contiguous(), -8, 20));
    add("running backwards", resized(contiguous(), 0, -16));
    add("vector", vector(5));
    add("vector backwards", vector(-4));
    add("large", made([](MPI_Datatype* t) { PMPI_Type_vector(700, 3, 7, MPI_DOUBLE, t); }));
    add("dup of double", made([](MPI_Datatype* t) { PMPI_Type_dup(MPI_DOUBLE, t); }));
    add("struct", made([](MPI_Datatype* t) {
            const std::array<int, 3> lengths{1, 2, 1};
            const std::array<MPI_Aint, 3> displacements{-6, 8, 32};
            const std::array<MPI_Datatype, 3> members{MPI_SHORT, MPI_DOUBLE, MPI_CHAR};
            PMPI_Type_create_struct(3, lengths.data(), displacements.data(), members.data(), t);
        }));
    add("a column of a matrix", resized(vector(4), 0, 4), false);
    add("on one spot", resized(contiguous(), 0, 0), false);
    return types;
}

void check_user_defined(Rng& rng, Outcome& outcome) {
    std::vector<Derived> types = derived_types();
    types.push_back({"MPI_CHAR", MPI_CHAR, true});
    types.push_back({"MPI_DOUBLE_INT", MPI_DOUBLE_INT, true});
    for (const bool commutes : {false, true}) {
        MPI_Op op = MPI_OP_NULL;
        PMPI_Op_create(by_bytes, commutes ? 1 : 0, &op);
        for (const Derived& type : types) {
            const Operation operation(op, type.type);
            outcome.check(operation.valid() == type.fits, "user-defined operation on %s", type.name.c_str());
            outcome.check((operation.obstacle() == Obstacle::interleaved) == !type.fits, "obstacle of %s",
                          type.name.c_str());
            outcome.check(operation.commutative() == commutes, "whether it commutes, on %s", type.name.c_str());
            outcome.check(operation.kernel() == nullptr && !operation.exact(), "no kernel for %s", type.name.c_str());
            if (!type.fits) continue;
            for (const int count : {1, 2, 13, 3000}) {
                if (count > 13 && type.name == "large") continue;
                std::snprintf(doing, sizeof doing, "user-defined, %d of %s", count, type.name.c_str());
                Elements left(type.type, count, 0), right(type.type, count, 0);
                for (char& byte : left.bytes()) byte = static_cast<char>(rng.next());
                for (char& byte : right.bytes()) byte = static_cast<char>(rng.next());
                const Masks masks(left);
                for (const Target where : targets) {
                    const std::string wrong = difference(op, left, right, where, masks);
                    outcome.check(wrong.empty(), "user-defined on %d of %s, target %d: %s differs", count,
                                  type.name.c_str(), static_cast<int>(where), wrong.c_str());
                }
            }
        }
        PMPI_Op_free(&op);
    }
    for (std::size_t i = 0; i + 2 < types.size(); ++i) PMPI_Type_free(&types[i].type);
}

/// What MPI doesn't define is the MPI's to judge, whatever extensions it has.
void check_undefined(Outcome& outcome) {
    std::vector<Derived> types = derived_types();
    for (Derived& type : types) {
        outcome.check(Operation(MPI_SUM, type.type).obstacle() == Obstacle::undefined, "MPI_SUM of %s",
                      type.name.c_str());
        PMPI_Type_free(&type.type);
    }
    for (const MPI_Datatype type : {MPI_CHAR, MPI_WCHAR, MPI_CHARACTER, MPI_PACKED, MPI_DATATYPE_NULL})
        outcome.check(!Operation(MPI_SUM, type).valid(), "a type that isn't to be reduced");
    for (const MPI_Op op : {MPI_REPLACE, MPI_NO_OP, MPI_OP_NULL})
        outcome.check(!Operation(op, MPI_INT).valid(), "an operation that doesn't reduce");
}

/// Fortran's types of a chosen precision are predefined ones for MPI.
void check_f90(Rng& rng, Outcome& outcome) {
    MPI_Datatype real = MPI_DATATYPE_NULL, complex = MPI_DATATYPE_NULL, integer = MPI_DATATYPE_NULL;
    // Those of an MPI that was built without Fortran may be missing.
    if (PMPI_Type_create_f90_real(15, MPI_UNDEFINED, &real) != MPI_SUCCESS ||
        PMPI_Type_create_f90_complex(6, MPI_UNDEFINED, &complex) != MPI_SUCCESS ||
        PMPI_Type_create_f90_integer(9, &integer) != MPI_SUCCESS)
        return;
    const PredefinedOp sum{"MPI_SUM", MPI_SUM, ""};
    for (const PredefinedType& type :
         {PredefinedType{"f90_real", real, 'R', Fill::real8}, PredefinedType{"f90_complex", complex, 'X', Fill::real4},
          PredefinedType{"f90_integer", integer, 'F', Fill::bits}}) {
        outcome.check(Operation(MPI_SUM, type.type).kernel() != nullptr, "a kernel for %s", type.name.c_str());
        if (accepts(MPI_SUM, type, rng)) check_predefined(sum, type, rng, outcome);
    }
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The best of some repetitions of `body`, in seconds a call.
template <class Body>
double best_of(int calls, Body body) {
    double best = 1e9;
    for (int repetition = 0; repetition < 7; ++repetition) {
        const double begin = seconds();
        for (int i = 0; i < calls; ++i) body();
        best = std::min(best, (seconds() - begin) / calls);
    }
    return best;
}

template <class T>
void use(const T& value) {
    asm volatile("" : : "g"(&value) : "memory");
}

/// Bytes of the target a second, next to those of a memcpy of as many.
void measure() {
    std::printf("made for MPI_SUM of MPI_DOUBLE in %.1f ns\n",
                best_of(100000, [] { use(Operation(MPI_SUM, MPI_DOUBLE)); }) * 1e9);
    std::printf("%-10s %-14s %8s %12s %12s %12s\n", "operation", "type", "KiB", "apart GB/s", "onto GB/s",
                "memcpy GB/s");
    Rng rng(1);
    for (const PredefinedType& type : predefined_types()) {
        for (const PredefinedOp& op : predefined_ops()) {
            const Operation operation(op.op, type.type);
            if (!operation.valid() || operation.kernel() == nullptr) continue;
            for (const std::size_t bytes : {std::size_t{32} << 10, std::size_t{4} << 20}) {
                const auto extent = static_cast<std::size_t>(operation.layout().extent);
                std::vector<char> left(bytes), right(bytes), target(bytes);
                fill(left, type, extent, true, rng);
                fill(right, type, extent, true, rng);
                const auto count = static_cast<std::int64_t>(bytes / extent);
                const int calls = bytes > (std::size_t{1} << 20) ? 4 : 200;
                const auto rate = [&](auto body) { return static_cast<double>(bytes) / best_of(calls, body) * 1e-9; };
                const double copied = rate([&] {
                    std::memcpy(target.data(), right.data(), bytes);
                    use(target);
                });
                const double apart = rate([&] { operation.apply(left.data(), right.data(), target.data(), count); });
                const double onto = rate([&] { operation.apply(left.data(), right.data(), left.data(), count); });
                std::printf("%-10s %-14s %8zu %12.1f %12.1f %12.1f\n", op.name.c_str() + 4, type.name.c_str() + 4,
                            bytes >> 10, apart, onto, copied);
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    watch(static_cast<unsigned>(option(argc, argv, "--timeout", 100)));
    if (option(argc, argv, "--measure", 0) != 0 && world_rank == 0) measure();

    Outcome outcome;
    Rng rng(static_cast<std::uint64_t>(option(argc, argv, "--seed", 1)), static_cast<std::uint64_t>(world_rank), 0);
    const long pairs = check_all_predefined(option(argc, argv, "--rounds", 1), rng, outcome);
    check_user_defined(rng, outcome);
    check_undefined(outcome);
    check_f90(rng, outcome);
    if (world_rank == 0) std::printf("%ld pairs of predefined operation and type\n", pairs);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
