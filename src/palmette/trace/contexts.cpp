#include "palmette/trace/contexts.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include "palmette/trace/section_reader.hpp"
#include "palmette/trace/section_samples.hpp"

namespace palmette::trace {
namespace {

/// Mixes all bits of a number into all others (the finalizer of MurmurHash3).
std::uint64_t mixed(std::uint64_t number) {
    number = (number ^ (number >> 33U)) * 0xFF51AFD7ED558CCDU;
    number = (number ^ (number >> 33U)) * 0xC4CEB9FE1A85EC53U;
    return number ^ (number >> 33U);
}

/// Values of one machine's processes, one behind the other.
class Packer {
  public:
    template <class Value>
    void value(const Value& one) {
        static_assert(std::is_trivially_copyable_v<Value>);
        bytes_.append(reinterpret_cast<const char*>(&one), sizeof one);
    }
    template <class Value>
    void list(const std::vector<Value>& values) {
        value(std::uint64_t{values.size()});
        static_assert(std::is_trivially_copyable_v<Value>);
        bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
    }
    void text(const std::string& text) {
        value(static_cast<std::uint32_t>(text.size()));
        bytes_ += text;
    }
    std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

class Unpacker {
  public:
    explicit Unpacker(std::string_view bytes) : left_(bytes) {}
    template <class Value>
    Value value() {
        Value out;
        std::memcpy(&out, taken(sizeof out).data(), sizeof out);
        return out;
    }
    template <class Value>
    std::vector<Value> list() {
        const auto count = value<std::uint64_t>();
        if (count > left_.size() / sizeof(Value)) refuse();
        std::vector<Value> out(count);
        const std::string_view bytes = taken(count * sizeof(Value));
        if (count > 0) std::memcpy(out.data(), bytes.data(), bytes.size());
        return out;
    }
    std::string text() { return std::string(taken(value<std::uint32_t>())); }
    bool is_at_end() const { return left_.empty(); }
    [[noreturn]] static void refuse() { fail("calling contexts of another reader: they are damaged"); }

  private:
    std::string_view taken(std::size_t bytes) {
        if (bytes > left_.size()) refuse();
        const std::string_view out = left_.substr(0, bytes);
        left_.remove_prefix(bytes);
        return out;
    }
    std::string_view left_;
};

}  // namespace

std::size_t JobContexts::Hash::operator()(const Key& key) const {
    std::uint64_t out = mixed(key.offset ^ std::uint64_t{key.module} << 32U);
    out = mixed(out ^ (std::uint64_t{key.function} << 32U | key.line));
    return out ^ (std::uint64_t{key.build_id} << 8U) ^ (static_cast<std::uint64_t>(key.kind) << 1U) ^
           std::uint64_t{key.is_innermost};
}
std::size_t JobContexts::Hash::operator()(std::uint64_t number) const { return mixed(number); }

std::uint32_t JobContexts::text_of(const std::string& text) {
    const auto [found, made] = text_numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (made) texts_.push_back(text);
    return found->second;
}

std::uint32_t JobContexts::frame_of(const Key& key) {
    const auto [found, made] = frame_numbers_.try_emplace(key, static_cast<std::uint32_t>(frames.size()));
    if (made)
        frames.push_back({key.kind, texts_[key.module], texts_[key.build_id], key.offset, key.is_innermost,
                          texts_[key.function], key.line});
    return found->second;
}

std::uint32_t JobContexts::node_of(std::uint32_t caller, std::uint32_t frame) {
    const auto [found, made] =
        node_numbers_.try_emplace(std::uint64_t{caller} << 32U | frame, static_cast<std::uint32_t>(nodes.size()));
    if (made) nodes.push_back({caller, frame});
    return found->second;
}

std::vector<std::uint32_t> JobContexts::add(const SectionReader& section, std::int32_t process) {
    if (nodes.empty()) nodes.emplace_back();
    const SectionContexts from(section);
    // Texts are read once a section, not once a frame.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> modules;
    for (std::uint32_t i = 0; i < from.modules(); ++i)
        modules.emplace_back(text_of(from.module(i)), text_of(from.build_id(i)));
    const std::uint32_t no_text = text_of("");
    std::unordered_map<std::uint64_t, std::uint32_t> texts;
    const auto text_at = [&](std::uint64_t at) {
        const auto [found, made] = texts.try_emplace(at, 0);
        if (made) found->second = text_of(from.text(at));
        return found->second;
    };
    std::vector<std::uint32_t> out(from.size(), 0);
    for (std::uint32_t i = 1; i < from.size(); ++i) {
        const ContextNode& one = from.at(i);
        Key key{no_text, no_text, no_text, 0, 0, one.kind, one.is_innermost != 0};
        if (one.kind == ContextKind::native) {
            key.offset = one.offset;
            if (one.module != 0 && one.module < modules.size())
                std::tie(key.module, key.build_id) = modules[one.module];
        } else if (one.kind == ContextKind::python) {
            key.module = text_at(one.module);
            key.function = text_at(one.offset >> 32U);
            key.line = static_cast<std::uint32_t>(one.offset);
        } else if (one.kind == ContextKind::region) {
            key.function = text_of(from.region(one.offset));
        }
        out[i] = node_of(out[one.parent], frame_of(key));
        if (const std::uint64_t samples = one.samples.load(std::memory_order_relaxed))
            sums.push_back({out[i], process, samples, one.cpu_ns.load(std::memory_order_relaxed)});
    }
    return out;
}

std::vector<std::uint32_t> JobContexts::add(const std::vector<ContextInfo>& contexts, std::int32_t process) {
    if (nodes.empty()) nodes.emplace_back();
    std::vector<std::uint32_t> out(contexts.size(), 0);
    for (std::size_t i = 1; i < contexts.size(); ++i) {
        const ContextInfo& one = contexts[i];
        out[i] = node_of(out[one.parent], frame_of({text_of(one.module), text_of(one.build_id), text_of(one.function),
                                                    one.line, one.offset, one.kind, one.is_innermost}));
        if (one.samples > 0)
            sums.push_back({out[i], process, one.samples, static_cast<std::uint64_t>(std::llround(one.cpu_s * 1e9))});
    }
    return out;
}

void JobContexts::add(const JobContexts& other, std::int32_t first) {
    if (nodes.empty()) nodes.emplace_back();
    std::vector<std::uint32_t> numbers;
    numbers.reserve(other.frames.size());
    for (const SampledFrame& one : other.frames)
        numbers.push_back(frame_of({text_of(one.module), text_of(one.build_id), text_of(one.function), one.line,
                                    one.offset, one.kind, one.is_innermost}));
    std::vector<std::uint32_t> found(other.nodes.size(), 0);
    for (std::size_t i = 1; i < other.nodes.size(); ++i)
        found[i] = node_of(found[other.nodes[i].parent], numbers[other.nodes[i].frame]);
    sums.reserve(sums.size() + other.sums.size());
    for (const ContextSum& one : other.sums)
        sums.push_back({found[one.context], first + one.process, one.samples, one.cpu_ns});
}

std::string ReadContexts::packed() const {
    Packer out;
    out.value(std::uint64_t{contexts.frames.size()});
    for (const SampledFrame& one : contexts.frames) {
        out.value(one.kind);
        out.value(one.offset);
        out.value(one.line);
        out.value(static_cast<std::uint32_t>(one.is_innermost));
        for (const std::string* const text : {&one.module, &one.build_id, &one.function}) out.text(*text);
    }
    out.list(contexts.nodes);
    out.list(contexts.sums);
    out.list(ranks);
    return out.take();
}

void ReadContexts::append(std::string_view packed) {
    Unpacker from(packed);
    JobContexts other;
    constexpr std::size_t longest = 4096;  // as sections' texts are read
    for (auto frames = from.value<std::uint64_t>(); frames > 0; --frames) {
        SampledFrame& one = other.frames.emplace_back();
        one.kind = from.value<ContextKind>();
        one.offset = from.value<std::uint64_t>();
        one.line = from.value<std::uint32_t>();
        one.is_innermost = from.value<std::uint32_t>() != 0;
        for (std::string* const text : {&one.module, &one.build_id, &one.function})
            *text = base::printable(from.text(), longest);
    }
    other.nodes = from.list<JobContext>();
    other.sums = from.list<ContextSum>();
    const auto others = from.list<std::int32_t>();
    bool is_right = from.is_at_end();
    for (std::size_t i = 1; i < other.nodes.size() && is_right; ++i)
        is_right = other.nodes[i].parent < i && other.nodes[i].frame < other.frames.size();
    for (const ContextSum& one : other.sums)
        is_right = is_right && one.context < other.nodes.size() && one.process >= 0 &&
                   static_cast<std::size_t>(one.process) < others.size();
    if (!is_right) Unpacker::refuse();
    contexts.add(other, static_cast<std::int32_t>(ranks.size()));
    ranks.insert(ranks.end(), others.begin(), others.end());
}

ReadContexts read_contexts(const std::vector<std::string>& files, unsigned threads, Share share) {
    struct Part {
        JobContexts contexts;
        std::vector<std::int32_t> ranks;
    };
    if (share.of == 0 || share.number >= share.of)
        fail("share ", share.number, " of ", share.of, ": give a number below that of the shares");
    std::vector<std::unique_ptr<const Mapping>> mappings;
    std::vector<SectionReader> sections;
    for (const std::string& file : files) {
        const Mapping& mapping = *mappings.emplace_back(std::make_unique<const Mapping>(file));
        for_each_section(mapping, file, [&](const SectionReader& section) {
            if (section.header().rank.load(std::memory_order_acquire) >= 0) sections.push_back(section);
        });
    }
    const auto cut = [&](std::uint32_t number) {
        return sections.begin() + static_cast<std::ptrdiff_t>(sections.size() * number / share.of);
    };
    sections = std::vector<SectionReader>(cut(share.number), cut(share.number + 1));
    if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t parts = std::min<std::size_t>(threads, std::max<std::size_t>(1, sections.size()));
    const auto read = [&](std::size_t part) {
        Part out;
        for (std::size_t i = sections.size() * part / parts; i < sections.size() * (part + 1) / parts; ++i) {
            out.contexts.add(sections[i], static_cast<std::int32_t>(out.ranks.size()));
            out.ranks.push_back(sections[i].header().rank.load());
        }
        return out;
    };
    std::vector<std::future<Part>> others;
    for (std::size_t part = 1; part < parts; ++part) others.push_back(std::async(std::launch::async, read, part));
    Part first = read(0);
    // In the order of processes, each one's frames in its own order: numbers are those that one thread gives.
    ReadContexts out{std::move(first.contexts), std::move(first.ranks)};
    for (auto& other : others) {
        const Part part = other.get();
        out.contexts.add(part.contexts, static_cast<std::int32_t>(out.ranks.size()));
        out.ranks.insert(out.ranks.end(), part.ranks.begin(), part.ranks.end());
    }
    return out;
}

}  // namespace palmette::trace
