#include "palmette/trace/recording.hpp"

#include "palmette/trace/section_adapters.hpp"
#include "palmette/trace/section_reader.hpp"
#include "palmette/trace/section_regions.hpp"
#include "palmette/trace/section_samples.hpp"
#include "palmette/trace/section_snapshots.hpp"

namespace palmette::trace {

Recording Recording::read(const std::string& path, bool with_tables) {
    const Mapping file(path);
    Recording out;
    const auto& header = *reinterpret_cast<const FileHeader*>(file.at(0));
    for_each_section(file, path, [&](SectionReader section) {
        ProcessInfo& process = out.processes.emplace_back(section.read(with_tables));
        read_sampling(section, process);
        if (with_tables) {
            read_regions(section, process);
            read_adapters(section, process);
            read_snapshots(section, process);
        }
        process.file = path;
        process.section = out.processes.size() - 1;
    });
    out.host = text_of(header.host);
    out.boot_id = text_of(header.boot_id);
    return out;
}

const std::vector<ContextInfo>& ProcessInfo::contexts() {
    if (!contexts_) contexts_ = std::make_shared<const std::vector<ContextInfo>>(Recording::contexts_of(file, section));
    return *contexts_;
}

std::vector<CallInfo> Recording::calls_of(const std::string& path, std::size_t section) {
    const Mapping file(path);
    std::vector<CallInfo> out;
    std::size_t number = 0;
    for_each_section(file, path, [&](const SectionReader& one) {
        if (number++ == section) out = one.calls();
    });
    return out;
}

SampleColumns Recording::samples_of(const std::string& path, std::size_t section) {
    const Mapping file(path);
    SampleColumns out;
    std::size_t number = 0;
    for_each_section(file, path, [&](const SectionReader& one) {
        if (number++ == section) out = samples_in(one);
    });
    return out;
}

std::vector<ContextInfo> Recording::contexts_of(const std::string& path, std::size_t section) {
    const Mapping file(path);
    std::vector<ContextInfo> out;
    std::size_t number = 0;
    for_each_section(file, path, [&](const SectionReader& one) {
        if (number++ == section) out = contexts_in(one);
    });
    return out;
}

}  // namespace palmette::trace
