#include "palmette/trace/contexts.hpp"

namespace palmette::trace {

std::uint32_t JobContexts::frame_of(const ContextInfo& one) {
    std::string key = one.module;
    for (const std::string* const part : {&one.build_id, &one.function}) (key += '\0') += *part;
    for (const std::uint64_t number : {one.offset, std::uint64_t{one.line}, static_cast<std::uint64_t>(one.kind)})
        (key += '\0') += std::to_string(number);
    if (one.is_innermost) key += '!';
    const auto [found, made] = frame_numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(frames.size()));
    if (made)
        frames.push_back({one.kind, one.module, one.build_id, one.offset, one.is_innermost, one.function, one.line});
    return found->second;
}

std::vector<std::uint32_t> JobContexts::add(const std::vector<ContextInfo>& contexts, std::int32_t process) {
    if (nodes.empty()) nodes.emplace_back();
    std::vector<std::uint32_t> out(contexts.size(), 0);
    for (std::size_t i = 1; i < contexts.size(); ++i) {
        const ContextInfo& one = contexts[i];
        const std::uint32_t caller = one.parent < i ? out[one.parent] : 0;
        const std::uint32_t frame = frame_of(one);
        const auto [found, made] =
            node_numbers_.try_emplace(std::uint64_t{caller} << 32U | frame, static_cast<std::uint32_t>(nodes.size()));
        if (made) nodes.push_back({caller, frame});
        out[i] = found->second;
        if (one.samples > 0) sums.push_back({out[i], process, one.samples, one.cpu_s});
    }
    return out;
}

ReadContexts read_contexts(const std::vector<std::string>& files) {
    ReadContexts out;
    for (const std::string& file : files)
        for (const ProcessInfo& process : Recording::read(file, true).processes) {
            if (process.rank < 0) continue;
            out.contexts.add(process.contexts, static_cast<std::int32_t>(out.ranks.size()));
            out.ranks.push_back(process.rank);
        }
    return out;
}

}  // namespace palmette::trace
