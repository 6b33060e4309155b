#include "palmette/base/settings_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "palmette/base/text.hpp"

namespace palmette::base {
namespace {

/// Larger files are none of settings.
constexpr std::size_t most_bytes = 65536;

bool take_suffix(std::string_view& text, std::string_view suffix) {
    if (!text.ends_with(suffix)) return false;
    text.remove_suffix(suffix.size());
    return true;
}

std::string_view parent(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view last(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool one_of(std::string_view value, std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, value) != words.end();
}

bool is_count(std::string_view value) {
    return !value.empty() && value.size() <= 9 && value.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A number of digits, with or without a point.
std::optional<double> plain_number(std::string_view text) {
    const std::size_t point = text.find('.');
    const auto digits = [](std::string_view part) {
        return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    };
    if (!digits(text.substr(0, point)) || (point != std::string_view::npos && !digits(text.substr(point + 1))))
        return std::nullopt;
    double number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    return number;
}

bool is_share(std::string_view value) {
    if (value == "0") return true;
    if (!take_suffix(value, "%")) return false;
    const auto percent = plain_number(value);
    return percent && *percent <= 50;
}

bool is_rate(std::string_view value) {
    constexpr std::string_view by_events = ":events";
    if (value.ends_with(by_events)) value.remove_suffix(by_events.size());
    const auto rate = plain_number(value);
    return rate && *rate >= 1 && *rate <= 10'000;
}

/// The text of a file; nothing where there is none. `why`: what is wrong with one that is there.
std::optional<std::string> text_of(const std::string& path, std::string& why) {
    const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        if (errno != ENOENT && errno != ENOTDIR) why = std::strerror(errno);
        return std::nullopt;
    }
    struct stat status{};
    std::string text;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        why = "no plain file";
    else if (static_cast<std::size_t>(status.st_size) > most_bytes)
        why = "larger than 64 KiB";
    while (why.empty()) {
        std::array<char, 4096> part{};
        const ssize_t got = read(file, part.data(), part.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) why = std::strerror(errno);
        if (got <= 0 || text.size() > most_bytes) break;
        text.append(part.data(), static_cast<std::size_t>(got));
    }
    close(file);
    if (!why.empty()) return std::nullopt;
    return text;
}

class Reader {
  public:
    explicit Reader(std::span<const DeclaredSetting> declared) : declared_(declared) {}

    /// False where there is no such file.
    bool settings(const std::string& path) {
        std::string why;
        const std::optional<std::string> text = text_of(path, why);
        if (!why.empty()) {
            out.files.push_back(path);
            out.mistakes.push_back(cat(path, ": can't be read (", why, "); correct it or its permissions"));
            return true;
        }
        if (!text) return false;
        out.files.push_back(path);
        std::map<std::string, std::size_t, std::less<>> lines;
        std::size_t number = 0;
        for (const std::string_view whole : split(*text, '\n')) {
            const std::string where = cat(path, ":", ++number);
            const std::string_view line = trim(whole);
            if (line.empty() || line.front() == '#') continue;
            std::string blanks(line);
            std::ranges::replace(blanks, '\t', ' ');
            if (printable(blanks, most_bytes + 1) != blanks) {
                out.mistakes.push_back(cat(where, ": characters that are no text; correct or remove the line"));
                continue;
            }
            const std::size_t equals = line.find('=');
            const std::string name(trim(line.substr(0, equals)));
            const std::string value(equals == std::string_view::npos ? "" : trim(line.substr(equals + 1)));
            const std::string mistake = equals == std::string_view::npos || name.empty()
                                            ? std::string("expected NAME=VALUE")
                                            : mistake_in(name, value);
            if (!mistake.empty()) {
                out.mistakes.push_back(cat(where, ": ", printable(mistake), "; correct or remove the line"));
            } else if (const auto [first, fresh] = lines.try_emplace(name, number); !fresh) {
                out.mistakes.push_back(
                    cat(where, ": ", name, " stands in line ", first->second, " already; remove one of them"));
            } else {
                out.values[name] = {value, where};
            }
        }
        return true;
    }

    /// A file that is a setting's value by being there.
    bool counts(const std::string& path, std::string_view name) {
        if (access(path.c_str(), F_OK) != 0) return false;
        out.files.push_back(path);
        out.values.try_emplace(std::string(name), SettingsFiles::Value{path, path});
        return true;
    }

    SettingsFiles out;

  private:
    std::string mistake_in(const std::string& name, const std::string& value) const {
        const auto known = std::ranges::find(declared_, name, &DeclaredSetting::name);
        if (known == declared_.end()) return cat(name, " is no setting (`palmette settings` lists them)");
        if (!known->now.empty()) return cat(name, " ", known->now);
        if (!known->in_files) return cat(name, " can't stand in a file, for it belongs to one run");
        std::string expected = value.empty() ? std::string() : expected_instead(known->kind, known->choices, value);
        // The working directory is none of the file's.
        const bool is_path = known->kind == "path" || (known->kind == "report" && value != "0" && value != "1");
        if (expected.empty() && !value.empty() && is_path && value.front() != '/')
            expected = "a path that begins with /";
        return expected.empty() ? std::string() : cat(name, "=", value, ": expected ", expected);
    }

    std::span<const DeclaredSetting> declared_;
};

std::string user_file() {
    const char* config = std::getenv("XDG_CONFIG_HOME");
    if (config && *config) return cat(config, "/palmette/settings");
    const char* home = std::getenv("HOME");
    return home && *home ? cat(home, "/.config/palmette/settings") : std::string();
}

}  // namespace

std::string installation_prefix(std::string_view library) {
    std::string_view folder = parent(library);
    if (take_suffix(folder, "/site-packages/palmette/lib") || take_suffix(folder, "/dist-packages/palmette/lib")) {
        folder = parent(parent(folder));  // lib/python3.11
        take_suffix(folder, "/libexec/palmette");
        return std::string(folder);
    }
    if (one_of(last(folder), {"lib", "lib64"})) return std::string(parent(folder));
    if (last(parent(folder)) == "lib") return std::string(parent(parent(folder)));  // lib/x86_64-linux-gnu
    return {};
}

std::vector<ForcedAlgorithm> forced_algorithms(std::string_view text) {
    std::vector<ForcedAlgorithm> out;
    for (const std::string_view part : split(text, ';')) {
        const std::size_t equals = part.find('=');
        const std::string_view algorithm = equals == std::string_view::npos ? "" : part.substr(equals + 1);
        if (!trim(part).empty()) out.push_back({trim(part.substr(0, equals)), trim(algorithm)});
    }
    return out;
}

std::string expected_instead(std::string_view kind, std::string_view choices, std::string_view value) {
    const std::vector<std::string_view> words = split(choices, ' ');
    const auto is_choice = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
    if (kind == "flag" && !one_of(value, {"0", "1"})) return "0 or 1";
    if (kind == "choice" && !is_choice(value)) {
        std::string listed;
        for (std::size_t i = 0; i < words.size(); ++i)
            listed += cat(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
        return listed;
    }
    if (kind == "count" && !is_count(value)) return "0 or more";
    if (kind == "force") {
        const auto forced = forced_algorithms(value);
        const auto whole = [&](const ForcedAlgorithm& one) {
            return is_choice(one.function) && !one.algorithm.empty();
        };
        if (forced.empty() || !std::ranges::all_of(forced, whole))
            return "FUNCTION=ALGORITHM, several with ;, such as allreduce=ring;bcast=mpi";
    }
    if (kind == "device") {
        std::string_view path = value;
        if (!take_suffix(path, ",no-mpi")) take_suffix(path, ",mpi");
        if (!one_of(path, {"auto", "off", "staging", "ipc", "nccl"}))
            return "auto, off, staging, ipc or nccl, then ,mpi or ,no-mpi or nothing";
    }
    if (kind == "sharp" && value != "auto" && value != "off" && value.find('/') == std::string_view::npos)
        return "auto, off or a path with a /";
    if (kind == "share" && !is_share(value)) return "0 or a percentage such as 1%, at most 50%";
    if (kind == "rate" && !is_share(value) && !is_rate(value))
        return "0, samples a second from 1 to 10000 (1000:events: by the kernel's events), or a percentage such as "
               "0.5%, "
               "at most 50%";
    if (kind == "report" && !one_of(value, {"0", "1"}) && !value.ends_with(".json"))
        return "0, 1 or a path that ends in .json";
    if (kind == "joblog" && !one_of(value, {"0", "syslog"}) && !value.starts_with("/") &&
        !value.starts_with("syslog:/"))
        return "0, syslog, syslog:/SOCKET or a path that begins with /";
    if (kind == "site" && value != "0" && !value.starts_with("/")) return "0 or a folder that begins with /";
    return {};
}

SettingsFiles read_settings_files(std::string_view site, std::string_view library,
                                  std::span<const DeclaredSetting> declared) {
    Reader reader(declared);
    if (site == "0") return std::move(reader.out);
    std::vector<std::string> folders;
    if (!site.empty()) {
        folders.emplace_back(site);
    } else {
        const std::string prefix = installation_prefix(library);
        if (!prefix.empty() && prefix != "/usr") folders.push_back(prefix + "/etc/palmette");
        folders.emplace_back("/etc/palmette");
    }
    // What isn't there costs one look.
    std::erase_if(folders, [](const std::string& folder) { return access(folder.c_str(), F_OK) != 0; });
    if (!site.empty() && folders.empty())
        reader.out.mistakes.push_back(cat("PALMETTE_SITE=", site, ": no such folder; correct it, or 0 for none"));
    const auto first = [&](auto take) { return std::ranges::any_of(folders, take); };
    first([&](const std::string& folder) { return reader.settings(folder + "/settings"); });
    first([&](const std::string& folder) { return reader.counts(folder + "/topology.json", "PALMETTE_TOPOLOGY"); });
    first([&](const std::string& folder) { return reader.counts(folder + "/table.json", "PALMETTE_TABLE"); });
    if (const std::string user = user_file(); !user.empty()) reader.settings(user);
    return std::move(reader.out);
}

}  // namespace palmette::base
