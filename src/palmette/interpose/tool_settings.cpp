// MPI_T: palmette's settings as control variables behind the MPI's own. They are texts, and may be written before
// MPI_Init, when they are read. docs/reference/mpi-t.md.
#include <mpi.h>

#include <cstdlib>
#include <string>

#include "palmette/interpose/settings.hpp"
#include "palmette/interpose/settings_list.hpp"
#include "palmette/interpose/tool_indices.hpp"
#include "palmette/interpose/wrappers.hpp"

#if !defined(PALMETTE_ABI_SMPI)

namespace palmette::interpose {
namespace {

using settings::Setting;

/// Characters of a value, with the 0 behind it: paths are the longest.
constexpr int most_characters = 4096;

ToolIndices& control_indices() {
    static ToolIndices own(static_cast<int>(settings::all.size()));
    return own;
}
ToolHandles<Setting>& control_handles() {
    static auto* own = new ToolHandles<Setting>;
    return *own;
}

int settle_controls() {
    return control_indices().settle([](int* number) { return next::MPI_T_cvar_get_num(number); });
}

}  // namespace

int on_MPI_T_cvar_get_num(int* number) {
    if (const int code = settle_controls()) return code;
    const int code = next::MPI_T_cvar_get_num(number);
    if (code == MPI_SUCCESS) *number = control_indices().all(*number);
    return code;
}

int on_MPI_T_cvar_get_info(int index, char* name, int* name_length, int* verbosity, MPI_Datatype* type,
                           MPI_T_enum* enumeration, char* help, int* help_length, int* bind, int* scope) {
    if (const int code = settle_controls()) return code;
    if (!control_indices().is_own(index))
        return next::MPI_T_cvar_get_info(control_indices().to_mpi(index), name, name_length, verbosity, type,
                                         enumeration, help, help_length, bind, scope);
    const Setting& one = settings::all[control_indices().own(index)];
    give_text(one.name, name, name_length);
    give_text(one.help, help, help_length);
    give(verbosity, static_cast<int>(MPI_T_VERBOSITY_USER_BASIC));
    give(type, MPI_CHAR);
    give(enumeration, MPI_T_ENUM_NULL);
    give(bind, static_cast<int>(MPI_T_BIND_NO_OBJECT));
    give(scope, static_cast<int>(one.agree == settings::Agree::no ? MPI_T_SCOPE_LOCAL : MPI_T_SCOPE_ALL_EQ));
    return MPI_SUCCESS;
}

int on_MPI_T_cvar_get_index(const char* name, int* index) {
    if (const int code = settle_controls()) return code;
    if (name && index)
        for (std::size_t i = 0; i < settings::all.size(); ++i)
            if (std::string_view(settings::all[i].name) == name) {
                *index = control_indices().of_own(i);
                return MPI_SUCCESS;
            }
    const int code = next::MPI_T_cvar_get_index(name, index);
    if (code == MPI_SUCCESS) *index = control_indices().from_mpi(*index);
    return code;
}

int on_MPI_T_cvar_handle_alloc(int index, void* object, MPI_T_cvar_handle* handle, int* count) {
    if (const int code = settle_controls()) return code;
    if (!control_indices().is_own(index))
        return next::MPI_T_cvar_handle_alloc(control_indices().to_mpi(index), object, handle, count);
    control_handles().add(settings::all[control_indices().own(index)], handle);
    give(count, most_characters);
    return MPI_SUCCESS;
}

int on_MPI_T_cvar_handle_free(MPI_T_cvar_handle* handle) {
    if (!handle || !control_handles().free(*handle)) return next::MPI_T_cvar_handle_free(handle);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}

int on_MPI_T_cvar_read(MPI_T_cvar_handle handle, void* buffer) {
    const Setting* const one = control_handles().find(handle);
    if (!one) return next::MPI_T_cvar_read(handle, buffer);
    int length = most_characters;
    give_text(setting_text(*one), static_cast<char*>(buffer), &length);
    return MPI_SUCCESS;
}

int on_MPI_T_cvar_write(MPI_T_cvar_handle handle, const void* buffer) {
    const Setting* const one = control_handles().find(handle);
    if (!one) return next::MPI_T_cvar_write(handle, buffer);
    int initialized = 0;
    if (PMPI_Initialized(&initialized) == MPI_SUCCESS && initialized) return MPI_T_ERR_CVAR_SET_NOT_NOW;
    const auto* const text = static_cast<const char*>(buffer);
    setenv(one->name, std::string(text, strnlen(text, most_characters - 1)).c_str(), 1);
    return MPI_SUCCESS;
}

int on_MPI_T_category_get_cvars(int category, int length, int numbers[]) {
    if (const int code = settle_controls()) return code;
    const int code = next::MPI_T_category_get_cvars(category, length, numbers);
    int of_category = 0;
    if (code != MPI_SUCCESS || PMPI_T_category_get_info(category, nullptr, nullptr, nullptr, nullptr, &of_category,
                                                        nullptr, nullptr) != MPI_SUCCESS)
        return code;
    for (int i = 0; i < std::min(length, of_category); ++i) numbers[i] = control_indices().from_mpi(numbers[i]);
    return code;
}

}  // namespace palmette::interpose

#endif
