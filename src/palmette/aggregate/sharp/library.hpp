// libsharp_coll, NVIDIA's library for reductions by switches, as it lies in the process or where it is looked for.
//
// Nothing tells a library's version at run time, and older ones have other structures: it is taken only where its
// soname and its functions are those of version 3 (docs/decisions/0030).
#pragma once

#include <string>

#include "palmette/aggregate/reason.hpp"
#include "palmette/aggregate/sharp/api.hpp"

namespace palmette::aggregate::sharp {

/// Functions of libsharp_coll under their own names, without sharp_coll_.
struct Library {
    int (*init)(InitSpec*, Context**) = nullptr;
    int (*finalize)(Context*) = nullptr;
    int (*caps_query)(Context*, Capabilities*) = nullptr;
    int (*progress)(Context*) = nullptr;
    int (*comm_init)(Context*, CommSpec*, Comm**) = nullptr;
    int (*comm_destroy)(Comm*) = nullptr;
    int (*do_allreduce_nb)(Comm*, ReduceSpec*, void**) = nullptr;
    int (*req_test)(void*) = nullptr;  ///< nonzero: complete
    int (*req_wait)(void*) = nullptr;  ///< returns the request's error; the handle is gone
    int (*reg_mr)(Context*, void*, std::size_t, void**) = nullptr;
    int (*dereg_mr)(Context*, void*) = nullptr;
    const char* (*strerror)(int) = nullptr;
    const Config* default_config = nullptr;
    std::string path;  ///< where it was found

    /// "no tree available (-13)".
    std::string error_text(int code) const;
};

/// The reason for an Error below 0; that for another negative number is `library`.
Reason reason_of(int code) noexcept;

/// What was found, or why nothing can be used.
struct LibraryLookup {
    const Library* library = nullptr;  ///< never unloaded
    Reason reason = Reason::none;      ///< no_library: there is none; other_library: it isn't one to be used
    std::string detail;
};

/// Looks for it, once for each `wanted` of a process: "auto" searches, anything else is its path. First what the
/// process has loaded already, then libsharp_coll.so.5 and libsharp_coll.so where the loader finds them, in
/// $HPCX_SHARP_DIR/lib and in /opt/mellanox/sharp/lib.
const LibraryLookup& find_library(const std::string& wanted);

}  // namespace palmette::aggregate::sharp
