// Calling contexts of samples: those of all processes that have the same frames are one tree.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "palmette/trace/recording.hpp"

namespace palmette::trace {

/// What a frame is, whoever called it.
struct SampledFrame {
    ContextKind kind = ContextKind::native;
    std::string module, build_id;
    std::uint64_t offset = 0;
    bool is_innermost = false;
    std::string function;
    std::uint32_t line = 0;
};

/// A frame and those outside of it; `parent`, the caller, stands before it.
struct JobContext {
    std::uint32_t parent = 0;  ///< index into nodes
    std::uint32_t frame = 0;   ///< index into frames
};

/// What a process has sampled in a context, without what is inside of it.
struct ContextSum {
    std::uint32_t context = 0;  ///< index into nodes
    std::int32_t process = 0;   ///< as the processes were added
    std::uint64_t samples = 0;
    double cpu_s = 0;
};

struct JobContexts {
    std::vector<SampledFrame> frames;  ///< each once
    std::vector<JobContext> nodes;     ///< [0] is outside of all frames
    std::vector<ContextSum> sums;

    /// Adds a process's, callers before what they call; returns the node of each. Cost: O(contexts).
    std::vector<std::uint32_t> add(const std::vector<ContextInfo>& contexts, std::int32_t process);

  private:
    std::uint32_t frame_of(const ContextInfo& one);
    std::unordered_map<std::string, std::uint32_t> frame_numbers_;
    std::unordered_map<std::uint64_t, std::uint32_t> node_numbers_;  ///< by parent and frame
};

/// The contexts of all processes in the files that know their rank, and these ranks in the processes' order. Throws
/// base::Error.
struct ReadContexts {
    JobContexts contexts;
    std::vector<std::int32_t> ranks;
};
ReadContexts read_contexts(const std::vector<std::string>& files);

}  // namespace palmette::trace
