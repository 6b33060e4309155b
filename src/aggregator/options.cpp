#include "aggregator/options.hpp"

#include <charconv>
#include <string_view>
#include <system_error>

#include "palmette/base/error.hpp"

namespace palmette::aggregator {
namespace {

using aggregate::Address;
using aggregate::Limits;

template <class T>
T whole(std::string_view name, std::string_view text, T least, T most) {
    T number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < least || number > most)
        base::fail("--", name, " ", text, ": expected a whole number from ", least, " to ", most);
    return number;
}

/// Whether it is an option of a trial.
bool set_trial(Options& options, std::string_view name, const std::string& value) {
    if (name == "try") {
        if (!options.trial) options.trial.emplace();
        options.trial->daemon = Address::read(value);
        return true;
    }
    if (!options.trial) return false;
    if (name == "token") {
        options.trial->token_path = value;
    } else if (name == "members") {
        options.trial->members = whole<std::uint16_t>(name, value, 1, 1024);
    } else if (name == "bytes") {
        options.trial->bytes = whole<std::uint64_t>(name, value, 0, std::uint64_t{1} << 30);
    } else if (name == "chunk") {
        options.trial->chunk_bytes = whole<std::uint32_t>(name, value, 32, aggregate::most_chunk_bytes);
    } else {
        return false;
    }
    return true;
}

void set(Options& options, std::string_view name, const std::string& value) {
    if (set_trial(options, name, value)) return;
    if (name == "listen") {
        options.daemon.listen = Address::read(value);
    } else if (name == "key") {
        options.key_path = value;
    } else if (name == "parent") {
        options.daemon.parent = Address::read(value);
    } else if (name == "profile") {
        options.daemon.limits = Limits::of_profile(value);
    } else if (name == "name") {
        options.daemon.name = value;
    } else if (name == "status") {
        options.daemon.status_path = value;
    } else if (name == "user") {
        options.user = value;
    } else {
        base::fail("--", name, ": no such option; see --help");
    }
}

void read_file(Options& options, const std::string& path) {
    const base::Json file = base::Json::parse_file(path);
    for (const auto& [name, value] : file.members(path)) {
        if (name != "limits") set(options, name, value.string(base::cat(path, ": ", name)));
    }
    // After the profile, wherever it stands.
    if (const base::Json* limits = file.find("limits"))
        options.daemon.limits.read(*limits, base::cat(path, ": limits"));
}

}  // namespace

Options read_options(const std::vector<std::string>& words) {
    Options options;
    options.daemon.listen = {"127.0.0.1", 7117};
    std::vector<std::pair<std::string_view, std::string>> given;
    for (std::size_t at = 0; at < words.size(); ++at) {
        std::string_view word = words[at];
        if (word == "--help" || word == "-h") {
            options.help = true;
            return options;
        }
        if (!word.starts_with("--")) base::fail("'", word, "': expected an option; see --help");
        word.remove_prefix(2);
        const std::size_t equals = word.find('=');
        if (equals != std::string_view::npos) {
            given.emplace_back(word.substr(0, equals), word.substr(equals + 1));
        } else if (at + 1 < words.size()) {
            given.emplace_back(word, words[++at]);
        } else {
            base::fail("--", word, ": expected a value");
        }
        if (given.back().first == "config") {
            read_file(options, given.back().second);
            given.pop_back();
        }
    }
    for (const auto& [name, value] : given) set(options, name, value);
    if (options.trial && options.trial->token_path.empty())
        base::fail("--token FILE is missing: palmette-aggregator token -o FILE makes a token");
    if (!options.trial && options.key_path.empty())
        base::fail("--key FILE is missing: palmette-aggregator token --new-key FILE makes a key");
    return options;
}

}  // namespace palmette::aggregator
