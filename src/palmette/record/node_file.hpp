// Where a process's section lies: in the file of its node, which all of its processes map.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace palmette::record {

#if defined(PALMETTE_ABI_SMPI)
/// All ranks are of one process and on one thread; what tells real processes apart is left out, so that two simulations
/// record the same.
inline constexpr bool simulated = true;
#else
inline constexpr bool simulated = false;
#endif

/// A text of the environment; empty where it is unset.
std::string setting(const char* name);
std::string host_name();
/// What the node's file is called: by its host name, and where another kernel's file is called so, which happens to
/// containers, by what tells them apart besides.
std::vector<std::string> names_of_node();
/// The namespace that process ids are of; 0: not known.
std::uint64_t pid_namespace();
/// Makes a folder and its parents, as mkdir -p. What fails shows when a file is made in it.
void make_folder(const std::string& path);

template <std::size_t size>
void put_text(std::array<char, size>& to, std::string_view text) {
    std::memcpy(to.data(), text.data(), std::min(size - 1, text.size()));
}

/// A section of the node's file, mapped. Without memory: errno says why.
struct MappedSection {
    void* memory = nullptr;
    bool is_first = false;  ///< first section of its file
};

/// Begins a section of `bytes` in the file at `path`, which is made where it isn't there. Other processes of the node
/// may do the same. Where that can't be done the file is as it was before, and isn't there if it wasn't. EXDEV: it is
/// another node's.
MappedSection map_section(const std::string& path, std::uint64_t bytes);

/// Whether this process is to say what concerns all of its node: the launcher's first there, or whoever isn't counted.
bool speaks_for_node();

}  // namespace palmette::record
