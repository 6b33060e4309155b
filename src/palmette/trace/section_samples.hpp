// What a section has of samples. Nothing in a file is trusted: these throw base::Error where it is damaged.
#pragma once

#include "palmette/trace/section_reader.hpp"

namespace palmette::trace {

/// By time, as far as the ring holds them.
SampleColumns samples_in(const SectionReader& section);
/// How they were taken, and of which threads.
void read_sampling(const SectionReader& section, ProcessInfo& out);
/// The tree of their stacks.
void read_contexts(const SectionReader& section, ProcessInfo& out);

}  // namespace palmette::trace
