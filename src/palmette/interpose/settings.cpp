#include "palmette/interpose/settings.hpp"
#include "palmette/base/hash.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
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
#include "palmette/runtime/state/control.hpp"

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

bool flag(Settings& settings, const settings::Setting& setting) {
    const std::string value = value_of(setting);
    if (value == "1" || value == "true" || value == "yes" || value == "on") return true;
    if (value == "0" || value == "false" || value == "no" || value == "off") return false;
    complain(settings, base::cat(setting.name, "='", value, "' is neither 1 nor 0; taken as ", setting.default_value));
    return setting.default_value == "1";
}

std::int64_t count_in(std::string_view text, std::int64_t otherwise) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : otherwise;
}

std::int64_t count(Settings& settings, const settings::Setting& setting) {
    const std::string text = value_of(setting);
    const std::int64_t usual = count_in(setting.default_value, 0);
    const std::int64_t value = count_in(text, -1);
    if (value >= 0) return value;
    complain(settings, base::cat(setting.name, "='", text, "' is no count; taken as ", usual));
    return usual;
}

/// 0 or a percentage of at most 50, as in python/palmette/settings.py; nothing where it is neither.
std::optional<double> share_of(const std::string& text) {
    if (text == "0") return 0.0;
    double percent = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), percent, std::chars_format::fixed);
    if (error != std::errc() || std::string_view(end, text.data() + text.size()) != "%") return std::nullopt;
    if (!(percent >= 0 && percent <= 50)) return std::nullopt;
    return percent / 100;
}

void read_forced(Settings& settings, select::Function function) {
    const std::string name = runtime::setting_of(function);
    const char* value = text_of(name.c_str());
    if (!value || !*value) return;
    hash_field(settings.hash, name + "=" + value);
    try {
        settings.forced[static_cast<std::size_t>(function)] = runtime::forced_by(function, value, name);
    } catch (const base::Error& error) {
        complain(settings, base::cat(named(name), ": ", error.what(), "; the setting is ignored"));
    }
}

/// Hashes each setting's value, and the undeclared names, which are reported to the user.
void read_values(Settings& settings) {
    constexpr std::uint64_t start = base::fnv1a_start;
    settings.values_hash = start;
    for (const settings::Setting& setting : settings::all) {
        std::uint64_t hash = start;
        // A table counts by its contents, which may lie under another name on another host.
        const bool is_table = setting.name == std::string_view(settings::table.name);
        hash_field(hash, is_table && !value_of(setting).empty() ? settings.table.to_json().dump() : value_of(setting));
        settings.values.emplace_back(setting.name, hash);
        hash_field(settings.values_hash, base::cat(hash));
    }
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
    std::uint64_t hash = start;
    for (const std::string& name : unknown) {
        hash_field(hash, name);
        const auto now = std::ranges::find(settings::former, name, &settings::Former::name);
        complain(settings, now != settings::former.end()
                               ? base::cat(name, " has no effect: it ", now->now)
                               : base::cat(name, " is no setting and has no effect (`palmette settings` lists them)"));
    }
    settings.values.emplace_back("undeclared PALMETTE_ names", hash);
    hash_field(settings.values_hash, base::cat(hash));
}

/// Checks files that are used later, where their absence would go unnoticed.
void complain_of_files(Settings& settings) {
    for (const auto* const setting : {&settings::profile, &settings::trace})
        if (!value_of(*setting).empty() && !dlsym(RTLD_DEFAULT, "palmette_record_is_on"))
            complain(settings, base::cat(setting->name,
                                         " is set and the library that records isn't preloaded; start the "
                                         "job with `palmette run --profile DIR` or `--trace DIR`"));
    const std::string matrix = value_of(settings::matrix);
    if (matrix.empty()) return;
    const std::filesystem::path folder = std::filesystem::path(matrix).parent_path();
    if (!folder.empty() && access(folder.c_str(), W_OK) != 0)
        complain(settings, base::cat("PALMETTE_MATRIX=", matrix, ": no file can be written there; make the folder"));
    if (!dlsym(RTLD_DEFAULT, "palmette_counts_messages"))
        complain(settings,
                 "PALMETTE_MATRIX is set and the library that counts messages isn't preloaded; start the job "
                 "with `palmette run --matrix FILE`");
}

}  // namespace

bool is_switched_off() { return value_of(settings::enable) == "0"; }

Settings settings_from_environment() {
    Settings out;
    out.hash = base::fnv1a_start;
    for (const std::string& mistake : settings_files().mistakes) complain(out, mistake);
    out.enable = flag(out, settings::enable);
    hash_field(out.hash, out.enable ? "on" : "off");
    out.topology = value_of(settings::topology);
    hash_field(out.hash, out.topology);
    out.aggregator_token = value_of(settings::aggregator_token);
    hash_field(out.hash, out.aggregator_token.empty() ? "no aggregators" : "aggregators");
    out.sharp = value_of(settings::sharp);
    if (const auto expected = base::expected_instead(settings::sharp.kind, out.sharp); !expected.empty()) {
        complain(out, base::cat(settings::sharp.name, "='", out.sharp, "': expected ", expected, "; taken as auto"));
        out.sharp = "auto";
    }
    hash_field(out.hash, out.sharp == "off" ? "no switches" : "switches");
    if (const std::string path = value_of(settings::table); !path.empty()) {
        try {
            out.table = select::Table::from_file(path);
            hash_field(out.hash, out.table.to_json().dump());
        } catch (const base::Error& error) {
            complain(out, base::cat(named(settings::table.name), ": ", error.what(), "; the built-in table is used"));
        }
    }
    hash_field(out.hash, std::to_string(select::Table::built_in_digest()));
    for (std::size_t f = 0; f < select::all_function_count; ++f) read_forced(out, static_cast<select::Function>(f));
    out.shared = flag(out, settings::shared);
    hash_field(out.hash, out.shared ? "shared" : "apart");
    out.reproducible = flag(out, settings::reproducible);
    hash_field(out.hash, out.reproducible ? "reproducible" : "placed");
    out.reorder = flag(out, settings::reorder);
    hash_field(out.hash, out.reorder ? "reorder" : "in order");
    const std::string grids = value_of(settings::grids);
    const auto purpose = runtime::grid_purpose_named(grids);
    out.grids = purpose.value_or(topology::GridPurpose::halo);
    if (!purpose)
        complain(out, base::cat(settings::grids.name, "='", grids, "' is none of halo and exchange; taken as halo"));
    hash_field(out.hash, out.grids == topology::GridPurpose::exchange ? "grids for exchanges" : "grids for halos");
    const std::string report = value_of(settings::report);
    out.report = report == "0" ? std::string() : report;
    hash_field(out.hash, out.report.empty() ? "no report" : "report");
    const std::string joblog = value_of(settings::joblog);
    if (base::expected_instead(settings::joblog.kind, joblog).empty())
        out.joblog = joblog == "0" ? std::string() : joblog;
    else
        complain(out, base::cat(settings::joblog.name, "='", joblog,
                                "' is none of 0, syslog, syslog:/SOCKET and a path "
                                "that begins with /; no line is written"));
    const std::string verbose = value_of(settings::verbose);
    out.verbose = verbose == "1" ? 1 : verbose == "2" ? 2 : 0;
    if (verbose != "0" && out.verbose == 0)
        complain(out, base::cat(settings::verbose.name, "='", verbose, "' is none of 0, 1 and 2; taken as 0"));
    out.check = flag(out, settings::check);
    hash_field(out.hash, out.check ? "check" : "no check");
    out.device_check = flag(out, settings::device_check);
    hash_field(out.hash, out.device_check ? "device check" : "host memory");
    const std::string takes = value_of(settings::device_mpi);
    if (takes == "0" || takes == "1") out.device_mpi = takes == "1";
    if (takes != "auto" && !out.device_mpi)
        complain(out, base::cat(settings::device_mpi.name, "='", takes, "' is not auto, 0 or 1"));
    hash_field(out.hash, base::cat("device MPI ", takes));
    const std::string path = value_of(settings::device_path);
    using DevicePath = Settings::DevicePath;
    out.device_path = path == "staging" ? DevicePath::staging
                      : path == "ipc"   ? DevicePath::ipc
                      : path == "nccl"  ? DevicePath::nccl
                                        : DevicePath::automatic;
    if (path != "auto" && out.device_path == DevicePath::automatic)
        complain(out, base::cat(settings::device_path.name, "='", path,
                                "' is none of auto, staging, ipc and nccl; taken as auto"));
    hash_field(out.hash, base::cat("device path ", static_cast<int>(out.device_path)));
    out.nccl = value_of(settings::nccl);
    out.nccl_timeout_s = std::max<std::int64_t>(count(out, settings::nccl_timeout), 1);
    hash_field(out.hash, base::cat("nccl ", out.nccl_timeout_s));
    // With PALMETTE_CHECK calls are checked from the first one on.
    out.serve_after = out.check ? 0 : count(out, settings::serve_after);
    hash_field(out.hash, base::cat("after ", out.serve_after));
    const std::string compare = value_of(settings::compare);
    const std::string usual{settings::compare.default_value};
    out.compare = share_of(compare).value_or(share_of(usual).value_or(0));
    if (!share_of(compare))
        complain(out, base::cat(settings::compare.name, "='", compare,
                                "' is neither 0 nor a percentage of at most 50; taken as ", usual));
    hash_field(out.hash, base::cat("compare ", out.compare));
    const std::string wait = value_of(settings::wait);
    using Policy = runtime::Waiting::Policy;
    out.waiting = wait == "mpi" ? Policy::mpi : wait == "poll" ? Policy::poll : Policy::automatic;
    if (wait != "auto" && out.waiting == Policy::automatic)
        complain(out, base::cat(settings::wait.name, "='", wait, "' is none of auto, mpi and poll; taken as auto"));
    if (const char* hosts = std::getenv("PALMETTE_FAKE_HOSTS"); hosts && *hosts) {
        out.pretended_hosts = hosts;
        hash_field(out.hash, hosts);
    }
    if (const char* delay = std::getenv("PALMETTE_FAKE_DELAY"); delay && *delay) {
        try {
            out.pretended_delay_s = base::parse_duration(delay);
        } catch (const base::Error& error) {
            complain(out, base::cat("PALMETTE_FAKE_DELAY: ", error.what(), "; the setting is ignored"));
        }
        hash_field(out.hash, delay);
    }
    if (const char* nth = std::getenv("PALMETTE_FAKE_REFUSED_READS"); nth && *nth)
        runtime::inject_refusals_from(std::atoll(nth));
    if (const char* most = std::getenv("PALMETTE_FAKE_REORDER_WHOLE"); most && *most) {
        out.reorder_whole_up_to = out.reorder_gathered_up_to = std::atoll(most);
        hash_field(out.hash, most);
    }
    read_values(out);
    complain_of_files(out);
    return out;
}

}  // namespace palmette::interpose
