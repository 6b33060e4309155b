// The part of libsharp_coll's binary interface that palmette uses, version 3 of the library (soname
// libsharp_coll.so.5): declared anew, so that nothing of NVIDIA's is needed to build. docs/decisions/0030 says where
// the facts come from.
//
// All functions return 0 or a negative Error. `reserved` fields are zero.
#pragma once

#include <cstddef>
#include <cstdint>

namespace palmette::aggregate::sharp {

struct Context;  ///< one process's part of a job of the aggregation manager
struct Comm;     ///< one process's part of a group in a tree of switches

enum Error : int {
    success = 0,
    error_general = -1,
    error_unsupported = -2,
    error_memory = -3,
    error_group_alloc = -4,
    error_tree_connect = -5,
    error_group_join = -6,
    error_quota = -7,
    error_session = -8,
    error_device = -9,
    error_invalid = -10,
    error_job_create = -11,
    error_tree_info = -12,
    error_no_tree = -13,
    error_group_id = -14,
    error_out_of_band = -15,
    error_group_multicast = -16,
    error_group_trim = -17,
    error_lock_failed = -18,  ///< another group streams over the tree: may be tried again
    error_lock_denied = -19,
    error_no_resource = -20,
};

enum DataType : int {
    type_uint32,
    type_int32,
    type_uint64,
    type_int64,
    type_float32,
    type_float64,
    type_uint16,
    type_int16,
    type_float16,
    type_bfloat16,  ///< this one and those below: only where Capabilities say so; they came later
    type_uint8,
    type_int8,
};

enum ReduceOp : int { op_max, op_min, op_sum, op_prod, op_land, op_band, op_lor, op_bor, op_lxor, op_bxor };

enum Feature : std::uint64_t { feature_datagram = 1, feature_reproducible = 2, feature_streaming = 4 };

enum InitFlag : std::uint32_t {
    hide_errors = 1,
    no_lazy_resources = 2,  ///< what a group needs is taken when it is made: what is missing shows there
};

struct Config {
    const char* device_list;
    int user_progress_polls;
    int timeout_ms;  ///< timeout of an operation; -1: none
    std::uint32_t flags;
    int reserved[3];
};

/// How members of a job find each other; blocking.
struct OutOfBandCalls {
    int (*bcast)(void* context, void* buffer, int bytes, int root);
    int (*barrier)(void* context);
    int (*gather)(void* context, int root, void* from, void* to, int bytes);
};

struct InitSpec {
    std::uint64_t job_id;
    int world_rank, world_size;
    int (*progress)();
    int group_channel;
    Config config;
    OutOfBandCalls out_of_band;
    int world_local_rank;
    int thread_support;
    void* out_of_band_context;
    int reserved[4];
};

struct CommSpec {
    int rank, size;
    void* out_of_band_context;
    const std::uint32_t* group_world_ranks;
    int reserved[2];
};

struct Capabilities {
    int packet_version;
    std::uint64_t reserved[2];
    struct {
        std::uint64_t types, tag_types, ops, features;  ///< bit i: DataType, ReduceOp i; Feature
        std::uint64_t reserved[4];
    } mask;
    struct {
        int most_osts, bytes_per_ost, most_groups, most_group_channels, osts_per_group;
    } resources;
};

struct IoVector {
    void* data;
    std::size_t bytes;
    void* memory;
};

struct DataDescription {
    int type;         ///< 0: one buffer
    int memory_type;  ///< 0: of the host
    int reserved[2];
    union {
        struct {
            void* data;
            std::size_t bytes;
            void* memory;  ///< handle of a registration; null: none
        } buffer;
        struct {
            unsigned count;
            IoVector* vector;
        } vectors;
    };
};

struct ReduceSpec {
    int root;
    DataDescription from, to;
    int type;            ///< DataType
    std::size_t count;   ///< elements
    int op;              ///< ReduceOp
    int tag_type;        ///< type of minloc's and maxloc's places
    int mode;            ///< 0: the library chooses
    int lock_batch;      ///< operations for which the lock of a tree is kept
    std::size_t offset;  ///< reduce-scatter
    int reserved[2];
};

struct BcastSpec {
    int root;
    DataDescription data;
    std::size_t bytes;
    int reserved[4];
};

struct GatherSpec {
    DataDescription from, to;
    int type;
    std::size_t size;
    std::size_t offset;
    int reserved[4];
};

static_assert(sizeof(void*) == 8, "libsharp_coll is there for 64 bits");
static_assert(sizeof(Config) == 32 && sizeof(InitSpec) == 120 && sizeof(CommSpec) == 32);
static_assert(sizeof(Capabilities) == 112 && sizeof(DataDescription) == 40 && sizeof(ReduceSpec) == 136);
static_assert(offsetof(InitSpec, config) == 32 && offsetof(InitSpec, out_of_band_context) == 96);
static_assert(offsetof(ReduceSpec, count) == 96 && offsetof(ReduceSpec, offset) == 120);
static_assert(sizeof(BcastSpec) == 72 && sizeof(GatherSpec) == 120);

}  // namespace palmette::aggregate::sharp
