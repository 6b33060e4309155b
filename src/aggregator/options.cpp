#include "aggregator/options.hpp"

#include <string_view>

#include "palmette/base/error.hpp"

namespace palmette::aggregator {
namespace {

using aggregate::Address;
using aggregate::Limits;

void set(Options& options, std::string_view name, const std::string& value) {
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
    if (options.key_path.empty())
        base::fail("--key FILE is missing: palmette aggregator token --new-key FILE makes a key");
    return options;
}

}  // namespace palmette::aggregator
