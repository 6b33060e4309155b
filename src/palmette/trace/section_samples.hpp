// What a section has of samples. Nothing in a file is trusted: these throw base::Error where it is damaged.
#pragma once

#include <vector>

#include "palmette/trace/section_reader.hpp"

namespace palmette::trace {

/// Samples by time, as far as the ring holds them.
SampleColumns samples_in(const SectionReader& section);
/// What the kernel has accounted for in long stretches between calls, as far as the ring holds them, by time.
std::vector<AccountedInfo> accounts_in(const SectionReader& section);
/// How they were taken, and of which threads.
void read_sampling(const SectionReader& section, ProcessInfo& out);
/// The tree of their stacks, where it lies.
class SectionContexts {
  public:
    explicit SectionContexts(const SectionReader& section);

    std::uint32_t size() const { return count_; }
    /// The context of a number, 1 to size() - 1. A caller's is made before those of what it calls.
    const ContextNode& at(std::uint32_t number) const {
        const ContextNode& one = contexts_[number];
        if (one.parent >= number || one.kind > ContextKind::region)
            fail(section_.where(), ": a frame of its samples that can't be; the file is damaged");
        return one;
    }
    std::uint32_t modules() const { return module_count_; }
    std::string module(std::uint32_t number) const { return text_of(modules_[number].path); }
    std::string build_id(std::uint32_t number) const { return SectionReader::build_id_of(modules_[number]); }
    /// Empty where there is none.
    std::string text(std::uint64_t at) const;
    /// The name of a region.
    std::string region(std::uint64_t at) const;

  private:
    const SectionReader& section_;
    const ContextNode* contexts_;
    const ModuleEntry* modules_;
    std::uint32_t count_, module_count_;
};
/// The tree in full, [0] above all roots.
std::vector<ContextInfo> contexts_in(const SectionReader& section);

}  // namespace palmette::trace
