// Calling contexts of samples: those of all processes that have the same frames are one tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "palmette/trace/recording.hpp"

namespace palmette::trace {

class SectionReader;

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
    std::uint64_t cpu_ns = 0;
};

class JobContexts {
  public:
    std::vector<SampledFrame> frames;  ///< each once
    std::vector<JobContext> nodes;     ///< [0] is outside of all frames
    std::vector<ContextSum> sums;      ///< sparse: by process what it has sampled at all

    /// Adds a process's, callers before what they call; returns the node of each. Throws base::Error where the section
    /// is damaged. Cost: O(contexts).
    std::vector<std::uint32_t> add(const SectionReader& section, std::int32_t process);
    std::vector<std::uint32_t> add(const std::vector<ContextInfo>& contexts, std::int32_t process);
    /// Adds those of other processes, whose numbers follow from `first` on. Cost: O(their nodes + sums).
    void add(const JobContexts& other, std::int32_t first);

  private:
    /// A frame in numbers of texts.
    struct Key {
        std::uint32_t module, build_id, function, line;
        std::uint64_t offset;
        ContextKind kind;
        bool is_innermost;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const;
        std::size_t operator()(std::uint64_t number) const;
    };
    std::uint32_t text_of(const std::string& text);
    std::uint32_t frame_of(const Key& key);
    std::uint32_t node_of(std::uint32_t caller, std::uint32_t frame);

    std::vector<std::string> texts_;
    std::unordered_map<std::string, std::uint32_t> text_numbers_;
    std::unordered_map<Key, std::uint32_t, Hash> frame_numbers_;
    std::unordered_map<std::uint64_t, std::uint32_t, Hash> node_numbers_;  ///< by parent and frame
};

/// Which part of a job's processes, in their order: those of several readers together are all.
struct Share {
    std::uint32_t number = 0, of = 1;
};

/// The contexts of all processes in the files that know their rank, or of a share of them, and these ranks in the
/// processes' order. The same for any number of threads (0: as many as there are processors). Throws base::Error. Cost:
/// O(contexts of these processes), shared out among threads; memory O(what is different + sums).
struct ReadContexts {
    JobContexts contexts;
    std::vector<std::int32_t> ranks;

    /// This reader's contexts for another reader of the same machine type: what `append` takes.
    std::string packed() const;
    /// Adds what the reader of the next share has found: afterwards it is as if one had read both. Throws base::Error
    /// where that isn't what `packed` makes. Cost: O(its nodes + sums).
    void append(std::string_view packed);
};
ReadContexts read_contexts(const std::vector<std::string>& files, unsigned threads = 0, Share share = {});

}  // namespace palmette::trace
