// MPI_T: what palmette has done in this process, as performance variables behind the MPI's own, for tools that read
// those. Times are 0 where several threads may call the MPI. docs/reference/mpi-t.md.
#include <mpi.h>

#include <array>
#include <utility>

#include "palmette/base/json.hpp"
#include "palmette/interpose/tool_indices.hpp"
#include "palmette/interpose/wrappers.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/trace/served.hpp"

#if !defined(PALMETTE_ABI_SMPI)

namespace palmette::interpose {
namespace {

struct Performance {
    std::string_view name, help;
    int its_class;
    unsigned long long (*count)();  ///< null: a double
    double (*value)();
};

runtime::Report& report() { return runtime::Process::instance().report(); }

/// What the report would say now of this process. A report isn't read while another thread may add to it.
base::Json page() {
    if (runtime::Report::Counter::concurrent) return {};
    return report().to_json(1, 0, base::Json());
}
double gain(std::string_view name) {
    const base::Json all = page();
    const base::Json* const found = all.find("gain");
    const base::Json* const value = found ? found->find(name) : nullptr;
    return value ? value->number(name) : 0;
}
double bound_s() {
    const base::Json all = page();
    const base::Json* const calls = all.find("calls");
    double sum = 0;
    if (calls)
        for (const base::Json& row : calls->items("calls"))
            if (const base::Json* const multiple = row.find("bounds"))
                sum += row.find("rank_seconds")->number("rank_seconds") / multiple->number("bounds");
    return sum;
}

unsigned long long passed_calls() {
    // Those that the MPI got at once are counted when that ends; it begins anew with the next call.
    if (!runtime::Report::Counter::concurrent) runtime::close_bypasses();
    return static_cast<unsigned long long>(report().own_calls().second);
}

const std::array<Performance, 6>& performance() {
    using Count = unsigned long long;
    static const std::array<Performance, 6> all = {{
        {"palmette_served_calls", "Collectives of this process that palmette served.", MPI_T_PVAR_CLASS_COUNTER,
         [] { return static_cast<Count>(report().own_calls().first); }, nullptr},
        {"palmette_passed_calls", "Collectives of this process that were left to the MPI, for whatever reason.",
         MPI_T_PVAR_CLASS_COUNTER, &passed_calls, nullptr},
        {"palmette_served_time", "Seconds of this process in served collectives; 0 unless PALMETTE_REPORT is set.",
         MPI_T_PVAR_CLASS_TIMER, nullptr, [] { return gain("served_seconds"); }},
        {"palmette_bound_time",
         "Seconds that those of the served collectives must take by the network's limits for which this process knows "
         "one; 0 unless PALMETTE_REPORT is set.",
         MPI_T_PVAR_CLASS_TIMER, nullptr, &bound_s},
        {"palmette_saved_time",
         "Seconds less than with the MPI alone, as far as pairs of calls tell; negative: more. 0 unless "
         "PALMETTE_REPORT is set.",
         MPI_T_PVAR_CLASS_GENERIC, nullptr, [] { return gain("saved_seconds"); }},
        {"palmette_record_call_time",
         "Seconds that recording one MPI call takes in this process, as measured at its start; 0: nothing is recorded.",
         MPI_T_PVAR_CLASS_LEVEL, nullptr, [] { return palmette_record_call_cost ? palmette_record_call_cost() : 0.0; }},
    }};
    return all;
}

ToolIndices& indices() {
    static ToolIndices own(static_cast<int>(performance().size()));
    return own;
}
ToolHandles<Performance>& handles() {
    static auto* own = new ToolHandles<Performance>;
    return *own;
}

int settle() {
    return indices().settle([](int* number) { return next::MPI_T_pvar_get_num(number); });
}

}  // namespace

int on_MPI_T_pvar_get_num(int* number) {
    if (const int code = settle()) return code;
    const int code = next::MPI_T_pvar_get_num(number);
    if (code == MPI_SUCCESS) *number = indices().all(*number);
    return code;
}

int on_MPI_T_pvar_get_info(int index, char* name, int* name_length, int* verbosity, int* its_class, MPI_Datatype* type,
                           MPI_T_enum* enumeration, char* help, int* help_length, int* bind, int* readonly,
                           int* continuous, int* atomic) {
    if (const int code = settle()) return code;
    if (!indices().is_own(index))
        return next::MPI_T_pvar_get_info(indices().to_mpi(index), name, name_length, verbosity, its_class, type,
                                         enumeration, help, help_length, bind, readonly, continuous, atomic);
    const Performance& one = performance()[indices().own(index)];
    give_text(one.name, name, name_length);
    give_text(one.help, help, help_length);
    give(verbosity, static_cast<int>(MPI_T_VERBOSITY_USER_BASIC));
    give(its_class, one.its_class);
    give(type, one.count ? MPI_UNSIGNED_LONG_LONG : MPI_DOUBLE);
    give(enumeration, MPI_T_ENUM_NULL);
    give(bind, static_cast<int>(MPI_T_BIND_NO_OBJECT));
    give(readonly, 1);
    give(continuous, 1);
    give(atomic, 0);
    return MPI_SUCCESS;
}

int on_MPI_T_pvar_get_index(const char* name, int its_class, int* index) {
    if (const int code = settle()) return code;
    if (name && index)
        for (std::size_t i = 0; i < performance().size(); ++i)
            if (performance()[i].name == name && performance()[i].its_class == its_class) {
                *index = indices().of_own(i);
                return MPI_SUCCESS;
            }
    const int code = next::MPI_T_pvar_get_index(name, its_class, index);
    if (code == MPI_SUCCESS) *index = indices().from_mpi(*index);
    return code;
}

int on_MPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int index, void* object, MPI_T_pvar_handle* handle,
                               int* count) {
    if (const int code = settle()) return code;
    if (!indices().is_own(index))
        return next::MPI_T_pvar_handle_alloc(session, indices().to_mpi(index), object, handle, count);
    handles().add(performance()[indices().own(index)], handle);
    give(count, 1);
    return MPI_SUCCESS;
}

int on_MPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
    if (!handle || !handles().free(*handle)) return next::MPI_T_pvar_handle_free(session, handle);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}

// They count from MPI_Init to MPI_Finalize, whatever tools do.

int on_MPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return handles().find(handle) ? MPI_T_ERR_PVAR_NO_STARTSTOP : next::MPI_T_pvar_start(session, handle);
}
int on_MPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return handles().find(handle) ? MPI_T_ERR_PVAR_NO_STARTSTOP : next::MPI_T_pvar_stop(session, handle);
}
int on_MPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* buffer) {
    return handles().find(handle) ? MPI_T_ERR_PVAR_NO_WRITE : next::MPI_T_pvar_write(session, handle, buffer);
}
int on_MPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    return handles().find(handle) ? MPI_T_ERR_PVAR_NO_WRITE : next::MPI_T_pvar_reset(session, handle);
}
int on_MPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buffer) {
    return handles().find(handle) ? MPI_T_ERR_PVAR_NO_WRITE : next::MPI_T_pvar_readreset(session, handle, buffer);
}

int on_MPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buffer) {
    const Performance* const one = handles().find(handle);
    if (!one) return next::MPI_T_pvar_read(session, handle, buffer);
    if (one->count)
        *static_cast<unsigned long long*>(buffer) = one->count();
    else
        *static_cast<double*>(buffer) = one->value();
    return MPI_SUCCESS;
}

int on_MPI_T_category_get_pvars(int category, int length, int numbers[]) {
    if (const int code = settle()) return code;
    const int code = next::MPI_T_category_get_pvars(category, length, numbers);
    int of_category = 0;
    if (code != MPI_SUCCESS || PMPI_T_category_get_info(category, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                        &of_category, nullptr) != MPI_SUCCESS)
        return code;
    for (int i = 0; i < std::min(length, of_category); ++i) numbers[i] = indices().from_mpi(numbers[i]);
    return code;
}

}  // namespace palmette::interpose

#endif
