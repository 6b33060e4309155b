#include "aggregator/privileges.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "palmette/base/error.hpp"

namespace palmette::aggregator {

void become(const std::string& user) {
    if (geteuid() != 0 || user.empty()) return;
    const passwd* entry = getpwnam(user.c_str());  // NOLINT(concurrency-mt-unsafe): there is one thread
    if (entry == nullptr || entry->pw_uid == 0)
        base::fail("--user ", user, ": name a user that exists and isn't root (useradd --system ", user, ")");
    const uid_t uid = entry->pw_uid;
    const gid_t gid = entry->pw_gid;
    if (initgroups(user.c_str(), gid) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0 ||
        setresuid(0, 0, 0) == 0)
        base::fail("--user ", user, ": root's rights can't be given up");
}

void harden() {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

}  // namespace palmette::aggregator
