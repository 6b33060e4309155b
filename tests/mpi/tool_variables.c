/* MPI_T as a tool uses it: prints the variables there are, by index, and reads and writes palmette's where they are.
 *
 *     tool_variables
 * "pvar INDEX NAME" and "cvar INDEX NAME" before MPI_Init and, as "pvar again", after some collectives; then
 * "read NAME VALUE" for palmette's. Any number of ranks; rank 0 prints. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { most = 4096 };
static char name[most], help[most], text[most];
static int wrong = 0;

static void check(int good, const char *what) {
    if (good) return;
    ++wrong;
    printf("wrong: %s\n", what);
}

static void list(const char *label, int prints) {
    int number = 0, verbosity, class, bind, readonly, continuous, atomic, scope, index, length, help_length;
    MPI_Datatype type;
    MPI_T_enum enumeration;
    check(MPI_T_pvar_get_num(&number) == MPI_SUCCESS, "pvar_get_num");
    for (int i = 0; i < number; ++i) {
        length = help_length = most;
        if (MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, &type, &enumeration, help, &help_length, &bind,
                                &readonly, &continuous, &atomic) != MPI_SUCCESS)
            continue;
        if (prints) printf("pvar%s %d %s\n", label, i, name);
        if (strncmp(name, "palmette_", 9) != 0) continue;
        check(length == (int)strlen(name) + 1 && help_length == (int)strlen(help) + 1, "lengths of texts");
        check(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS && index == i, "pvar_get_index");
        length = 9;
        MPI_T_pvar_get_info(i, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
        check(strcmp(name, "palmette") == 0 && length > 9, "a short buffer");
    }
    check(MPI_T_cvar_get_num(&number) == MPI_SUCCESS, "cvar_get_num");
    for (int i = 0; i < number; ++i) {
        length = help_length = most;
        if (MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, &enumeration, help, &help_length, &bind, &scope) !=
            MPI_SUCCESS)
            continue;
        if (prints) printf("cvar%s %d %s\n", label, i, name);
        if (strncmp(name, "PALMETTE_", 9) != 0) continue;
        check(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS && index == i, "cvar_get_index");
    }
}

static void write_setting(const char *setting, const char *value, int expected) {
    int index = 0, count = 0;
    MPI_T_cvar_handle handle;
    if (MPI_T_cvar_get_index(setting, &index) != MPI_SUCCESS) return;
    check(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS && count >= 256, "cvar_handle_alloc");
    check(MPI_T_cvar_write(handle, value) == expected, "cvar_write");
    check(MPI_T_cvar_read(handle, text) == MPI_SUCCESS, "cvar_read");
    printf("read %s %s\n", setting, text);
    check(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && handle == MPI_T_CVAR_HANDLE_NULL, "cvar_handle_free");
}

static void read_all(void) {
    int number = 0, class, length, count, continuous, readonly;
    MPI_Datatype type;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    check(MPI_T_pvar_session_create(&session) == MPI_SUCCESS, "session_create");
    MPI_T_pvar_get_num(&number);
    for (int i = 0; i < number; ++i) {
        unsigned long long counted = 0;
        double seconds = 0;
        length = most;
        if (MPI_T_pvar_get_info(i, name, &length, NULL, &class, &type, NULL, NULL, NULL, NULL, &readonly, &continuous,
                                NULL) != MPI_SUCCESS ||
            strncmp(name, "palmette_", 9) != 0)
            continue;
        check(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count) == MPI_SUCCESS && count == 1, "handle_alloc");
        check(readonly && continuous, "readonly and continuous");
        check(MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP, "start");
        check(MPI_T_pvar_stop(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP, "stop");
        check(MPI_T_pvar_reset(session, handle) == MPI_T_ERR_PVAR_NO_WRITE, "reset");
        check(MPI_T_pvar_write(session, handle, &counted) == MPI_T_ERR_PVAR_NO_WRITE, "write");
        check(MPI_T_pvar_readreset(session, handle, &counted) == MPI_T_ERR_PVAR_NO_WRITE, "readreset");
        check(MPI_T_pvar_read(session, handle, type == MPI_DOUBLE ? (void *)&seconds : (void *)&counted) == MPI_SUCCESS,
              "read");
        if (type == MPI_DOUBLE)
            printf("read %s %.9g\n", name, seconds);
        else
            printf("read %s %llu\n", name, counted);
        check(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS && handle == MPI_T_PVAR_HANDLE_NULL,
              "handle_free");
    }
    check(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS, "start of all handles");
    check(MPI_T_pvar_session_free(&session) == MPI_SUCCESS, "session_free");
}

int main(int argc, char **argv) {
    int provided = 0, rank = 0;
    double one = 1, sum = 0;
    check(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS, "T_init_thread");
    /* Before MPI_Init nobody knows who is rank 0; launchers of one rank are used. */
    list("", 1);
    write_setting("PALMETTE_VERBOSE", "0", MPI_SUCCESS);
    write_setting("PALMETTE_FORCE", "barrier=mpi", MPI_SUCCESS);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 10; ++i) MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
    list(" again", rank == 0);
    if (rank == 0) {
        write_setting("PALMETTE_FORCE", "barrier=linear", MPI_T_ERR_CVAR_SET_NOT_NOW);
        read_all();
        printf("1 cases, %d wrong\n", wrong);
    }
    MPI_Finalize();
    MPI_T_finalize();
    return wrong != 0;
}
