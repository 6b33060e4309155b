#include "palmette/runtime/observe/report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/base/text.hpp"
#include "palmette/base/units.hpp"
#include "palmette/runtime/data/size_class.hpp"
#include "palmette/runtime/observe/report_devices.hpp"
#include "palmette/runtime/observe/report_gain.hpp"

namespace palmette::runtime {
namespace {

using base::Json;
using base::wrapped;

constexpr std::array<const char*, static_cast<std::size_t>(Refusal::count)> sentences{
    "palmette is switched off",
    "called outside of MPI_Init and MPI_Finalize",
    "an inter-communicator",
    "a communicator of one rank",
    "PALMETTE_ settings differ between ranks",
    "arguments that the MPI must judge",
    "chosen",
    "the algorithm's precondition doesn't hold",
    "more message tags than the MPI has",
    "the communicator's state could not be made",
    "512 communicators are served already, which is the most",
    "a datatype that palmette doesn't reduce",
    "a communicator on which no blocking collective was called before",
    "blocks that others forward without knowing their lengths",
    "the MPI's own was faster in this job",
    "done by the MPI to compare it with palmette",
    "the MPI's until a comparison shows that palmette is faster",
    "a communicator on which few collectives were called so far",
    "a rank of the job runs without palmette's library",
    "a communicator with processes from outside of MPI_COMM_WORLD",
    "Level Zero is loaded, so that data may lie in device memory",
    "the MPI takes device memory itself",
    "counts of an alltoallv or alltoallw have changed that had repeated before",
    "lengths of an alltoallv or alltoallw that a plan can't remember",
};

std::int64_t integer(const Json& json, const char* name) { return json.find(name)->integer(name); }

void add(Report::Calls& calls, const Json& item) {
    calls.of_first.add(integer(item, "n"));
    calls.of_others.add(integer(item, "k") - integer(item, "n"));
}

/// What the rows of served calls and of those compared add up to, of so many ranks.
template <class ServedRows, class ComparedRows>
Gain gain_of(const ServedRows& served, const ComparedRows& compared, int ranks) {
    Gain gain;
    for (const auto& [key, row] : served) {
        const auto& [function, size, algorithm, blocking] = key;
        const auto found = blocking ? compared.find({function, size, algorithm}) : compared.end();
        Gain::Kind kind{row.calls.operations(), row.calls.rank_calls(), row.seconds};
        if (found != compared.end()) {
            const auto& pairs = found->second;
            kind.pairs = pairs.pairs;
            kind.open = pairs.plans[static_cast<std::size_t>(select::Verdict::open)] > 0;
            kind.saved_s_a_call = pairs.mpi_s - pairs.ours_s;
            kind.cost_s = pairs.cost_s;
        }
        gain.add(kind, ranks);
    }
    return gain;
}

}  // namespace

const char* sentence_of(Refusal refusal) { return sentences[static_cast<std::size_t>(refusal)]; }

Report::ServedRow& Report::served_row(Function function, std::int64_t block_bytes, const std::string& algorithm,
                                      const std::string& reason, bool blocking) {
    const std::lock_guard lock(mutex_);
    ServedRow& row = served_[{static_cast<std::uint8_t>(function), size_class(block_bytes), algorithm, blocking}];
    row.min_bytes = std::min(row.min_bytes, block_bytes);
    row.max_bytes = std::max(row.max_bytes, block_bytes);
    if (row.reason.empty()) row.reason = reason;
    return row;
}

Report::RefusedRow& Report::refused_row(Function function, Refusal refusal, const std::string& detail) {
    const std::lock_guard lock(mutex_);
    return refused_[{static_cast<std::uint8_t>(function), static_cast<std::uint8_t>(refusal), detail}];
}

Report::ComparisonRow& Report::compared_row(Function function, std::int64_t block_bytes, const std::string& algorithm) {
    const std::lock_guard lock(mutex_);
    return compared_[{static_cast<std::uint8_t>(function), size_class(block_bytes), algorithm}];
}

Report::Calls& Report::by_hosts_row(const std::string& why) {
    const std::lock_guard lock(mutex_);
    return by_hosts_[why];
}

std::int64_t Report::served_calls(Function function) const {
    const std::lock_guard lock(mutex_);
    std::int64_t calls = 0;
    for (const auto& [key, row] : served_)
        if (std::get<0>(key) == static_cast<std::uint8_t>(function)) calls += row.calls.rank_calls();
    return calls;
}

std::pair<std::int64_t, std::int64_t> Report::own_calls() const {
    const std::lock_guard lock(mutex_);
    std::int64_t served = 0;
    std::int64_t left = 0;
    for (const auto& [key, row] : served_) served += row.calls.rank_calls();
    for (const auto& [key, row] : refused_) left += row.calls.rank_calls();
    return {served, left};
}

double Report::ServedRow::mean_seconds() const {
    return seconds / static_cast<double>(std::max<std::int64_t>(calls.rank_calls(), 1));
}

double Report::ServedRow::multiple() const {
    const double limit_s = bound_seconds + crossed.seconds();
    if (bounded == 0 || bounded < calls.operations() || limit_s <= 0) return 0;
    return mean_seconds() * static_cast<double>(bounded) / limit_s;
}

void Report::timed(ServedRow& row, double seconds) {
    const std::lock_guard lock(mutex_);
    row.seconds += seconds;
    row.max_seconds = std::max(row.max_seconds, seconds);
}

void Report::bounded(ServedRow& row, double bound_s) {
    const std::lock_guard lock(mutex_);
    row.bound_seconds += bound_s;
    ++row.bounded;
}

void Report::bounded(ServedRow& row, const model::OwnMessages& messages, const topology::Job& job,
                     const topology::Job& world, topology::Rank world_rank, bool counts) {
    const std::lock_guard lock(mutex_);
    row.crossed.add(messages, job, world, world_rank);
    if (counts) ++row.bounded;
}

void Report::note(const std::string& text) {
    const std::lock_guard lock(mutex_);
    ++notes_[text];
}

Json Report::pack() const {
    Json out = Json::object();
    Json served = Json::array();
    for (const auto& [key, row] : served_) {
        Json item = Json::object();
        item.set("f", static_cast<int>(std::get<0>(key)))
            .set("c", std::get<1>(key))
            .set("a", std::get<2>(key))
            .set("b", std::get<3>(key) ? 1 : 0);
        item.set("n", row.calls.operations())
            .set("k", row.calls.rank_calls())
            .set("l", row.min_bytes)
            .set("h", row.max_bytes)
            .set("s", row.seconds)
            .set("m", row.max_seconds)
            .set("t", row.bound_seconds)
            .set("u", row.bounded)
            .set("r", row.reason);
        if (!row.crossed.empty()) item.set("x", row.crossed.pack());
        served.push(std::move(item));
    }
    Json refused = Json::array();
    for (const auto& [key, row] : refused_) {
        if (row.calls.rank_calls() == 0) continue;
        Json item = Json::object();
        item.set("f", static_cast<int>(std::get<0>(key)))
            .set("w", static_cast<int>(std::get<1>(key)))
            .set("d", std::get<2>(key))
            .set("n", row.calls.operations())
            .set("k", row.calls.rank_calls());
        refused.push(std::move(item));
    }
    Json compared = Json::array();
    for (const auto& [key, row] : compared_) {
        Json item = Json::object();
        Json plans = Json::array();
        for (const std::int64_t n : row.plans) plans.push(n);
        item.set("f", static_cast<int>(std::get<0>(key)))
            .set("c", std::get<1>(key))
            .set("a", std::get<2>(key))
            .set("n", row.pairs)
            .set("o", row.ours_s)
            .set("m", row.mpi_s)
            .set("s", row.cost_s)
            .set("v", std::move(plans));
        compared.push(std::move(item));
    }
    out.set("compared", std::move(compared));
    Json by_hosts = Json::array();
    for (const auto& [why, calls] : by_hosts_) {
        Json item = Json::object();
        item.set("d", why).set("n", calls.operations()).set("k", calls.rank_calls());
        by_hosts.push(std::move(item));
    }
    out.set("by_hosts", std::move(by_hosts));
    Json notes = Json::array();
    for (const auto& [text, times] : notes_) notes.push(text);
    out.set("served", std::move(served)).set("refused", std::move(refused)).set("notes", std::move(notes));
    out.set("topologies", topologies_.pack()).set("refused_reads", refused_reads.load());
    out.set("devices", DeviceReport::at_end().pack());
    return out;
}

void Report::absorb(const Json& other) {
    for (const Json& item : other.find("served")->items("served")) {
        ServedRow& row = served_[{static_cast<std::uint8_t>(integer(item, "f")), static_cast<int>(integer(item, "c")),
                                  item.find("a")->string("a"), integer(item, "b") != 0}];
        add(row.calls, item);
        row.min_bytes = std::min(row.min_bytes, integer(item, "l"));
        row.max_bytes = std::max(row.max_bytes, integer(item, "h"));
        row.seconds += item.find("s")->number("s");
        row.max_seconds = std::max(row.max_seconds, item.find("m")->number("m"));
        row.bound_seconds += item.find("t")->number("t");
        row.bounded += integer(item, "u");
        if (row.reason.empty()) row.reason = item.find("r")->string("r");
        if (const Json* crossed = item.find("x")) row.crossed.absorb(model::CrossedEdges::unpack(*crossed));
    }
    for (const Json& item : other.find("refused")->items("refused")) {
        RefusedRow& row = refused_[{static_cast<std::uint8_t>(integer(item, "f")),
                                    static_cast<std::uint8_t>(integer(item, "w")), item.find("d")->string("d")}];
        add(row.calls, item);
    }
    for (const Json& item : other.find("compared")->items("compared")) {
        ComparisonRow& row = compared_[{static_cast<std::uint8_t>(integer(item, "f")),
                                        static_cast<int>(integer(item, "c")), item.find("a")->string("a")}];
        if (integer(item, "n") > row.pairs) {
            row.ours_s = item.find("o")->number("o");
            row.mpi_s = item.find("m")->number("m");
        }
        row.pairs += integer(item, "n");
        row.cost_s += item.find("s")->number("s");
        std::size_t v = 0;
        for (const Json& n : item.find("v")->items("v")) row.plans.at(v++) += n.integer("v");
    }
    for (const Json& item : other.find("by_hosts")->items("by_hosts"))
        add(by_hosts_[item.find("d")->string("d")], item);
    for (const Json& text : other.find("notes")->items("notes")) ++notes_[text.string("notes")];
    topologies_.absorb(*other.find("topologies"));
    DeviceReport::at_end().absorb(*other.find("devices"));
    refused_reads.add(integer(other, "refused_reads"));
}

void Report::settle(const model::RoundOrder& order, std::int32_t place, std::int32_t count) {
    for (auto& [key, row] : served_)
        if (!row.crossed.empty()) row.crossed.settle(order, place, count);
}

void Report::merge_to_root(MPI_Comm comm, const topology::Job* world) {
    int rank = 0;
    int size = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    constexpr int tag = 7;
    const model::RoundOrder order(world, size);
    const int place = order.place_of(rank);
    settle(order, place, 1);
    for (int distance = 1; distance < size; distance *= 2) {
        if (place % (2 * distance) != 0) {
            const std::string text = pack().dump();
            PMPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, order.rank_at(place - distance), tag, comm);
            return;
        }
        if (place + distance >= size) continue;
        const int other = order.rank_at(place + distance);
        MPI_Status status;
        int length = 0;
        PMPI_Probe(other, tag, comm, &status);
        PMPI_Get_count(&status, MPI_CHAR, &length);
        std::vector<char> text(static_cast<std::size_t>(length));
        PMPI_Recv(text.data(), length, MPI_CHAR, other, tag, comm, MPI_STATUS_IGNORE);
        absorb(Json::parse({text.data(), text.size()}));
        settle(order, place, std::min(2 * distance, size - place));
    }
}

Json Report::to_json(int ranks, double seconds, const Json& job, int aborted_by) const {
    Json out = Json::object();
    out.set("format", "palmette-report").set("version", 1).set("ranks", ranks).set("seconds", seconds);
    if (aborted_by >= 0) out.set("aborted_by_rank", aborted_by);
    if (!served_.empty()) out.set("gain", gain_of(served_, compared_, aborted_by < 0 ? ranks : 1).to_json(seconds));
    Json calls = Json::array();
    for (const auto& [key, row] : served_) {
        Json item = Json::object();
        item.set("function", select::name_of(static_cast<Function>(std::get<0>(key))))
            .set("min_bytes", row.min_bytes)
            .set("max_bytes", row.max_bytes);
        item.set("blocking", std::get<3>(key))
            .set("algorithm", std::get<2>(key))
            .set("reason", row.reason)
            .set("calls", row.calls.operations())
            .set("rank_calls", row.calls.rank_calls());
        item.set("rank_seconds", row.seconds)
            .set("mean_seconds", row.mean_seconds())
            .set("max_seconds", row.max_seconds);
        if (const double multiple = row.multiple(); multiple > 0) item.set("bounds", multiple);
        calls.push(std::move(item));
    }
    Json fallbacks = Json::array();
    for (const auto& [key, row] : refused_) {
        if (row.calls.rank_calls() == 0) continue;
        Json item = Json::object();
        item.set("function", select::name_of(static_cast<Function>(std::get<0>(key))))
            .set("reason", sentence_of(static_cast<Refusal>(std::get<1>(key))));
        if (!std::get<2>(key).empty()) item.set("detail", std::get<2>(key));
        item.set("calls", row.calls.operations()).set("rank_calls", row.calls.rank_calls());
        fallbacks.push(std::move(item));
    }
    Json compared = Json::array();
    for (const auto& [key, row] : compared_) {
        Json item = Json::object();
        item.set("function", select::name_of(static_cast<Function>(std::get<0>(key))))
            .set("max_bytes", largest_of(std::get<1>(key)))
            .set("algorithm", std::get<2>(key))
            .set("pairs", row.pairs)
            .set("ours_seconds", row.ours_s)
            .set("mpi_seconds", row.mpi_s)
            .set("cost_seconds", row.cost_s);
        Json plans = Json::object();
        for (std::size_t v = 0; v < row.plans.size(); ++v)
            plans.set(select::name_of(static_cast<select::Verdict>(v)), row.plans[v]);
        item.set("plans", std::move(plans));
        compared.push(std::move(item));
    }
    Json by_hosts = Json::array();
    for (const auto& [why, row] : by_hosts_) {
        Json item = Json::object();
        item.set("why", why).set("calls", row.operations()).set("rank_calls", row.rank_calls());
        by_hosts.push(std::move(item));
    }
    Json notes = Json::array();
    for (const auto& [text, times] : notes_) notes.push(text);
    out.set("calls", std::move(calls))
        .set("fallbacks", std::move(fallbacks))
        .set("compared", std::move(compared))
        .set("instead_of_aggregators", std::move(by_hosts))
        .set("topologies", topologies_.to_json())
        .set("refused_reads", refused_reads.load())
        .set("notes", std::move(notes))
        .set("job", job);
    if (Json device = DeviceReport::at_end().to_json(); device.is_object()) out.set("device", std::move(device));
    return out;
}

bool Report::has_exchanges() const {
    const auto is_exchange = [](std::uint8_t function) {
        return select::collective_of(static_cast<Function>(function)) == plan::Collective::alltoall;
    };
    return std::any_of(served_.begin(), served_.end(),
                       [&](const auto& row) { return is_exchange(std::get<0>(row.first)); }) ||
           std::any_of(refused_.begin(), refused_.end(), [&](const auto& row) {
               return is_exchange(std::get<0>(row.first)) && row.second.calls.rank_calls() > 0;
           });
}

std::string Report::page(int ranks, double seconds, int aborted_by) const {
    // One rank's counts know operations only where that rank is the first of their communicator.
    const auto count_of = [&](const Calls& calls) {
        return static_cast<long long>(aborted_by >= 0 ? calls.rank_calls() : calls.operations());
    };
    std::string out;
    std::array<char, 512> line{};
    const auto print = [&](const char* format, auto... values) {
        if constexpr (sizeof...(values) == 0) {
            out += format;
        } else {
            std::snprintf(line.data(), line.size(), format, values...);
            out += line.data();
        }
    };
    if (aborted_by < 0)
        print("palmette: %d ranks, %.3g s between MPI_Init and MPI_Finalize\n", ranks, seconds);
    else
        print("palmette: %d ranks; rank %d called MPI_Abort after %.3g s: its own calls\n", ranks, aborted_by, seconds);
    if (served_.empty())
        print("  no call was served\n");
    else
        out += "  " + wrapped(gain_of(served_, compared_, aborted_by < 0 ? ranks : 1).sentence(seconds), 2);
    if (!served_.empty())
        print("  %-20s %15s %9s %10s %7s %10s\n", "collective", "block bytes", "calls", "mean", "bounds", "max");
    for (const auto& [key, row] : served_) {
        if (row.calls.rank_calls() == 0) continue;  // compared, and left to the MPI
        const std::string low = row.min_bytes < 0 ? "differing" : base::format_size(row.min_bytes);
        const std::string bytes = row.min_bytes == row.max_bytes ? low : low + ".." + base::format_size(row.max_bytes);
        const double multiple = row.multiple();
        std::array<char, 16> bounds{};
        if (multiple > 0) std::snprintf(bounds.data(), bounds.size(), multiple < 100 ? "%.2fx" : "%.0fx", multiple);
        print("  %-20s %15s %9lld %10s %7s %10s\n", select::name_of(static_cast<Function>(std::get<0>(key))),
              bytes.c_str(), count_of(row.calls), base::format_duration(row.mean_seconds()).c_str(), bounds.data(),
              base::format_duration(row.max_seconds).c_str());
        out += "      by " + wrapped(std::get<2>(key) + (std::get<3>(key) ? "" : ", nonblocking"), 9);
        // Which row or setting decided; `palmette explain --report` gives the details.
        if (!row.reason.empty()) out += "        " + wrapped(row.reason, 8);
    }
    bool any_refused = false;
    for (const auto& [key, row] : refused_) {
        if (row.calls.rank_calls() == 0) continue;
        if (!any_refused) print("  left to the MPI:\n");
        any_refused = true;
        const std::string why = std::string(sentence_of(static_cast<Refusal>(std::get<1>(key)))) +
                                (std::get<2>(key).empty() ? "" : ": " + std::get<2>(key));
        print("  %-20s %9lld calls  ", select::name_of(static_cast<Function>(std::get<0>(key))), count_of(row.calls));
        out += wrapped(why, 40);
    }
    for (const auto& [why, calls] : by_hosts_) {
        print("  by hosts, not aggregators %5lld calls  ", count_of(calls));
        out += wrapped(why, 40);
    }
    if (!compared_.empty())
        print("  compared with the MPI's own  %15s %9s %10s %10s\n", "block bytes", "pairs", "ours", "the MPI's");
    for (const auto& [key, row] : compared_) {
        const std::int64_t largest = largest_of(std::get<1>(key));
        const std::string bytes = largest < 0 ? "unknown" : "to " + base::format_size(largest);
        print("  %-28s %15s %9lld %10s %10s\n", select::name_of(static_cast<Function>(std::get<0>(key))), bytes.c_str(),
              static_cast<long long>(row.pairs), base::format_duration(row.ours_s).c_str(),
              base::format_duration(row.mpi_s).c_str());
        std::string verdicts;
        for (std::size_t v = 0; v < row.plans.size(); ++v) {
            if (row.plans[v] == 0) continue;
            if (!verdicts.empty()) verdicts += ", ";
            verdicts += select::name_of(static_cast<select::Verdict>(v));
            if (row.plans[v] > 1) verdicts += base::cat(" ", row.plans[v], " times");
        }
        if (verdicts.empty()) verdicts = "no pair yet";
        out += "      " + wrapped(base::cat(std::get<2>(key), ": ", verdicts, "; comparing cost ",
                                            base::format_duration(row.cost_s)),
                                  6);
    }
    if (!served_.empty()) {
        const char* name = select::name_of(static_cast<Function>(std::get<0>(served_.begin()->first)));
        print("  why, and what others cost: palmette explain %s SIZE\n", name);
        print("  to take another: palmette run --force %s=ALGORITHM\n", name);
    }
    out += topologies_.page(has_exchanges());
    out += DeviceReport::at_end().page();
    if (const std::int64_t refused = refused_reads.load(); refused > 0)
        out += "  note: " + wrapped(base::cat(refused, refused == 1 ? " read" : " reads",
                                              " of other ranks' memory refused by the system: "
                                              "their payload took the fallback path"),
                                    8);
    for (const auto& [text, times] : notes_) out += "  note: " + wrapped(text, 8);
    return out;
}

}  // namespace palmette::runtime
