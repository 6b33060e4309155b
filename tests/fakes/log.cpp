// What a process's driver saw, as JSON: PALMETTE_FAKE_CUDA_LOG names the folder.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "driver.hpp"

namespace fake {
namespace {

#ifdef FAKE_HIP
constexpr const char* log_ending = ".hip.json";
#else
constexpr const char* log_ending = ".json";
#endif

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
    return result + '"';
}

std::string counts(const std::map<std::string, std::uint64_t>& counted) {
    std::string result = "{";
    for (const auto& [name, count] : counted) {
        result += (result.size() > 1 ? ", " : "") + quoted(name) + ": " + std::to_string(count);
    }
    return result + "}";
}

std::string list(const std::vector<std::string>& items, bool raw) {
    std::string result = "[";
    for (const std::string& item : items) result += (result.size() > 1 ? ",\n  " : "") + (raw ? item : quoted(item));
    return result + "]";
}

std::string live(const char* kind, const std::string& library, std::uintptr_t address, std::size_t size) {
    char text[64];
    std::snprintf(text, sizeof text, "\"0x%zx\"", static_cast<std::size_t>(address));
    return "{\"kind\": " + quoted(kind) + ", \"library\": " + quoted(library) + ", \"address\": " + text +
           ", \"size\": " + std::to_string(size) + "}";
}

}  // namespace

void Driver::created(const Context& context) {
    created_contexts.push_back("{\"device\": " + std::to_string(context.device) +
                               ", \"primary\": " + (context.primary ? "true" : "false") +
                               ", \"library\": " + quoted(context.library) + "}");
}

void Driver::write_log() {
    const char* folder = std::getenv("PALMETTE_FAKE_CUDA_LOG");
    std::string calls;
    for (const Counted* f = all_functions(); f != nullptr; f = f->next) {
        if (f->total == 0) continue;
#ifdef FAKE_HIP
        if (f->name[0] == 'c') continue;  // HIP's functions call CUDA's
#endif
        calls += (calls.empty() ? "" : ",\n  ") + quoted(f->name) + ": " + counts(f->calls);
    }
    if (folder == nullptr || calls.empty()) return;
    std::vector<std::string> objects;
    for (const auto& [at, a] : memory.all()) objects.push_back(live(name_of(a->kind), a->library, at, a->size));
    const auto add_all = [&](const char* kind, const auto& all) {
        for (const auto& [handle, object] : all) {
            objects.push_back(live(kind, object->library, reinterpret_cast<std::uintptr_t>(handle), 0));
        }
    };
    add_all("stream", all_streams);
    add_all("event", events);
    add_all("module", modules);
    add_all("physical", physical);
    add_all("context", contexts);
    for (const auto& [handle, pool] : pools) {
        if (!pool->standard) objects.push_back(live("memory pool", pool->library, 0, 0));
    }
    for (const auto& context : primary) {
        if (context->retained > 0) objects.push_back(live("primary context", context->library, 0, 0));
    }
    const std::string path = std::string(folder) + "/" + std::to_string(getpid()) + log_ending;
    const std::string unfinished = path + ".new";
    std::FILE* const file = std::fopen(unfinished.c_str(), "we");
    if (file == nullptr) return;
    std::fprintf(file,
                 "{\"process\": %d,\n \"program\": %s,\n \"settings\": %s,\n \"calls\": {%s},\n"
                 " \"contexts_created\": %s,\n \"live\": %s,\n \"bytes\": %s,\n \"kernels\": %s,\n"
                 " \"late_errors\": %s}\n",
                 getpid(), quoted(base_name(program_invocation_name)).c_str(), quoted(settings.text).c_str(),
                 calls.c_str(), list(created_contexts, true).c_str(), list(objects, true).c_str(),
                 counts(bytes).c_str(), counts(kernels).c_str(), list(late_errors, false).c_str());
    std::fclose(file);
    std::rename(unfinished.c_str(), path.c_str());
}

}  // namespace fake
