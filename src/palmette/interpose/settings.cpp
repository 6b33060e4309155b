#include "palmette/interpose/settings.hpp"
#include "palmette/base/hash.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/base/never_destroyed.hpp"
#include "palmette/base/settings_files.hpp"
#include "palmette/base/units.hpp"
#include "palmette/interpose/declared_settings.hpp"
#include "palmette/interpose/settings_list.hpp"
#include "palmette/node/shared_single_copy.hpp"
#include "palmette/runtime/reorder/grid_purpose.hpp"
#include "palmette/runtime/settings/control.hpp"

namespace palmette::interpose {
namespace {

using runtime::hash_field;
using runtime::Settings;

/// What files say where the environment doesn't; read once.
const base::SettingsFiles& settings_files() {
    static const base::NeverDestroyed files([] {
#if defined(PALMETTE_ABI_SMPI)
        return base::SettingsFiles();  // a simulated cluster has its own
#else
        const char* site = std::getenv(settings::site.name);
        Dl_info here{};
        const bool known = dladdr(reinterpret_cast<const void*>(&settings_from_environment), &here) != 0;
        return base::read_settings_files(site ? site : "", known && here.dli_fname ? here.dli_fname : "",
                                         settings::declared());
#endif
    }());
    return *files;
}

/// A setting's text from the environment, otherwise from a file; null where neither has it. An empty one stands for the
/// default.
const char* text_of(const char* name) {
    if (const char* value = std::getenv(name)) return value;
    const auto& values = settings_files().values;
    const auto found = values.find(std::string_view(name));
    return found == values.end() ? nullptr : found->second.text.c_str();
}

std::string value_of(const settings::Setting& setting) {
    const char* value = text_of(setting.name);
    return value && *value ? std::string(value) : std::string(setting.default_value);
}

/// A setting's name for complaints: with its line, where a file has it.
std::string named(std::string_view name) {
    const auto& values = settings_files().values;
    const auto found = values.find(name);
    if (found == values.end() || std::getenv(std::string(name).c_str())) return std::string(name);
    return base::cat(found->second.where, ": ", name);
}

void complain(Settings& settings, const std::string& text) {
    settings.warnings += (settings.warnings.empty() ? "" : "; ") + base::printable(text);
}

/// A setting's text; its default, and a complaint, where its kind doesn't allow the text.
std::string checked(Settings& settings, const settings::Setting& setting) {
    std::string text = value_of(setting);
    const std::string expected =
        text.empty() ? std::string() : base::expected_instead(setting.kind, setting.choices, text);
    if (expected.empty()) return text;
    const std::string_view usual = setting.default_value;
    complain(settings, base::cat(named(setting.name), "='", text, "': expected ", expected,
                                 usual.empty() ? "; the setting is ignored" : "; taken as ", usual));
    return std::string(usual);
}

bool flag(Settings& settings, const settings::Setting& setting) { return checked(settings, setting) == "1"; }

std::int64_t count(Settings& settings, const settings::Setting& setting) {
    return std::atoll(checked(settings, setting).c_str());
}

/// A text that stands for none is empty.
std::string text_unless(std::string_view none, std::string text) { return text == none ? std::string() : text; }

/// 0 or a percentage.
double share(Settings& settings, const settings::Setting& setting) {
    const std::string text = checked(settings, setting);
    double percent = 0;
    std::from_chars(text.data(), text.data() + text.size(), percent, std::chars_format::fixed);
    return percent / 100;
}

void read_forced(Settings& settings) {
    const std::string text = checked(settings, settings::force);
    for (const auto& [name, algorithm] : base::forced_algorithms(text)) {
        const select::Function function = select::any_function_named(name);
        try {
            settings.forced[static_cast<std::size_t>(function)] =
                runtime::forced_by(function, algorithm, settings::force.name);
        } catch (const base::Error& error) {
            complain(settings, base::cat(named(settings::force.name), ": ", name, "=", algorithm, ": ", error.what(),
                                         "; this part is ignored"));
        }
    }
}

/// ,mpi and ,no-mpi say whether the MPI takes device memory itself.
void read_device(Settings& settings) {
    const std::string text = checked(settings, settings::device);
    const std::string path = text.substr(0, text.find(','));
    if (text != path) settings.device_mpi = text.ends_with(",mpi");
    using DevicePath = Settings::DevicePath;
    settings.device_check = path != "off";
    settings.device_path = path == "staging" ? DevicePath::staging
                           : path == "ipc"   ? DevicePath::ipc
                           : path == "nccl"  ? DevicePath::nccl
                                             : DevicePath::automatic;
}

/// What the ranks of a job must agree on, and may differ in.
class Hashes {
  public:
    explicit Hashes(Settings& settings) : settings_(settings) {}

    void add(std::string name, std::string_view value, settings::Agree agree, bool present = true) {
        std::uint64_t hash = base::fnv1a_start;
        hash_field(hash, value);
        hash_field(settings_.values_hash, base::cat(hash));
        if (agree != settings::Agree::no)
            hash_field(settings_.hash, agree == settings::Agree::value ? value : present ? "there" : "not there");
        settings_.values.emplace_back(std::move(name), hash);
    }

    void add(const settings::Setting& setting) {
        const std::string value = value_of(setting);
        const bool present = !value.empty() && value != "0" && value != "off";
        // A table counts by its contents, which may lie under another name on another host.
        const bool is_table = setting.name == std::string_view(settings::table.name) && present;
        add(setting.name, is_table ? settings_.table.to_json().dump() : value, setting.agree, present);
    }

  private:
    Settings& settings_;
};

/// Undeclared PALMETTE_ names, which are reported to the user.
std::string complain_of_unknown(Settings& settings) {
    std::vector<std::string> unknown;
    for (char** entry = environ; *entry; ++entry) {
        const std::string_view text(*entry);
        const std::string_view name = text.substr(0, text.find('='));
        const auto is_name = [&](const settings::Setting& setting) { return name == setting.name; };
        const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
        if (name.starts_with("PALMETTE_") && std::ranges::none_of(settings::all, is_name) &&
            std::ranges::none_of(settings::internal_prefixes, begins))
            unknown.emplace_back(name);
    }
    std::ranges::sort(unknown);
    std::string all;
    for (const std::string& name : unknown) {
        all += name + "\n";
        const auto now = std::ranges::find(settings::former, name, &settings::Former::name);
        complain(settings, now != settings::former.end()
                               ? base::cat(name, " has no effect: it ", now->now)
                               : base::cat(name, " is no setting and has no effect (`palmette settings` lists them)"));
    }
    return all;
}

/// PALMETTE_FAKE_ variables of tests.
void read_for_tests(Settings& out, Hashes& hashes) {
    const auto value = [&](const char* name) {
        const char* text = std::getenv(name);
        const std::string found = text ? text : "";
        if (!found.empty()) hashes.add(name, found, settings::Agree::value);
        return found;
    };
    out.pretended_hosts = value("PALMETTE_FAKE_HOSTS");
    if (const std::string delay = value("PALMETTE_FAKE_DELAY"); !delay.empty()) {
        try {
            out.pretended_delay_s = base::parse_duration(delay);
        } catch (const base::Error& error) {
            complain(out, base::cat("PALMETTE_FAKE_DELAY: ", error.what(), "; the setting is ignored"));
        }
    }
    if (const std::string seconds = value("PALMETTE_FAKE_NCCL_TIMEOUT"); !seconds.empty())
        out.nccl_timeout_s = std::max(std::atoll(seconds.c_str()), 1LL);
    if (const std::string nth = value("PALMETTE_FAKE_REFUSED_READS"); !nth.empty())
        node::inject_refusals_from(std::atoll(nth.c_str()));
    if (const std::string most = value("PALMETTE_FAKE_REORDER_WHOLE"); !most.empty())
        out.reorder_whole_up_to = out.reorder_gathered_up_to = std::atoll(most.c_str());
}

/// Checks files that are used later, where their absence would go unnoticed.
void complain_of_files(Settings& settings) {
    for (const auto* const setting : {&settings::profile, &settings::trace})
        if (!value_of(*setting).empty() && !dlsym(RTLD_DEFAULT, "palmette_record_is_on"))
            complain(settings, base::cat(setting->name,
                                         " is set and the library that records isn't preloaded; start the "
                                         "job with `palmette run --profile DIR` or `--trace DIR`"));
}

}  // namespace

std::string setting_text(const settings::Setting& setting) { return value_of(setting); }

bool is_switched_off() { return value_of(settings::enable) == "0"; }

Settings settings_from_environment() {
    Settings out;
    for (const std::string& mistake : settings_files().mistakes) complain(out, mistake);
    out.enable = flag(out, settings::enable);
    out.topology = value_of(settings::topology);
    if (const std::string path = value_of(settings::table); !path.empty()) {
        try {
            out.table = select::Table::from_file(path);
        } catch (const base::Error& error) {
            complain(out, base::cat(named(settings::table.name), ": ", error.what(), "; the built-in table is used"));
        }
    }
    read_forced(out);
    read_device(out);
    out.aggregator_token = value_of(settings::aggregator_token);
    out.sharp = checked(out, settings::sharp);
    out.shared = flag(out, settings::shared);
    out.reproducible = flag(out, settings::reproducible);
    const std::string reorder = checked(out, settings::reorder);
    out.reorder = reorder != "off";
    out.grids = runtime::grid_purpose_named(reorder).value_or(topology::GridPurpose::halo);
    out.report = text_unless("0", checked(out, settings::report));
    out.joblog = text_unless("0", checked(out, settings::joblog));
    out.verbose = static_cast<int>(count(out, settings::verbose));
    out.check = flag(out, settings::check);
    out.nccl = value_of(settings::nccl);
    // With PALMETTE_CHECK calls are checked from the first one on.
    out.serve_after = out.check ? 0 : count(out, settings::serve_after);
    out.compare = share(out, settings::compare);
    const std::string wait = checked(out, settings::wait);
    using Policy = runtime::Waiting::Policy;
    out.waiting = wait == "mpi" ? Policy::mpi : wait == "poll" ? Policy::poll : Policy::automatic;

    out.hash = out.values_hash = base::fnv1a_start;
    Hashes hashes(out);
    for (const settings::Setting& setting : settings::all) hashes.add(setting);
    hashes.add("the built-in table", std::to_string(select::Table::built_in_digest()), settings::Agree::value);
    hashes.add("undeclared PALMETTE_ names", complain_of_unknown(out), settings::Agree::no);
    read_for_tests(out, hashes);
    complain_of_files(out);
    return out;
}

}  // namespace palmette::interpose
